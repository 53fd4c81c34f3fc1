"""Writes edges, observations and events in batches: what `moves` and `divergence` stand on.

May import the pure core and SQLAlchemy. Callers use `moves.perform`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from ..model import Actor, Move, State
from ..records import Moved, Note, Observation, Write
from .statements import Statements

_SAID = tuple(field.name for field in fields(Move))


def move_record(write: Write) -> dict[str, Any]:
    """Return a move as the edge statement reads it from its JSON parameter."""
    record = {name: getattr(write.move, name) for name in _SAID if name != "edge"}
    record["actor"] = write.actor.value
    record["actor_name"] = write.actor_name
    record["detail"] = write.detail
    if write.move.contract_id is None:
        record["contract_id"] = write.contract_id
    if write.observation is not None:
        seen = write.observation
        record |= {
            "kind": seen.kind, "number": seen.number, "outcome": seen.outcome,
            "ref": seen.ref, "document": seen.document,
        }  # fmt: skip
    return record


def take_edges(
    connection: Connection, statements: Statements, writes: Iterable[Write]
) -> dict[int, Moved]:
    """Perform the moves, one statement per edge, and return those that took place, by seq.

    A move that is missing in the answer met a guard that does not hold; nothing of it is kept but
    its observation.
    """
    done: dict[int, Moved] = {}
    ordered = sorted(writes, key=lambda write: (write.move.edge, write.move.seq))
    for edge, group in groupby(ordered, key=lambda write: write.move.edge):
        statement, limits = statements.edge(edge)
        moves = json.dumps([move_record(write) for write in group], default=str)
        found = connection.execute(statement, {"moves": moves, "edge": edge, **limits})
        for seq, state, fence in found:
            done[seq] = Moved(seq, edge, State(state), fence)
    return done


def observe(
    connection: Connection,
    statements: Statements,
    seen: Iterable[tuple[int, int, Observation, Actor]],
) -> None:
    """Keep observations (seq, fence, observation, actor) that move nothing."""
    records = [
        {
            "seq": seq, "fence": fence, "kind": item.kind, "number": item.number,
            "outcome": item.outcome, "ref": item.ref, "document": item.document,
            "actor": actor.value,
        }
        for seq, fence, item, actor in seen
    ]  # fmt: skip
    if records:
        statement, _ = statements.named("observe")
        connection.execute(statement, {"observations": json.dumps(records, default=str)})


def note(connection: Connection, statements: Statements, notes: Iterable[Note]) -> None:
    """Append events beside the edges' own."""
    records = [
        {
            "seq": item.seq, "name": item.name, "actor": item.actor.value, "reason": item.reason,
            "fence": item.fence, "state": item.state.value if item.state else None,
            "actor_name": item.actor_name, "subject": item.subject, "detail": item.detail,
        }
        for item in notes
    ]  # fmt: skip
    if records:
        statement, _ = statements.named("note")
        connection.execute(statement, {"notes": json.dumps(records, default=str)})
