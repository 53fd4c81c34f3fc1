"""The heartbeat of one process: a thread with a connection of its own, which no tool can starve.

Also pushes `quiet_at` of rows whose calls still run beyond their limit. Shell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.defaults import Limits
from ...outbox.errors import AckboxError, StoreUnavailable
from ...outbox.shell.claim_store import ClaimStore, Incarnation

_log = structlog.get_logger(__name__)


class Heartbeat:
    """Beats until stopped. `store` must stand on a database object that nothing else uses."""

    def __init__(
        self,
        store: ClaimStore,
        incarnation: Incarnation,
        limits: Limits,
        overrunning: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._store = store
        self._incarnation = incarnation
        self._limits = limits
        self._overrunning = overrunning
        self._stop = threading.Event()
        self._last_beat = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="ackbox-heartbeat", daemon=True)

    def start(self) -> None:
        """Write the process's row, then beat on. Raises StoreUnavailable where that fails."""
        self._store.register(self._incarnation)
        self._last_beat = time.monotonic()
        self._thread.start()

    def is_doubtful(self) -> bool:
        """Return whether the last beat is so old that this process may be taken for dead."""
        return time.monotonic() - self._last_beat > self._limits.dead_after_seconds / 2

    def stop(self) -> None:
        """End the thread and say that the process ends on purpose."""
        self._stop.set()
        self._thread.join()
        try:
            self._store.stop(self._incarnation.worker_id)
        except StoreUnavailable as error:
            # The row's age tells the same, later.
            _log.warning("worker_row_not_closed", code=error.code)

    def _run(self) -> None:
        while not self._stop.wait(self._limits.heartbeat_seconds):
            self._beat()

    def _beat(self) -> None:
        started = time.monotonic()
        try:
            if not self._store.beat(self._incarnation.worker_id):
                self._store.register(self._incarnation)
            # Said before the rest: this process lives, whatever becomes of single rows.
            self._last_beat = started
            if seqs := self._overrunning():
                self._store.push_quiet(seqs)
        except (AckboxError, SQLAlchemyError) as error:
            # A thread that ended here would leave a process that never sends and never ends.
            code = error.code if isinstance(error, AckboxError) else type(error).__name__
            _log.warning("heartbeat_failed", code=code)
