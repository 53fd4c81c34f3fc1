"""Looks at held rows under the locks of their step; ends compensations on their targets.

Every decision is `hold.decide`'s, on rows read once more after the locks were had: what committed
while we waited for a lock is then seen. May import the pure core and the store.

Who pokes: nobody has to. A decided gate, an ended compensation and a person's statement do it here;
a settle or a supersede may call `poke_step` in its own transaction, so that the next pass comes to
the row at once instead of after a quarter of its age.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping

from ..commands import HoldAnswer
from ..compensate import CompensationRequest
from ..defaults import Limits
from ..hold import COMPENSATING, MOVED_ON, HoldDecision, decide, refused
from ..model import SETTLED_STATES, Actor, Move, Refusal, Row, State
from ..transitions import EDGE
from .compensation_store import finish_undo, order_compensation
from .database import Database, LockTimeout
from .moves import Observation, Write, order, perform
from .rows import Locked, RowReader
from .statements import Statements

_log = structlog.get_logger(__name__)
LOCKED = "locked"


class HoldStore:
    """Answers the hold pass's commands for one outbox. `draw` returns a random share."""

    def __init__(
        self,
        database: Database,
        statements: Statements,
        limits: Limits,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._statements = statements
        self._reader = RowReader(statements, limits)
        self._draw = draw

    def find_held(self, limit: int) -> tuple[int, ...]:
        """Return at most `limit` rows to look at; nothing is locked."""
        return self._find("find_held", limit)

    def find_undone(self, limit: int) -> tuple[int, ...]:
        """Return at most `limit` targets whose compensation has ended."""
        return self._find("find_undone", limit)

    def hold_step(self, seq: int) -> HoldAnswer:
        """Adopt, release or hold the row, say whose effect to undo first, or look again later."""
        return self._answer(
            lambda c: hold_step(c, self._statements, self._reader, seq=seq, share=self._draw())
        )

    def order(self, seq: int, owner: int, plan: CompensationRequest | Refusal) -> HoldAnswer:
        """Undo the owner's effect if that is still what the held row waits for."""
        return self._answer(
            lambda c: order_for_hold(
                c, self._statements, self._reader,
                seq=seq, owner=owner, plan=plan, share=self._draw(),
            )
        )  # fmt: skip

    def finish_undo(self, seq: int) -> HoldAnswer:
        """Settle a target by its ended compensation, with every adopter, and poke the step."""

        def finish(connection: Connection) -> HoldAnswer:
            edge = finish_undo(connection, self._statements, self._reader, seq)
            return HoldAnswer(edge, edge or MOVED_ON, "")

        return self._answer(finish)

    def _answer(self, work: Callable[[Connection], HoldAnswer]) -> HoldAnswer:
        try:
            return self._database.run(work)
        except LockTimeout:
            # Somebody works on the step right now; the next pass looks at it again.
            return HoldAnswer(None, LOCKED, "")

    def _find(self, name: str, limit: int) -> tuple[int, ...]:
        statement, _ = self._statements.named(name)
        rows = self._database.run(lambda c: list(c.execute(statement, {"row_limit": limit})))
        return tuple(row.seq for row in rows)


def hold_step(
    connection: Connection, statements: Statements, reader: RowReader, *, seq: int, share: float
) -> HoldAnswer:
    """Lock the step, decide on what stands there afterwards, and do it.

    Edges: adopt, release, hold. A row that stays held shows why and is looked at again later.
    """
    found, decision = _decide(connection, statements, reader, seq)
    return _carry_out(connection, statements, found, decision, share)


def order_for_hold(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    *,
    seq: int,
    owner: int,
    plan: CompensationRequest | Refusal,
    share: float,
) -> HoldAnswer:
    """Order the compensation that a held row waits for, decided anew under the step's locks."""
    found, decision = _decide(connection, statements, reader, seq)
    if decision.owner != owner:
        return _carry_out(connection, statements, found, decision, share)
    if isinstance(plan, Refusal):
        return _carry_out(connection, statements, found, refused(decision, plan), share)
    answer = order_compensation(
        connection, statements, reader,
        seq=owner, plan=plan, actor=Actor.OUTBOX, reason=f"in the way of row {seq}",
    )  # fmt: skip
    if isinstance(answer, Refusal):
        return _carry_out(connection, statements, found, refused(decision, answer), share)
    _carry_out(connection, statements, found, replace(decision, owner=None), share)
    return HoldAnswer("order", COMPENSATING, plan.content.lane)


def _decide(
    connection: Connection, statements: Statements, reader: RowReader, seq: int
) -> tuple[Locked, HoldDecision]:
    reader.lock_step(connection, seq)
    # Read again: a gate, or a generation that committed while we waited, is in no older snapshot.
    step = reader.lock_step(connection, seq)
    found = next(locked for locked in step if locked.row.seq == seq)
    contracts = {locked.row.seq: locked.world.contract for locked in step}
    seqs = sorted(contracts)
    statement, _ = statements.named("ordered_before")
    ordered = [row.seq for row in connection.execute(statement, {"seqs": seqs})]
    return found, decide(found.row, found.world, contracts, ordered)


def _carry_out(
    connection: Connection,
    statements: Statements,
    found: Locked,
    decision: HoldDecision,
    share: float,
) -> HoldAnswer:
    row = found.row
    if decision.move is not None:
        seen = _order_of(connection, statements, decision.move)
        write = Write(decision.move, Actor.OUTBOX, row.contract_id, seen)
        moved = perform(connection, statements, [write])
        edge = decision.move.edge if row.seq in moved else None
        return HoldAnswer(edge, decision.reason if edge else MOVED_ON, row.lane)
    if decision.owner is None and row.state is State.HELD:
        _rearm(connection, statements, row, decision, share)
    return HoldAnswer(None, decision.reason, row.lane, decision.owner)


def _order_of(connection: Connection, statements: Statements, move: Move) -> Observation | None:
    if EDGE[move.edge].target not in SETTLED_STATES:
        return None
    owner = settled_by(connection, statements, move.adopted_from or move.seq)
    if owner is None:
        return order(move.edge)
    # An adopter is told the owner's outcome as its own.
    return Observation("order", owner["outcome"], owner["document"], ref=owner["ref"])


def settled_by(connection: Connection, statements: Statements, seq: int) -> RowMapping | None:
    """Return the observation (outcome, ref, document) that settled a row, None if it is open."""
    statement, _ = statements.named("settled_by")
    return connection.execute(statement, {"seq": seq}).mappings().first()


def _rearm(
    connection: Connection,
    statements: Statements,
    row: Row,
    decision: HoldDecision,
    share: float,
) -> None:
    detail = None if decision.generation is None else {"generation": decision.generation}
    values: dict[str, Any] = {
        "seq": row.seq, "reason": decision.reason, "needs_person": decision.needs_person,
        "starts_gate_clock": decision.starts_gate_clock, "share": share,
        "detail": None if detail is None else json.dumps(detail),
    }  # fmt: skip
    statement, limits = statements.named("rearm_hold")
    answer = connection.execute(statement, {**limits, **values}).first()
    if answer is not None and answer.newly_parked:
        _log.error("parked", seq=row.seq, reason=decision.reason)
