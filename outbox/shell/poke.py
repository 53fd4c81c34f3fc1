"""Has hold_pass look at a step soon. Always optional: the pass is level-triggered.

May import SQLAlchemy. Runs inside the caller's transaction.
"""

from __future__ import annotations

from sqlalchemy import Connection

from .statements import Statements


def poke_step(connection: Connection, statements: Statements, seq: int) -> int:
    """Have the held rows of row `seq`'s step looked at next; returns how many there are."""
    statement, _ = statements.named("poke_step")
    return len(connection.execute(statement, {"seq": seq}).all())
