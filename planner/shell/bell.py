"""Rings lanes from a thread of its own, so that no commit ever waits for a ring.

Through a token where Redis is configured and answers, else through NOTIFY on a connection of
ackbox. A ring that fails is dropped: the relay's poll finds the rows. Shell.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from ...outbox.errors import AckboxError
from ...outbox.shell.database import Database
from ...outbox.shell.notify import notify
from ...outbox.shell.statements import Statements

DEBOUNCE_SECONDS = 0.05
TOKEN_CLAIMS = 200
CLOSE_SECONDS = 5.0


class TokenRinger(Protocol):
    """What rings through Redis; `TokenBus` is one."""

    def ring(self, lane: str, limit: int) -> bool:
        """Put a wake token; False where that was not possible."""


class PlannerBell:
    """Collects lanes and rings each of them at most once per debounce time.

    A forked child starts a thread of its own; the lanes that its parent had noted are the
    parent's to ring.
    """

    def __init__(
        self,
        database: Database,
        statements: Statements,
        bus: TokenRinger | None = None,
        debounce_seconds: float = DEBOUNCE_SECONDS,
    ) -> None:
        self._database = database
        self._statements = statements
        self._bus = bus
        self._debounce_seconds = debounce_seconds
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._condition = threading.Condition()
        self._lanes: set[str] = set()
        self._busy = False
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self.failed = 0

    def ring(self, lanes: Iterable[str]) -> None:
        """Have the lanes rung soon; returns at once."""
        if self._pid != os.getpid():
            self._reset()
        with self._condition:
            self._lanes.update(lanes)
            if not self._lanes or self._closing.is_set():
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ackbox-bell", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def wait_silent(self, timeout_seconds: float) -> bool:
        """Wait until everything noted has been rung; False when the time was too short."""
        with self._condition:
            return self._condition.wait_for(
                lambda: not self._lanes and not self._busy, timeout_seconds
            )

    def close(self) -> None:
        """Ring what is left, for a short while, and end the thread."""
        if self._pid != os.getpid() or self._thread is None:
            return
        self._closing.set()
        with self._condition:
            self._condition.notify_all()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (lanes := self._next()) is not None:
            self._ring_now(lanes)
            with self._condition:
                self._busy = False
                self._condition.notify_all()
            self._closing.wait(self._debounce_seconds)

    def _next(self) -> set[str] | None:
        with self._condition:
            self._condition.wait_for(lambda: self._lanes or self._closing.is_set())
            lanes, self._lanes = self._lanes, set()
            self._busy = bool(lanes)
            return lanes or None

    def _ring_now(self, lanes: set[str]) -> None:
        left = lanes
        if self._bus is not None:
            left = {lane for lane in lanes if not self._bus.ring(lane, TOKEN_CLAIMS)}
        if not left:
            return
        try:
            self._database.run(lambda c: notify(c, self._statements, left), attempts=1)
        except (AckboxError, SQLAlchemyError):
            self.failed += 1
