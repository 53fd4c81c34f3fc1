"""The list of what is to be told, as consumers lease and forget it.

Each statement is in the caller's transaction. May import the pure core and SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..on_told import ToTell
from .statements import Statements

Asked = tuple[str, str | None]
"""A word and the tool whose steps are asked for, None for any tool's."""


class TellStore:
    """The rows of `to_tell` of one outbox."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def take(
        self, connection: Connection, asked: Collection[Asked], lease_seconds: float
    ) -> ToTell | None:
        """Lease what waits longest of what is asked for; None where nothing of that is due."""
        values = {**_asked(asked), "lease_seconds": lease_seconds}
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

    def forget(
        self, connection: Connection, asked: Collection[Asked], kept_seconds: float, limit: int
    ) -> int:
        """Forget what has been due for so long and is not asked for; returns how much that was."""
        values = {**_asked(asked), "kept_seconds": kept_seconds, "limit": limit}
        return len(self._execute(connection, "forget_to_tell", values))

    def _execute(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())


def _asked(asked: Collection[Asked]) -> dict[str, list[str]]:
    pairs = sorted((word, tool) for word, tool in asked if tool is not None)
    return {
        "words": sorted(word for word, tool in asked if tool is None),
        "tool_words": [word for word, _ in pairs],
        "tools": [tool for _, tool in pairs],
    }
