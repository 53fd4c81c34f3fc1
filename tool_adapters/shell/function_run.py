"""One call of a function tool: who waits for it, until when it may begin, and how it ended.

Decides that evidence arrives exactly once: for the waiting exchange or, after the limit, late; and
that a call whose limit has passed, or whose send deadline has, never begins. Shell.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ...outbox.outcome import NotApplied
from ..contract import Evidence, NotWritten, OverLimit, RaisedError, RaisedOutcome, Returned
from ..raised_at import raised_at
from ..tool_call import ToolCall
from .boottime import boottime_seconds

Late = Callable[[Evidence], None]
Called = Callable[[ToolCall], Any]
"""The function with its arguments, which wants only the call."""


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Moments on the boot-time clock: no call begins from `send_by` on (None: a harmless one)."""

    send_by: float | None
    ends_by: float

    def remaining_seconds(self) -> float:
        """Return what is left of the call's limit."""
        return max(self.ends_by - boottime_seconds(), 0.0)


class FunctionRun:
    """One call. One thread waits; another one, or the event loop, performs it."""

    def __init__(
        self, function: Called, call: ToolCall, times: CallTimes, name: str, on_late: Late
    ) -> None:
        self.name = name
        """Tool and intent, for people."""
        self._function = function
        self._call = call
        self._times = times
        self._on_late = on_late
        self._lock = threading.Lock()
        self._evidence: Evidence | None = None
        self._abandoned = False
        self._done = threading.Event()

    def perform(self) -> None:
        """Call the function on this thread and hand over how it ended."""
        evidence: Evidence | None = self._not_begun()
        if evidence is None:
            evidence = _call(self._function, self._call)
        if self.end(evidence):
            self.tell_late()

    async def perform_async(self) -> bool:
        """Await the function's coroutine; True where `tell_late` is to be called, off the loop."""
        evidence: Evidence | None = self._not_begun()
        if evidence is None:
            evidence = await _await(self._function, self._call)
        return self.end(evidence)

    def _not_begun(self) -> NotWritten | None:
        send_by = self._times.send_by
        if send_by is not None and boottime_seconds() >= send_by:
            return NotWritten()
        with self._lock:
            return NotWritten("the limit passed before the call began") if self._abandoned else None

    def end(self, evidence: Evidence) -> bool:
        """Hand over how the call ended; True where nobody waits for it any more.

        The first end stands: a function that has run is never said to have been cancelled before.
        """
        with self._lock:
            if self._evidence is None:
                self._evidence = evidence
            late = self._abandoned
        self._done.set()
        return late

    def tell_late(self) -> None:
        """Pass on evidence that came after the limit."""
        assert self._evidence is not None
        self._on_late(self._evidence)

    def wait(self, seconds: float) -> Evidence:
        """Return the evidence, or OverLimit: then `on_late` is called, exactly once."""
        self._done.wait(seconds)
        with self._lock:
            if self._evidence is not None:
                return self._evidence
            self._abandoned = True
            return OverLimit()


def _call(function: Called, call: ToolCall) -> Evidence:
    try:
        value = function(call)
    except BaseException as error:  # noqa: BLE001 - a tool's code: whatever it raises is Unknown
        return _raised(error)
    if inspect.iscoroutine(value):
        value.close()  # It never ran; closing it keeps the interpreter from warning about it.
    return Returned(value)


async def _await(function: Callable[[ToolCall], Awaitable[Any]], call: ToolCall) -> Evidence:
    try:
        return Returned(await function(call))
    except BaseException as error:  # noqa: BLE001 - a tool's code; a cancellation at the limit too
        return _raised(error)


def _raised(error: BaseException) -> Evidence:
    if isinstance(error, NotApplied):
        return RaisedOutcome(error)
    return RaisedError(type(error).__name__, place_of(error))


def place_of(error: BaseException) -> str:
    """Return file and line of the raise. The message is left out: it may hold arguments."""
    place = raised_at(error)
    return "" if place is None else f"{os.path.basename(place[0])}:{place[1]}"
