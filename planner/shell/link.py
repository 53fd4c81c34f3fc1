"""What every call of a planner goes through: its transaction, its rings, its connection errors.

Shell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ...outbox.errors import ConfigError
from ...outbox.intent import Intent
from ...outbox.shell.database import Database
from .bell import PlannerBell
from .transactions import PutsInTransactions

T = TypeVar("T")
On = Connection | Session
_NO_SCHEMA = {"42P01", "3F000"}


class Link:
    """One planner's way to its outbox, on its own connections or on a caller's."""

    def __init__(self, database: Database, bell: PlannerBell) -> None:
        self.database = database
        self.bell = bell
        self.puts = PutsInTransactions(bell.ring)

    def run(self, work: Callable[[Connection], T], on: On | None, *, savepoint: bool = False) -> T:
        """Run work in the caller's transaction, or in one of our own where there is none.

        `savepoint` undoes work that raises, and nothing else of the caller's. Raises ConfigError
        where the database has no schema; the caller's transaction is then the caller's to end.
        """
        try:
            if on is None:
                return self.database.run(work)
            connection = _connection_of(on)
            if not savepoint:
                return work(connection)
            with connection.begin_nested():
                return work(connection)
        except DBAPIError as error:
            if _sqlstate(error) in _NO_SCHEMA:
                raise _no_schema(self.database.schema) from error
            raise

    def rung(self, intents: Sequence[Intent], on: On | None) -> None:
        """Ring the lanes of what was put: now, or when the caller's transaction has ended."""
        lanes = {intent.lane for intent in intents}
        if on is None:
            self.bell.ring(lanes)
        elif intents:
            self.puts.noted(on, [intent.seq for intent in intents], lanes)


def _connection_of(on: On) -> Connection:
    if isinstance(on, Session):
        return on.connection()
    if isinstance(on, Connection):
        return on
    raise ConfigError(
        f"on= takes a SQLAlchemy Connection or Session, not {type(on).__name__}",
        next_step="pass the session or connection that your transaction is open on",
    )


def _sqlstate(error: DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None) or getattr(error.orig, "pgcode", None)
    return state if isinstance(state, str) else None


def _no_schema(schema: str) -> ConfigError:
    return ConfigError(
        f"the database has no schema {schema!r} of ackbox, or an older one",
        next_step="ackbox migrate",
    )
