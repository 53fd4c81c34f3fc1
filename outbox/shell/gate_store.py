"""Decides gates: one compare-and-set on what the reviewer saw, and the clock that ends waiting.

Approving moves nothing by itself: hold_pass releases the row when nothing else holds it, so that
an approval and an earlier generation's end may come in any order. Opening is part of `put`.
May import the pure core and the store; runs inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from ..gates import REJECTED, TIMED_OUT, refusal_to_decide, rejection
from ..model import Actor, GateDecision, Refusal, State
from .moves import Write, perform
from .rows import RowReader
from .statements import Statements

__all__ = ["REJECTED", "TIMED_OUT", "Gate", "decide_gate", "gates_due", "read_gate"]
__all__ += ["time_out_gate"]


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate as it stands. `clock_started_at` None: something else still holds the row."""

    seq: int
    decision: GateDecision
    fingerprint: str
    opened_at: datetime
    clock_started_at: datetime | None
    decided_at: datetime | None
    actor: str | None
    reason: str | None
    state: State
    live: bool


def read_gate(connection: Connection, statements: Statements, seq: int) -> Gate | None:
    """Return the gate of a row, None where it has none."""
    statement, _ = statements.named("read_gate")
    found = connection.execute(statement, {"seq": seq}).mappings().first()
    if found is None:
        return None
    values: dict[str, Any] = dict(found)
    values["decision"] = GateDecision(values["decision"])
    values["state"] = State(values["state"])
    return Gate(**values)


def decide_gate(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    *,
    seq: int,
    decision: GateDecision,
    actor: Actor,
    actor_name: str,
    reason: str,
    fingerprint: str,
) -> Gate | Refusal:
    """Approve or reject; a rejected row is withdrawn in the same transaction.

    `fingerprint` is the content that was reviewed: a gate of other content is not decided by it.
    The row's lock comes first, as in hold_pass, so the two never wait for each other in a ring.
    Refusals: no_gate, gate_decided, gate_changed, not_held.
    """
    reader.lock(connection, [seq])
    statement, _ = statements.named("decide_gate")
    values = {
        "seq": seq, "decision": decision.value, "actor": actor.value, "actor_name": actor_name,
        "reason": reason, "fingerprint": fingerprint,
    }  # fmt: skip
    decided = connection.execute(statement, values).first()
    if decided is None:
        return _why_not(read_gate(connection, statements, seq), fingerprint)
    if decision is GateDecision.REJECTED:
        _withdraw(connection, statements, reader, seq, actor, actor_name, reason)
    gate = read_gate(connection, statements, seq)
    assert gate is not None, "the gate was just decided"
    return gate


def _why_not(gate: Gate | None, fingerprint: str) -> Refusal:
    if gate is None:
        return refusal_to_decide(None, None, "", fingerprint, State.HELD)
    return refusal_to_decide(gate.decision, gate.actor, gate.fingerprint, fingerprint, gate.state)


def _withdraw(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    seq: int,
    actor: Actor,
    actor_name: str,
    reason: str,
) -> None:
    found = reader.lock(connection, [seq])[seq]
    move, seen = rejection(found.row, reason)
    write = Write(move, actor, found.row.contract_id, seen, actor_name=actor_name)
    perform(connection, statements, [write])


def gates_due(
    connection: Connection, statements: Statements, limit: int
) -> tuple[tuple[int, str], ...]:
    """Return (seq, fingerprint) of open gates whose clock has run out; nothing is locked."""
    statement, limits = statements.named("gates_due")
    rows = connection.execute(statement, {**limits, "row_limit": limit})
    return tuple((row.seq, row.fingerprint) for row in rows)


def time_out_gate(
    connection: Connection, statements: Statements, reader: RowReader, seq: int, fingerprint: str
) -> Gate | Refusal:
    """Reject a gate whose clock has run out, and withdraw its row."""
    return decide_gate(
        connection, statements, reader,
        seq=seq, decision=GateDecision.REJECTED, actor=Actor.OUTBOX, actor_name="gate_limit",
        reason=TIMED_OUT, fingerprint=fingerprint,
    )  # fmt: skip
