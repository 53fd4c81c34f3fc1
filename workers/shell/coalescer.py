"""Collects commands of many attempts and answers them in batches: one transaction for all of them.

Decides nothing about rows. While one batch is being committed the next one gathers, so the batch
size follows the load by itself. Shell; no driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import structlog

from ...outbox.errors import AckboxError

Command = TypeVar("Command")
Answer = Callable[[Any], None]
_log = structlog.get_logger(__name__)


class Coalescer(Generic[Command]):
    """One thread that hands gathered commands to `perform` and each reply to its `answer`.

    Where `perform` raises, which it must not, its commands are tried one by one, so that what
    broke it costs itself only: that command is answered with `failed`.
    """

    def __init__(
        self,
        name: str,
        perform: Callable[[Sequence[Command]], Sequence[Any]],
        failed: Callable[[Command], Any],
        *,
        batch_limit: int = 200,
        linger_seconds: float = 0.002,
    ) -> None:
        self._perform = perform
        self._failed = failed
        self._batch_limit = batch_limit
        self._linger_seconds = linger_seconds
        self._waiting: list[tuple[Command, Answer]] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=f"ackbox-{name}", daemon=True)
        self._thread.start()

    def put(self, command: Command, answer: Answer) -> None:
        """Add a command; `answer` is called with its reply on the coalescer's thread."""
        with self._changed:
            self._waiting.append((command, answer))
            self._changed.notify()

    def waiting(self) -> int:
        """Return how many commands wait for their batch."""
        with self._changed:
            return len(self._waiting)

    def close(self) -> None:
        """Finish what waits, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._gather():
            replies = self._replies([command for command, _ in batch])
            for (_, answer), reply in zip(batch, replies, strict=True):
                answer(reply)

    def _replies(self, commands: Sequence[Command]) -> Sequence[Any]:
        try:
            return self._perform(commands)
        except Exception as error:  # noqa: BLE001 - every attempt depends on this thread
            code = error.code if isinstance(error, AckboxError) else type(error).__name__
            _log.error("batch_broken", code=code, rows=len(commands))
        if len(commands) == 1:
            return [self._failed(commands[0])]
        return [reply for command in commands for reply in self._replies([command])]

    def _gather(self) -> list[tuple[Command, Answer]]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._linger_seconds and len(self._waiting) < self._batch_limit // 4:
                self._changed.wait(self._linger_seconds)
            batch = self._waiting[: self._batch_limit]
            del self._waiting[: self._batch_limit]
            return batch
