"""Binds and hands over rows for which a plan has callbacks.

`on_bound` runs in the bind's own transaction, one row a transaction, and undoes the bind by
raising. `after_bound` runs after it and at least once: a lease keeps two consumers apart, and
`handed_at` is written when it has returned. Shell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.backoff import backoff_seconds
from ...outbox.commands import BindAnswer, BindBatch, HandOverBatch
from ...outbox.defaults import Limits
from ...outbox.errors import ProtocolViolation
from ...outbox.intent import Intent
from ...outbox.shell.bind_store import BOUND, SETTLED, BindStore, TakenBatch
from ...outbox.shell.database import Database
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.telling import tell
from ...outbox.told import Told
from ..plan import Callbacks
from .callbacks import Bound, CallbackFailed, call
from .transactions import note_on

_log = structlog.get_logger(__name__)
BIND_FAILED = "bind_failed"
HAND_OVER_FAILED = "hand_over_failed"


@dataclass(frozen=True, slots=True)
class Leases:
    """How long one consumer may be at a batch, or at one row's hand-over."""

    bind_seconds: float = 30.0
    hand_over_seconds: float = 60.0


class CallbackBinder:
    """Binds batches of one plan. `rung` gets the lanes of what callbacks have put."""

    def __init__(
        self,
        database: Database,
        bind_store: BindStore,
        planner_store: PlannerStore,
        callbacks: Callbacks,
        limits: Limits,
        leases: Leases,
        rung: Callable[[Collection[str]], None],
    ) -> None:
        self._database = database
        self._bind_store = bind_store
        self._planner_store = planner_store
        self._callbacks = callbacks
        self._limits = limits
        self._leases = leases
        self._rung = rung

    # -- bind ------------------------------------------------------------------------------------

    def bind(self, command: BindBatch) -> BindAnswer:
        """Bind one batch; rows whose callback raised are kept for later, the others go on."""
        batch = self._take(command.batch_id, SETTLED, self._leases.bind_seconds)
        if batch is None:
            return BindAnswer()
        alone = [seq for seq, tool in batch.rows if tool in self._callbacks.on_bound]
        together = [seq for seq, tool in batch.rows if tool not in self._callbacks.on_bound]
        hand_over = tuple(self._callbacks.after_bound)
        answers = [self._database.run(lambda c: self._bind_store.bind_rows(c, together, hand_over))]
        failed = []
        for seq in alone:
            answer = self._bind_alone(seq, hand_over)
            if answer is None:
                failed.append(seq)
            else:
                answers.append(answer)
        self._finish(batch, failed)
        return _sum(answers)

    def _bind_alone(self, seq: int, hand_over: Sequence[str]) -> BindAnswer | None:
        """Bind one row with its callback; None where the callback raised and nothing is bound."""
        lanes: set[str] = set()

        def work(connection: Connection) -> BindAnswer:
            answer = self._bind_store.bind_rows(connection, [seq], hand_over)
            if answer.bound:
                lanes.clear()
                lanes.update(self._call_inside(connection, seq))
            return answer

        try:
            answer = self._database.run(work)
        except CallbackFailed as failed:
            self._alert(seq, BIND_FAILED, failed)
            return None
        self._rung(lanes)
        return answer

    def _call_inside(self, connection: Connection, seq: int) -> set[str]:
        """Run on_bound in the bind's transaction; returns the lanes of what it has put there."""
        lanes = note_on(connection)
        intent, told = self._read(connection, seq)
        bound = Bound(intent, told, connection)
        call(self._callbacks.on_bound[intent.tool], bound)
        self._check_bind(connection, seq)
        return lanes

    def _check_bind(self, connection: Connection, seq: int) -> None:
        """Raise CallbackFailed unless COMMIT will keep the bind.

        A callback may swallow the error of a statement: COMMIT is then a silent rollback.
        """
        try:
            kept = self._bind_store.still_bound(connection, seq)
        except SQLAlchemyError as error:
            raise CallbackFailed(type(error).__name__) from error
        if not kept:
            raise CallbackFailed("TransactionEnded")

    # -- hand over -------------------------------------------------------------------------------

    def hand_over(self, command: HandOverBatch) -> int:
        """Run after_bound for the rows of a batch that nobody is at; returns how many returned."""
        batch = self._take(command.batch_id, BOUND, self._leases.hand_over_seconds)
        if batch is None:
            return 0
        handed = sum(self._hand_over_row(seq, tool) for seq, tool in batch.rows)
        seqs = [seq for seq, _ in batch.rows]
        left = self._database.run(lambda c: self._bind_store.unhanded(c, seqs))
        self._finish(batch, left)
        return handed

    def _hand_over_row(self, seq: int, tool: str) -> bool:
        seconds = self._leases.hand_over_seconds
        if not self._database.run(lambda c: self._bind_store.lease_hand_over(c, seq, seconds)):
            return False
        callback = self._callbacks.after_bound.get(tool)
        intent, told = self._database.run(lambda c: self._read(c, seq))
        try:
            if callback is not None:
                call(callback, Bound(intent, told))
        except CallbackFailed as failed:
            self._database.run(lambda c: self._bind_store.hand_later(c, seq))
            self._alert(seq, HAND_OVER_FAILED, failed)
            return False
        return self._database.run(lambda c: self._bind_store.handed(c, seq))

    # -- shared ----------------------------------------------------------------------------------

    def _take(self, batch_id: int, stage: str, lease_seconds: float) -> TakenBatch | None:
        return self._database.run(
            lambda c: self._bind_store.take(c, batch_id, stage, lease_seconds)
        )

    def _finish(self, batch: TakenBatch, left: Sequence[int]) -> None:
        delay = backoff_seconds(batch.tries, random.uniform(0.5, 1.0), self._limits)
        self._database.run(lambda c: self._bind_store.finish(c, batch, left, delay))

    def _read(self, connection: Connection, seq: int) -> tuple[Intent, Told]:
        intent = self._bind_store.intents(connection, [seq])[seq]
        name = (intent.namespace, intent.intent_id)
        step, now = self._planner_store.steps(connection, [name])[name]
        telling = tell(step, intent.generation, now)
        if telling is None:
            raise ProtocolViolation(
                f"row {seq} is bound and cannot be told", next_step="ackbox doctor"
            )
        return intent, telling.told

    def _alert(self, seq: int, name: str, failed: CallbackFailed) -> None:
        _log.error(name, seq=seq, error=failed.error_type)
        self._database.run(lambda c: self._bind_store.note_failed(c, seq, name, failed.error_type))


def _sum(answers: Sequence[BindAnswer]) -> BindAnswer:
    return BindAnswer(
        bound=sum(answer.bound for answer in answers),
        stale=sum(answer.stale for answer in answers),
        duplicate=sum(answer.duplicate for answer in answers),
        waiting=sum(answer.waiting for answer in answers),
    )
