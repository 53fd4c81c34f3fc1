"""Settles unknown rows: finds those whose turn has come and walks the ladder of each on a thread.

Resends are attempts like any other: they hold a mark, a fence and this process's heartbeat row.
Shell.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.commands import (
    Claimed,
    LookAgain,
    Park,
    Record,
    Recorded,
    RecordProbe,
    Resend,
    RingResults,
    Unresolved,
)
from ...outbox.defaults import Limits
from ...outbox.errors import AckboxError
from ...outbox.shell.attempt_store import LOCKED_ROW, AttemptStore
from ...outbox.shell.reconcile_store import ReconcileStore
from ...tool_adapters.contract import Evidence, OverLimit
from ...tool_adapters.shell.function_run import place_of
from ..attempt import conclude
from ..reconcile import Draw, reconcile
from .runner import RECORD_RETRY_SECONDS, Bell
from .tool_driver import Timing, ToolDriver

_log = structlog.get_logger(__name__)
BATCH_LIMIT = 50


class Reconciler:
    """The reconciling role of one process. `run_once` is its pass."""

    def __init__(
        self,
        store: ReconcileStore,
        attempts: AttemptStore,
        tools: ToolDriver,
        bell: Bell,
        limits: Limits,
        *,
        owner: UUID,
        threads: int = 8,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._tools = tools
        self._bell = bell
        self._limits = limits
        self._owner = owner
        self._draw = draw
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ackbox-reconcile")
        self._busy: set[int] = set()
        self._overruns: set[int] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def run_once(self) -> bool:
        """Start a look at unknown rows, as many as there are free threads; True if any began."""
        with self._lock:
            free = self._threads - len(self._busy)
        if free <= 0:
            return False
        begun = 0
        for unresolved in self._store.find_unknown(min(free, BATCH_LIMIT)):
            begun += self._begin(unresolved)
        return begun > 0

    def overrunning(self) -> tuple[int, ...]:
        """Return the rows whose resend still runs although its limit has passed."""
        with self._lock:
            return tuple(self._overruns)

    def close(self) -> None:
        """Wait for the looks in progress."""
        self._stop.set()
        self._pool.shutdown()

    def _begin(self, unresolved: Unresolved) -> bool:
        seq = unresolved.claim.seq
        with self._lock:
            if seq in self._busy:
                return False
            self._busy.add(seq)
        self._pool.submit(self._look, unresolved)
        return True

    def _look(self, unresolved: Unresolved) -> None:
        seq = unresolved.claim.seq
        try:
            steps = reconcile(unresolved, Draw(self._draw(), self._limits))
            self._drive(steps, self._tools.timing())
        except (AckboxError, SQLAlchemyError, OSError) as error:
            # Its next look is set already; a resend in flight expires and comes back here.
            _log.warning("look_failed", seq=seq, code=getattr(error, "code", type(error).__name__))
        except Exception as error:  # noqa: BLE001 - else the pool's thread would swallow it unseen
            _log.error("look_broken", seq=seq, error=type(error).__name__, where=place_of(error))
        finally:
            with self._lock:
                self._busy.discard(seq)

    def _drive(self, steps: Any, timing: Timing) -> None:
        reply: Any = None
        while True:
            try:
                command = steps.send(reply)
            except StopIteration:
                return
            reply = self._answer(command, timing)

    def _answer(self, command: Any, timing: Timing) -> Any:
        match command:
            case RecordProbe():
                return self._store.record_probe(command)
            case Resend(claim=claim):
                self._tools.start_send(claim, timing)
                return self._store.resend(command, self._owner)
            case LookAgain():
                return self._store.look_again(command)
            case Park():
                return self._store.park(command)
            case Record():
                return self._record(command)
            case RingResults():
                return self._bell.ring_results()
        return self._ask_tool(command, timing)

    def _ask_tool(self, command: Any, timing: Timing) -> Any:
        claim: Claimed = command.claim
        arrived = threading.Event()

        def on_late(evidence: Evidence) -> None:
            with self._lock:
                arrived.set()
                self._overruns.discard(claim.seq)
            self._drive(_late_steps(claim, evidence), self._tools.timing())

        answer = self._tools.answer(command, timing, on_late)
        with self._lock:
            if isinstance(answer, OverLimit) and not arrived.is_set():
                self._overruns.add(claim.seq)
        return answer

    def _record(self, record: Record) -> Recorded:
        """Keep trying: the outcome of a resend stays in memory until it is stored."""
        while True:
            try:
                (recorded,) = self._attempts.record([record])
            except AckboxError as error:
                _log.warning("records_failed", code=error.code, rows=1)
                if self._stop.wait(RECORD_RETRY_SECONDS):
                    raise
            else:
                if recorded is not LOCKED_ROW or self._stop.wait(RECORD_RETRY_SECONDS):
                    return recorded


def _late_steps(claim: Claimed, evidence: Evidence) -> Any:
    outcome = yield from conclude(claim, evidence)
    yield Record(claim, outcome, kind="evidence", number=1)
