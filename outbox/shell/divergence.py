"""Records that evidence contradicts a settled row: mark, event, alert, and hold of the live row.

Runs inside the caller's transaction. May import the pure core, SQLAlchemy and structlog.
"""

from __future__ import annotations

from typing import Any

import structlog
from sqlalchemy import Connection

from ..model import Actor, Move, State
from ..records import Note, Write
from .edge_batch import note, take_edges
from .statements import Statements

_log = structlog.get_logger(__name__)
_HOLDABLE = (State.QUEUED.value, State.EXECUTING.value)


def diverge(
    connection: Connection,
    statements: Statements,
    seq: int,
    *,
    actor: Actor,
    reason: str,
    detail: dict[str, Any] | None = None,
) -> None:
    """Open a divergence on a row and on what hangs on it; never changes a settled state.

    The step's live row is held in the same transaction; hold_pass does it again if this found the
    row elsewhere. `detail` carries both effect references, never arguments.
    """
    statement, _ = statements.named("diverge")
    marked = connection.execute(statement, {"seq": seq}).mappings().all()
    note(connection, statements, [Note(seq, "divergence", actor, reason, detail=detail)])
    _log.error("divergence_opened", seq=seq, reason=reason, rows=[row["seq"] for row in marked])
    holds = [
        Write(Move("hold", row["seq"], State(row["state"]), reason=reason), actor,
              row["contract_id"])
        for row in marked
        if row["live"] and row["state"] in _HOLDABLE
    ]  # fmt: skip
    take_edges(connection, statements, holds)
