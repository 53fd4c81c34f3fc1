"""The one event loop that a consumer process runs its `async def` callbacks on.

It lives as long as the consumer, so that clients which belong to a loop may be kept by callbacks
from one call to the next. Shell.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import structlog

from .callbacks import CallbackFailed

T = TypeVar("T")
_log = structlog.get_logger(__name__)
CLOSE_SECONDS = 5.0


class CallbackLoop:
    """A loop in a thread of its own, started at its first use and never carried over a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """Await what `make` returns on the loop; returns, or raises, what that does.

        Raises CallbackFailed where it was cancelled: a callback may have asked for that, and felt
        it only after its end.
        """
        ended = asyncio.run_coroutine_threadsafe(_awaited(make), self._started())
        try:
            return ended.result()
        except CancelledError as error:
            raise CallbackFailed(type(error).__name__) from None

    def close(self) -> None:
        """Cancel what still runs on the loop, and end its thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None or self._pid != os.getpid():
                return
            self._closing = True
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSE_SECONDS)
            self._reset()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._pid != os.getpid():
                self._reset()
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(_report)
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop,), name="ackbox-callbacks", daemon=True
                )
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while not self._closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # A task of the plan's own raised it: whoever waits on the loop must not hang.
                _log.error("callback_loop_interrupted", error=type(error).__name__)
        loop.run_until_complete(_cancelled_rest())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _report(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what asyncio reports by its type: its texts may show results."""
    error = context.get("exception")
    _log.warning("callback_loop_reports", error=type(error).__name__ if error else "none")


async def _awaited(make: Callable[[], Awaitable[T]]) -> T:
    return await make()


async def _cancelled_rest() -> None:
    rest: set[asyncio.Task[Any]] = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
