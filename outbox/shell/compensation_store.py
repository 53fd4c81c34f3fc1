"""Orders compensations and ends them on their targets, under the locks of the target's step.

Runs inside the caller's transaction. May import the pure core and the store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..commands import Target
from ..compensate import (
    IS_COMPENSATION,
    CompensationRequest,
    OrderedCompensation,
    proven_handle,
    refusal_to_undo,
    withdrawal,
)
from ..identity import undo_id
from ..model import SETTLED_STATES, Actor, Move, Refusal, State
from .claim_store import target_row
from .moves import Write, order, perform
from .poke import poke_step
from .rows import Locked, RowReader
from .statements import Statements

_UNDOABLE = (State.COMMITTED, State.INDETERMINATE)


@dataclass(frozen=True, slots=True)
class UndoTarget:
    """The effect that a compensation would undo, as its adapter has to know it."""

    seq: int
    tool: str
    version: int
    state: State
    target: Target


def undo_target(connection: Connection, statements: Statements, seq: int) -> UndoTarget | None:
    """Read whose effect a compensation of `seq` would undo; an adopter's owner stands in for it.

    None where there is no such row. Nothing is locked: `order_compensation` judges anew.
    """
    found = _one(connection, statements, "undo_target", seq)
    if found is None:
        return None
    facts = _one(connection, statements, "target", found["seq"])
    assert facts is not None, "the row was just read, and rows are never deleted before"
    return UndoTarget(
        found["seq"], found["tool"], found["tool_version"], State(found["state"]),
        target_row(facts),
    )  # fmt: skip


def order_compensation(
    connection: Connection,
    statements: Statements,
    reader: RowReader,
    *,
    seq: int,
    plan: CompensationRequest,
    actor: Actor,
    actor_name: str | None = None,
    reason: str | None = None,
) -> OrderedCompensation | Refusal:
    """Insert the intent that undoes a row's effect, or say why not. The put edge, on that intent.

    An adopter's request goes to the owner of the effect. A row of which nothing was sent is
    withdrawn instead; an open compensation is returned as it is, whatever `plan` says; after one
    that failed or was cancelled the next generation of the compensation's intent is inserted.
    """
    found = _one(connection, statements, "undo_target", seq)
    if found is None:
        return Refusal("no_such_intent", f"row {seq} does not exist")
    if found["compensates"] is not None:
        return Refusal(IS_COMPENSATION, "a compensation is not compensated")
    finish_undo(connection, statements, reader, seq)
    target = _locked(reader.lock_step(connection, seq), seq)
    current = _one(connection, statements, "undo_of", target.row.seq)
    if current is not None:
        return _open(target, current)
    withdraw = withdrawal(target.row)
    if withdraw is not None:
        return _withdraw(connection, statements, target, withdraw, actor, actor_name)
    return _insert(connection, statements, target, found["intent_id"], plan,
                   actor=actor, actor_name=actor_name, reason=reason)  # fmt: skip


def _insert(
    connection: Connection,
    statements: Statements,
    target: Locked,
    intent_id: str,
    plan: CompensationRequest,
    *,
    actor: Actor,
    actor_name: str | None,
    reason: str | None,
) -> OrderedCompensation | Refusal:
    settled = _one(connection, statements, "settled_by", target.row.seq)
    ref = proven_handle(settled["kind"], settled["ref"]) if settled is not None else None
    refused = refusal_to_undo(target.row, target.world, plan, ref)
    if refused is not None:
        return refused
    undo = undo_id(intent_id, target.row.generation)
    content = plan.content
    values = {
        "seq": target.row.seq, "intent_id": undo, "tool": content.tool,
        "version": content.tool_version, "lane": content.lane, "args": json.dumps(content.args),
        "fingerprint": content.fingerprint, "content": content.content, "actor": actor.value,
        "actor_name": actor_name, "reason": reason,
    }  # fmt: skip
    statement, limits = statements.named("insert_compensation")
    inserted = connection.execute(statement, {**limits, **values}).mappings().first()
    if inserted is None:
        return Refusal("guard_failed", "the row moved on")
    return OrderedCompensation(
        target.row.seq, inserted["seq"], undo, inserted["generation"], created=True
    )


def _open(target: Locked, current: RowMapping) -> OrderedCompensation:
    return OrderedCompensation(
        target.row.seq, current["seq"], current["intent_id"], current["generation"]
    )


def _withdraw(
    connection: Connection,
    statements: Statements,
    target: Locked,
    move: Move,
    actor: Actor,
    actor_name: str | None,
) -> OrderedCompensation | Refusal:
    write = Write(move, actor, target.row.contract_id, order("compensate"), actor_name=actor_name)
    if not perform(connection, statements, [write]):
        return Refusal("guard_failed", "the row moved on")
    return OrderedCompensation(target.row.seq, withdrawn=True)


def finish_undo(
    connection: Connection, statements: Statements, reader: RowReader, seq: int
) -> str | None:
    """Settle a target by its ended compensation; returns the edge, "undo_ended", or None.

    Edges: compensate, and compensate.adopter on every adopter, in this transaction. A compensation
    that ended without undoing leaves the target where it was, and lets it bind.
    """
    reader.lock_step(connection, seq)
    step = reader.lock_step(connection, seq)
    target = _locked(step, seq)
    undo = _one(connection, statements, "undo_of", target.row.seq)
    if undo is None or State(undo["state"]) not in SETTLED_STATES:
        return None
    edge: str | None = None
    if State(undo["state"]) is State.COMMITTED and target.row.state in _UNDOABLE:
        edge = _compensate(connection, statements, step, target, undo["intent_id"])
    if edge is None:
        edge = _reset(connection, statements, target, undo["seq"])
    poke_step(connection, statements, target.row.seq)
    return edge


def _compensate(
    connection: Connection,
    statements: Statements,
    step: Sequence[Locked],
    target: Locked,
    undo: str,
) -> str | None:
    move = Move("compensate", target.row.seq, target.row.state, reason=undo)
    seen = order(f"undone by {undo}")
    write = Write(move, Actor.OUTBOX, target.row.contract_id, seen)
    if not perform(connection, statements, [write]):
        return None
    # In a statement of their own: their guard looks at the owner as it stands now.
    perform(connection, statements, adopters_follow(step, target.row.seq, Actor.OUTBOX, undo))
    return "compensate"


def adopters_follow(
    step: Sequence[Locked], owner: int, actor: Actor, reason: str, actor_name: str | None = None
) -> list[Write]:
    """Return the moves by which every adopter of an undone effect is compensated with it."""
    return [
        Write(
            Move("compensate.adopter", adopter.row.seq, adopter.row.state, reason=reason),
            actor, adopter.row.contract_id, order(f"undone with {reason}"), actor_name,
        )
        for adopter in step
        if adopter.row.adopted_from == owner and adopter.row.state is State.COMMITTED
    ]  # fmt: skip


def _reset(connection: Connection, statements: Statements, target: Locked, undo: int) -> str | None:
    statement, _ = statements.named("reset_undo")
    reset = connection.execute(statement, {"seq": target.row.seq, "undo": undo}).first()
    return "undo_ended" if reset is not None else None


def _locked(step: Sequence[Locked], seq: int) -> Locked:
    """Return the owner of the effect that row `seq` stands for."""
    by_seq = {locked.row.seq: locked for locked in step}
    return by_seq[by_seq[seq].row.adopted_from or seq]


def _one(connection: Connection, statements: Statements, name: str, seq: int) -> RowMapping | None:
    statement, limits = statements.named(name)
    values: dict[str, Any] = {**limits, "seq": seq}
    return connection.execute(statement, values).mappings().first()
