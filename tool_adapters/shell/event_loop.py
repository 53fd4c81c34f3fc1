"""The one event loop of a process, on a thread of its own: `async def` tools and their resources.

Decides that the loop lives as long as the process (a loop per call breaks shared clients), that a
call is cancelled at its limit and at shut-down, and who is named when one tool blocks the loop
for all others. Nobody ever waits for the loop without a limit. Shell.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import structlog

from ..contract import NotWritten
from .function_run import FunctionRun, place_of

Value = TypeVar("Value")
_log = structlog.get_logger(__name__)
LOOK_SECONDS = 1.0
BLOCKED_SECONDS = 2.0
CLOSE_SECONDS = 2.0


class ToolLoop:
    """An event loop that starts at its first use and runs until `close`. Thread-safe."""

    def __init__(self, blocked_seconds: float = BLOCKED_SECONDS) -> None:
        self._blocked_seconds = blocked_seconds
        self._start_lock = threading.Lock()
        self._closing = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: list[threading.Thread] = []
        self._tasks: dict[FunctionRun, asyncio.Task[bool]] = {}
        self._late: queue.SimpleQueue[FunctionRun | None] = queue.SimpleQueue()

    # -- for the threads of a process --------------------------------------------------------------

    def begin(self, run: FunctionRun) -> bool:
        """Have the loop perform a call; False where the process ends and nothing was begun."""
        return self._ask(self._create, run)

    def cancel(self, run: FunctionRun) -> None:
        """Cancel a call whose limit has passed. What it does then is its own affair."""
        self._ask(self._cancel, run)

    def _ask(self, what: Callable[[FunctionRun], None], run: FunctionRun) -> bool:
        try:
            self._running().call_soon_threadsafe(what, run)
        except RuntimeError:
            return False
        return True

    def start(self, work: Coroutine[Any, Any, Value]) -> Future[Value]:
        """Have the loop run any coroutine, such as the life of a resource.

        Raises RuntimeError where the loop is closed.
        """
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def is_running(self) -> bool:
        """Return whether the loop was ever needed, and is not closed."""
        return self._loop is not None and not self._closing.is_set()

    def cancel_all(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Cancel every call in flight and wait for them; False where some run on."""
        if not self.is_running():
            return True
        ended: Future[bool] = self.start(self._cancel_and_wait(seconds))
        try:
            return ended.result(2 * seconds)
        except TimeoutError:
            return False

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Cancel what still runs, then end the loop and its threads; waits at most about twice."""
        with self._start_lock:
            loop, is_first = self._loop, not self._closing.is_set()
        if loop is None or not is_first:
            self._closing.set()
            return
        self.cancel_all(seconds)
        self._closing.set()
        loop.call_soon_threadsafe(loop.stop)
        self._late.put(None)
        for thread in self._threads:
            thread.join(seconds)
        if any(thread.is_alive() for thread in self._threads):
            _log.warning("loop_still_runs", tools=self._names())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._start_lock:
            if self._closing.is_set():
                raise RuntimeError("the event loop of this process is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(self._told_by_loop)
                for work in (self._run, self._watch, self._tell_late):
                    thread = threading.Thread(target=work, name="ackbox-loop", daemon=True)
                    self._threads.append(thread)
                    thread.start()
            return self._loop

    # -- on the loop's thread ----------------------------------------------------------------------

    def _run(self) -> None:
        assert self._loop is not None
        while not self._closing.is_set():
            try:
                self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # A tool's own sub-task raised it; asyncio lets it through, and others go on.
                _log.error("loop_interrupted", error=type(error).__name__, where=place_of(error))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def _create(self, run: FunctionRun) -> None:
        assert self._loop is not None
        # A context of its own: what a tool sets there is not seen by the next call.
        task = self._loop.create_task(run.perform_async(), context=contextvars.Context())
        self._tasks[run] = task
        task.add_done_callback(lambda done: self._ended(run, done))

    def _ended(self, run: FunctionRun, task: asyncio.Task[bool]) -> None:
        self._tasks.pop(run, None)
        # Cancelled before its first step: nothing was called. A function that cancels its own task
        # and returns ends like that too; then its own end has been handed over, and stands.
        unbegun = task.cancelled()
        if run.end(NotWritten("cancelled before the call began")) if unbegun else task.result():
            self._late.put(run)

    def _cancel(self, run: FunctionRun) -> None:
        task = self._tasks.get(run)
        if task is not None:
            task.cancel()

    async def _cancel_and_wait(self, seconds: float) -> bool:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return all(task.done() for task in tasks)

    def _told_by_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what asyncio reports, without its texts: they show arguments and results."""
        error = context.get("exception")
        if error is not None:
            _log.warning("loop_reports", error=type(error).__name__, where=place_of(error))

    # -- beside the loop ---------------------------------------------------------------------------

    def _tell_late(self) -> None:
        """Pass on late evidence here: whoever takes it may wait for a database."""
        while (run := self._late.get()) is not None:
            try:
                run.tell_late()
            except Exception as error:  # noqa: BLE001 - the next ones come on this thread too
                name, where = type(error).__name__, place_of(error)
                _log.error("late_answer_lost", call=run.name, error=name, where=where)

    def _watch(self) -> None:
        """Name the tool that keeps the loop from running all the others."""
        assert self._loop is not None
        while not self._closing.wait(LOOK_SECONDS):
            answered = threading.Event()
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # closed at this very moment
                return
            if answered.wait(self._blocked_seconds):
                continue
            _log.warning("loop_blocked", tools=self._blocking(), seconds=self._blocked_seconds)
            while not (answered.wait(LOOK_SECONDS) or self._closing.is_set()):
                pass

    def _blocking(self) -> list[str]:
        current = asyncio.current_task(self._loop)
        names = [run.name for run, task in self._tasks.copy().items() if task is current]
        # A sub-task of a tool: all that run are named.
        return names or self._names()

    def _names(self) -> list[str]:
        return sorted(run.name for run in self._tasks.copy())
