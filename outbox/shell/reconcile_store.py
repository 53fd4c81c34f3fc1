"""The reconciler's side of one outbox: unknown rows, probes' answers, resends, parking.

Any number of reconcilers may run; a lease on `probe_at` keeps them from doing the same work, and
where both do it the locks and the fence make the second a no. May import the pure core, the store.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import Connection, RowMapping

from ..commands import (
    Claimed,
    LookAgain,
    NotMarked,
    Park,
    Recorded,
    RecordProbe,
    Resend,
    Unresolved,
)
from ..contract import ToolContract
from ..defaults import Limits
from ..model import SETTLED_STATES, Actor, State, World
from ..reconcile import (
    FOUND,
    ProbeDecision,
    decide_probe,
    divergence_reason,
    probe_observation,
    resend_move,
    resent,
)
from ..transitions import refusal_of
from .claim_store import claimed_row, target_row
from .database import CommitUnknown, Database
from .divergence import diverge
from .moves import Moved, Observation, Write, observe, perform
from .poke import poke_step
from .rows import Locked, RowReader
from .statements import Statements

_log = structlog.get_logger(__name__)


class ReconcileStore:
    """Answers the reconciler's commands for one outbox. `draw` returns a random share."""

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

    # -- looking ---------------------------------------------------------------------------------

    def find_unknown(self, limit: int) -> tuple[Unresolved, ...]:
        """Lease at most `limit` unknown rows whose turn has come."""

        def find(connection: Connection) -> tuple[Unresolved, ...]:
            rows = self._rows(connection, "find_unknown", {"row_limit": limit})
            return tuple(self._unresolved(connection, row) for row in rows)

        return self._database.run(find)

    def _unresolved(self, connection: Connection, row: RowMapping) -> Unresolved:
        target = None
        if row["compensates"] is not None:
            (facts,) = self._rows(connection, "target", {"seq": row["compensates"]})
            target = target_row(facts)
        contract = self._reader.contract(connection, row["contract_id"])
        return Unresolved(
            claim=claimed_row(row, target),
            contract=contract or ToolContract(row["tool"], row["tool_version"]),
            probes=row["probes"], resends=row["resends"], quiet=row["quiet"],
            parked=row["parked"], may_resend=row["may_resend"], too_old=row["too_old"],
            resend_later=row["resend_later"],
        )  # fmt: skip

    def look_again(self, command: LookAgain) -> None:
        """Set when the row is looked at next, not before it is quiet."""
        values = {"delay_seconds": command.delay_seconds, **_held(command.claim)}
        self._database.run(lambda c: self._rows(c, "look_again", values))

    def park(self, command: Park) -> None:
        """Put the row in front of a person and raise the alert, once; slower looks go on."""
        values = {
            "delay_seconds": command.delay_seconds, "reason": command.reason,
            **_held(command.claim),
        }  # fmt: skip
        rows = self._database.run(lambda c: self._rows(c, "park", values))
        if any(row["newly_parked"] for row in rows):
            claim = command.claim
            _log.error(
                "parked", intent_id=claim.intent_id, generation=claim.generation,
                tool=claim.tool, reason=command.reason,
            )  # fmt: skip

    # -- a probe's answer ------------------------------------------------------------------------

    def record_probe(self, command: RecordProbe) -> Recorded:
        """Keep a probe's answer and take the edge that it proves; it never makes a row quiet."""
        return self._database.run(
            lambda c: record_probe(c, self._statements, self._reader, command, self._draw())
        )

    # -- the resend ------------------------------------------------------------------------------

    def resend(self, command: Resend, owner: UUID) -> Claimed | NotMarked:
        """Take the row for one more send under the same key; NotMarked sends nothing.

        After a lost COMMIT the row is read again by owner and fence: another reconciler's resend
        has the same fence, and must not be sent twice.
        """
        try:
            return self._database.run(
                lambda c: take_for_resend(c, self._statements, self._reader, command, owner),
                commit_lost="raise",
            )
        except CommitUnknown:
            return self._reread(command, owner)

    def _reread(self, command: Resend, owner: UUID) -> Claimed | NotMarked:
        taken = resent(command.claim, command.claim.fence + 1)
        held = json.dumps([{"seq": taken.seq, "fence": taken.fence}])
        values = {"held": held, "owner": str(owner)}
        rows = self._database.run(lambda c: self._rows(c, "reread", values))
        if any(row["state"] == State.AWAITING_ACK.value for row in rows):
            return taken
        return NotMarked("commit_unknown")

    def _rows(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())


def _held(claim: Claimed) -> dict[str, int]:
    return {"seq": claim.seq, "fence": claim.fence}


def take_for_resend(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    command: Resend,
    owner: UUID,
) -> Claimed | NotMarked:
    """Take the resend edge under the locks of the step, and let the reaper see the attempt."""
    claim = command.claim
    step = reader.lock_step(connection, claim.seq)
    found = _own(step, claim.seq)
    move = resend_move(command, owner)
    write = Write(move, Actor.RECONCILER, found.row.contract_id)
    moved = perform(connection, statements, [write]).get(claim.seq)
    if moved is None:
        refused = refusal_of(found.row, move, found.world)
        return NotMarked(refused.code if refused else "not_marked")
    statement, _ = statements.named("open_attempt")
    connection.execute(statement, {"owner": str(owner), "seqs": [claim.seq]})
    return resent(claim, moved.fence)


def record_probe(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    command: RecordProbe,
    share: float = 1.0,
) -> Recorded:
    """Judge a probe's answer on the locked row. Edges: acknowledge, clear, refuse.absent.

    An answer that settles nothing is kept and counted; one that contradicts the row opens a
    divergence, and so does a second effect under the same marker.
    """
    claim = command.claim
    found = _own(reader.lock_step(connection, claim.seq), claim.seq)
    refs = _known_refs(connection, statements, claim.seq) if command.answer == FOUND else set()
    world: World = replace(found.world, share=share)
    decision = decide_probe(found.row, command, world, refs)
    seen = _observation(connection, statements, command)
    moved = _first_move(connection, statements, found, world, decision, seen)
    if moved is None:
        observe(connection, statements, [(claim.seq, claim.fence, seen, Actor.RECONCILER)])
        statement, _ = statements.named("count_probe")
        connection.execute(statement, _held(claim))
    if decision.diverge:
        detail = {"ref": command.ref, "others": list(command.others), "fence": claim.fence}
        diverge(
            connection, statements, claim.seq,
            actor=Actor.RECONCILER, reason=divergence_reason(command), detail=detail,
        )  # fmt: skip
    if moved is None:
        return Recorded(None, found.row.state, decision.code)
    if moved.state in SETTLED_STATES:
        poke_step(connection, statements, claim.seq)
    return Recorded(moved.edge, moved.state, decision.code)


def _first_move(
    connection: Connection,
    statements: Statements,
    found: Locked,
    world: World,
    decision: ProbeDecision,
    seen: Observation,
) -> Moved | None:
    for move in decision.moves:
        if refusal_of(found.row, move, world) is None:
            write = Write(move, Actor.RECONCILER, found.row.contract_id, seen)
            moved = perform(connection, statements, [write]).get(move.seq)
            if moved is not None:
                return moved
    return None


def _observation(
    connection: Connection, statements: Statements, command: RecordProbe
) -> Observation:
    number = next_number(connection, statements, command.claim.seq, command.claim.fence, "probe")
    return probe_observation(command, number)


def next_number(
    connection: Connection, statements: Statements, seq: int, fence: int, kind: str
) -> int:
    """Return the number of a row's next observation of this fence and kind, under its lock."""
    statement, _ = statements.named("next_number")
    values = {"seq": seq, "fence": fence, "kind": kind}
    return int(connection.execute(statement, values).scalar_one())


def _known_refs(connection: Connection, statements: Statements, seq: int) -> set[str]:
    statement, _ = statements.named("known_refs")
    return {row.ref for row in connection.execute(statement, {"seqs": [seq]})}


def _own(step: tuple[Locked, ...], seq: int) -> Locked:
    return next(locked for locked in step if locked.row.seq == seq)
