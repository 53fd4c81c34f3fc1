"""Runs function tools: `def` on threads of their own, `async def` on the process's event loop.

Decides nothing about outcomes. Past the limit the exchange returns OverLimit: a thread cannot be
stopped and runs on, a coroutine is cancelled and may do as it likes; what either returns goes to
`on_late`. Whatever a function raises is its answer: KeyboardInterrupt and SystemExit too, because
they end a tool's thread and say nothing to the worker (a signal reaches the main thread only, and
no tool runs there).
"""

from __future__ import annotations

import contextvars
import inspect
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...outbox.errors import InvalidIntent
from ..contract import Evidence, FunctionCall, NotWritten, OverLimit
from ..function import PROBE, FunctionTool
from ..tool_call import ToolCall
from .boottime import boottime_seconds
from .event_loop import ToolLoop
from .function_run import Called, CallTimes, FunctionRun, Late
from .resources import Find

Lookup = Callable[[str, int], Any]
"""From tool and version to its adapter, such as `Tools.lookup`."""
Finder = Callable[[str, int], Find]
"""From tool and version to what finds its resources, such as `Resources.finder`."""
IDLE_THREADS_LIMIT = 64
"""Threads kept for the next calls; more calls at once get threads that end with them."""


@dataclass(frozen=True, slots=True)
class _Target:
    """The function of a request, with its arguments; `awaits` where calling it runs nothing."""

    function: Called
    awaits: bool


class FunctionTransport:
    """Calls function tools. Thread-safe; the number of threads is bounded by its callers."""

    def __init__(
        self, lookup: Lookup, loop: ToolLoop | None = None, finder: Finder | None = None
    ) -> None:
        self._lookup = lookup
        self._loop = loop or ToolLoop()
        self._finder = finder
        self._idle: queue.LifoQueue[queue.SimpleQueue[FunctionRun | None]] = queue.LifoQueue(
            IDLE_THREADS_LIMIT
        )

    def close(self) -> None:
        """End idle threads and the loop; a thread in a function ends with it or the process."""
        self._loop.close()
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
        on_late: Late = lambda evidence: None,
    ) -> Evidence:
        """Call the function once and return how it ended.

        NotWritten where nothing was called: the send deadline had passed, or this worker has no
        such function. OverLimit where it still runs after `limit_seconds`: it keeps its thread or
        task, and `on_late` is called exactly once when it ends, on another thread (perhaps before
        this call has returned).
        """
        target, context = self._resolve(request), request.context
        if isinstance(target, str) or context is None:
            return NotWritten(target if isinstance(target, str) else "a call without context")
        times = CallTimes(send_by_boottime, boottime_seconds() + limit_seconds)
        find = self._finder(request.tool, request.version) if self._finder else None
        call = ToolCall(context, times.remaining_seconds, find)
        name = f"{request.tool} {context.intent_id}"
        run = FunctionRun(target.function, call, times, name, on_late)
        if not target.awaits:
            self._start(run)
            return run.wait(limit_seconds)
        return self._await(run, limit_seconds)

    def _await(self, run: FunctionRun, limit_seconds: float) -> Evidence:
        if not self._loop.begin(run):
            return NotWritten("the process ends")
        evidence = run.wait(limit_seconds)
        if isinstance(evidence, OverLimit):
            self._loop.cancel(run)
        return evidence

    def _resolve(self, request: FunctionCall) -> _Target | str:
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
        awaits = inspect.iscoroutinefunction(function)
        return _Target(lambda call: function(call, **args), awaits)

    def _start(self, run: FunctionRun) -> None:
        try:
            inbox = self._idle.get_nowait()
        except queue.Empty:
            inbox = queue.SimpleQueue()
            thread = threading.Thread(target=self._serve, args=(inbox,), daemon=True)
            thread.name = "ackbox-function"
            thread.start()
        inbox.put(run)

    def _serve(self, inbox: queue.SimpleQueue[FunctionRun | None]) -> None:
        while (run := inbox.get()) is not None:
            # A context of its own: what a tool sets there is not seen by the next call.
            contextvars.Context().run(run.perform)
            try:
                self._idle.put_nowait(inbox)
            except queue.Full:
                return
