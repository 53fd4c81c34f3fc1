"""The list of what is to be told, as consumers lease and forget it.

Each statement is in the caller's transaction. May import the pure core and SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..on_told import ToTell
from .statements import Statements


class TellStore:
    """The rows of `to_tell` of one outbox."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def take(
        self, connection: Connection, words: Collection[str], lease_seconds: float
    ) -> ToTell | None:
        """Lease what waits longest in one of the words; None where nothing is due."""
        values = {"words": sorted(words), "lease_seconds": lease_seconds}
        rows = self._execute(connection, "take_to_tell", values)
        return ToTell(**rows[0]) if rows else None

    def done(self, connection: Connection, leased: ToTell) -> bool:
        """Forget it; False where the lease had passed and another consumer has it now."""
        values = {"tell_id": leased.tell_id, "tries": leased.tries}
        return bool(self._execute(connection, "tell_done", values))

    def later(self, connection: Connection, leased: ToTell, delay_seconds: float) -> None:
        """Let go of it until it is due again."""
        values = {
            "tell_id": leased.tell_id,
            "tries": leased.tries,
            "delay_seconds": delay_seconds,
        }
        self._execute(connection, "tell_later", values)

    def forget(self, connection: Connection, words: Collection[str], limit: int) -> int:
        """Forget what is due in any word but these; returns how much that was."""
        values = {"words": sorted(words), "limit": limit}
        return len(self._execute(connection, "forget_to_tell", values))

    def _execute(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())
