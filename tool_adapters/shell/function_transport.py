"""Runs function tools on threads of their own, and stops waiting for them at their limit.

Decides nothing about outcomes. A thread cannot be stopped: past the limit the exchange returns
OverLimit, the function runs on, and what it returns goes to `on_late`. Whatever a function
raises is its answer: KeyboardInterrupt and SystemExit too, because they end a tool's thread and
say nothing to the worker (a signal reaches the main thread only, and no tool runs there).
"""

from __future__ import annotations

import inspect
import os
import queue
import threading
import traceback
from collections.abc import Callable
from typing import Any

from ...outbox.errors import InvalidIntent
from ...outbox.outcome import NotApplied
from ..contract import (
    Evidence,
    FunctionCall,
    NotWritten,
    OverLimit,
    RaisedError,
    RaisedOutcome,
    Returned,
)
from ..function import PROBE, FunctionTool, ToolCall
from .boottime import boottime_seconds

Lookup = Callable[[str, int], Any]
"""From tool and version to its adapter, such as `Tools.lookup`."""
IDLE_THREADS_LIMIT = 64
"""Threads kept for the next calls; more calls at once get threads that end with them."""


class _Run:
    """One call: evidence arrives once, for the waiting exchange or, after the limit, late."""

    def __init__(self, work: Callable[[], Evidence], on_late: Callable[[Evidence], None]) -> None:
        self._work = work
        self._on_late = on_late
        self._lock = threading.Lock()
        self._evidence: Evidence | None = None
        self._abandoned = False
        self._done = threading.Event()

    def perform(self) -> None:
        try:
            evidence = self._work()
        except BaseException as error:  # noqa: BLE001 - else the call never ends
            evidence = RaisedError(type(error).__name__, "")
        with self._lock:
            self._evidence = evidence
            late = self._abandoned
        self._done.set()
        if late:
            self._on_late(evidence)

    def wait(self, seconds: float) -> Evidence:
        """Return the evidence, or OverLimit: then `on_late` is called, exactly once."""
        self._done.wait(seconds)
        with self._lock:
            if self._evidence is not None:
                return self._evidence
            self._abandoned = True
            return OverLimit()


class FunctionTransport:
    """Calls function tools. Thread-safe; the number of threads is bounded by its callers."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._idle: queue.LifoQueue[queue.SimpleQueue[_Run | None]] = queue.LifoQueue(
            IDLE_THREADS_LIMIT
        )

    def close(self) -> None:
        """End the idle threads; those still in a function end with it, or with the process."""
        while True:
            try:
                self._idle.get_nowait().put(None)
            except queue.Empty:
                return

    def exchange(
        self,
        request: FunctionCall,
        *,
        send_by_boottime: float | None,
        limit_seconds: float,
        on_late: Callable[[Evidence], None] = lambda evidence: None,
    ) -> Evidence:
        """Call the function once and return how it ended.

        NotWritten where nothing was called: the send deadline had passed, or this worker has no
        such function. OverLimit where it still
        runs after `limit_seconds`: it keeps its thread, and `on_late` is called exactly once
        when it ends, on that thread (perhaps before this call has returned).
        """
        function, context = self._resolve(request), request.context
        if isinstance(function, str) or context is None:
            return NotWritten(function if isinstance(function, str) else "a call without context")
        deadline = boottime_seconds() + limit_seconds

        def work() -> Evidence:
            if send_by_boottime is not None and boottime_seconds() >= send_by_boottime:
                return NotWritten()
            call = ToolCall(context, lambda: max(deadline - boottime_seconds(), 0.0))
            return _call(function, call)

        run = _Run(work, on_late)
        self._start(run)
        return run.wait(limit_seconds)

    def _resolve(self, request: FunctionCall) -> Callable[[ToolCall], Any] | str:
        """Return the function with its arguments, or why there is nothing to call."""
        adapter = self._lookup(request.tool, request.version)
        if not isinstance(adapter, FunctionTool):
            return "this worker has no such function"
        function = adapter.function
        if request.purpose == PROBE:
            if adapter.probe_by is None:
                return "the tool has no probe"
            function = adapter.probe_by.function
        try:
            args = adapter.arguments.decode(request.args)
        except InvalidIntent as error:
            return error.what
        return lambda call: function(call, **args)

    def _start(self, run: _Run) -> None:
        try:
            inbox = self._idle.get_nowait()
        except queue.Empty:
            inbox = queue.SimpleQueue()
            thread = threading.Thread(target=self._serve, args=(inbox,), daemon=True)
            thread.name = "ackbox-function"
            thread.start()
        inbox.put(run)

    def _serve(self, inbox: queue.SimpleQueue[_Run | None]) -> None:
        while (run := inbox.get()) is not None:
            run.perform()
            try:
                self._idle.put_nowait(inbox)
            except queue.Full:
                return


def _call(function: Callable[[ToolCall], Any], call: ToolCall) -> Evidence:
    try:
        value = function(call)
    except NotApplied as outcome:
        return RaisedOutcome(outcome)
    except BaseException as error:  # noqa: BLE001 - a tool's code: whatever it raises is Unknown
        return RaisedError(type(error).__name__, _place(error))
    if inspect.iscoroutine(value):
        value.close()  # It never ran; closing it keeps the interpreter from warning about it.
    return Returned(value)


def _place(error: BaseException) -> str:
    """Return file and line of the raise. The message is left out: it may hold arguments."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return ""
    frame, line = frames[-1]
    return f"{os.path.basename(frame.f_code.co_filename)}:{line}"
