"""Performs edges on batches of rows inside the caller's transaction: the store's one way to write.

Every move carries its event; a move into a settled state carries the observation that settles it.
May import the pure core and SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from ..model import Actor, State
from ..records import Moved, Note, Observation, Write, observation_of, order
from .divergence import diverge
from .edge_batch import note, observe, take_edges
from .statements import Statements

__all__ = [
    "Moved",
    "Note",
    "Observation",
    "Write",
    "note",
    "observation_of",
    "observe",
    "order",
    "perform",
]

_SETTLED_AS_NOTHING = (State.FAILED, State.CANCELLED)


def perform(
    connection: Connection, statements: Statements, writes: Iterable[Write]
) -> dict[int, Moved]:
    """Perform the moves, one statement per edge, and return those that took place, by seq.

    A move that is missing in the answer met a guard that does not hold; nothing of it is kept but
    its observation. A row that settles as not applied while a send of it is in doubt opens a
    divergence in the same transaction.
    """
    done = take_edges(connection, statements, writes)
    for seq in _doubtful(connection, statements, done.values()):
        diverge(connection, statements, seq, actor=Actor.OUTBOX, reason="in_doubt")
    return done


def _doubtful(connection: Connection, statements: Statements, done: Iterable[Moved]) -> list[int]:
    """Return the rows that a person had queued again at their own risk and that now settle."""
    settled = [moved.seq for moved in done if moved.state in _SETTLED_AS_NOTHING]
    if not settled:
        return []
    statement, _ = statements.named("doubt")
    return [row.seq for row in connection.execute(statement, {"seqs": sorted(settled)})]
