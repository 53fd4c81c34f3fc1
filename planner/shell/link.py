"""What every call of a planner goes through: its transaction, its rings, its connection errors.

Shell.
"""

from __future__ import annotations

import time
from typing import TypeVar

import structlog
from psycopg import Error as DriverError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ...outbox.errors import AckboxError, ConfigError, StoreUnavailable
from ...outbox.shell.connection import sqlstate_of
from ...outbox.shell.database import Database
from ...outbox.shell.fitting import Fitting
from .bell import PlannerBell
from .joining import Joined, On, join
from .operations import Operation
from .transactions import PutsInTransactions

T = TypeVar("T")
_NO_SCHEMA = {"42P01", "3F000"}
_ASK_OWN_AGAIN_SECONDS = 30.0
_log = structlog.get_logger(__name__)


class Passage:
    """What the ways of threads and of event loops to an outbox have in common."""

    def __init__(self, bell: PlannerBell, fitting: Fitting, schema: str) -> None:
        self.bell = bell
        self.fitting = fitting
        self.puts = PutsInTransactions(bell.ring)
        self._schema = schema
        self._ask_own_at = 0.0

    def asks_own(self) -> bool:
        """Return whether our own database should be asked who it is before a caller's is joined.

        A put in the caller's transaction needs nothing of ours, so that a database of ours which
        does not answer is asked again only after a while.
        """
        return self.fitting.identity is None and time.monotonic() >= self._ask_own_at

    def own_silent(self, error: Exception) -> None:
        """Note that our own database did not answer."""
        self._ask_own_at = time.monotonic() + _ASK_OWN_AGAIN_SECONDS
        _log.warning("own_database_silent", error=type(error).__name__)

    def alone(self, operation: Operation[T], connection: Connection) -> T:
        """Run an operation in a transaction of our own."""
        try:
            self.fitting.own(connection)
            return operation.work(connection)
        except DBAPIError as error:
            self._refuse_missing_schema(error)
            raise

    def joined(self, operation: Operation[T], joined: Joined) -> T:
        """Run an operation in the caller's transaction, and note what to ring at its end.

        Where the work raises, the caller's transaction is the caller's to end.
        """
        if operation.writes and joined.autocommit:
            raise _autocommit()
        try:
            self.fitting.joined(joined.connection, joined.origin)
            answer = _worked(operation, joined.connection)
        except (DBAPIError, DriverError) as error:
            self._refuse_missing_schema(error)
            raise
        self.puts.noted(joined, operation.created(answer), operation.rings(answer))
        return answer

    def ring(self, operation: Operation[T], answer: T) -> None:
        """Ring what an operation of our own transaction asks for."""
        self.bell.ring({intent.lane for intent in operation.rings(answer)})

    def _refuse_missing_schema(self, error: DBAPIError | DriverError) -> None:
        """Name the command to type for a schema that is gone; anything else is passed on."""
        if sqlstate_of(error) in _NO_SCHEMA:
            raise ConfigError(
                f"the database has no schema {self._schema!r} of ackbox, or an older one",
                next_step="ackbox migrate",
            ) from error


class Link:
    """The way of a planner that threads use."""

    def __init__(self, database: Database, passage: Passage) -> None:
        self.database = database
        self.passage = passage

    def __repr__(self) -> str:
        return repr(self.database)

    def engine(self) -> Engine:
        """Return the engine of our own transactions."""
        return self.database.engine

    def close(self) -> None:
        """Close the connections."""
        self.database.dispose()

    def run(self, operation: Operation[T], on: On | None = None) -> T:
        """Run an operation in the caller's transaction, or in one of our own where there is none.

        Raises ConfigError where the database has no schema, or `on` is nothing to join.
        """
        if on is None:
            answer = self.database.run(lambda c: self.passage.alone(operation, c))
            self.passage.ring(operation, answer)
            return answer
        joined = join(on)
        self.know_own()
        return self.passage.joined(operation, joined)

    def know_own(self) -> None:
        """Learn which outbox our own database holds, if it answers."""
        if self.passage.asks_own():
            try:
                self.database.run(self.passage.fitting.own, attempts=1)
            except (StoreUnavailable, SQLAlchemyError) as error:
                self.passage.own_silent(error)

    def note(self, operation: Operation[None]) -> None:
        """Record a refusal on a connection of our own: the caller's transaction may roll back.

        Whatever goes wrong here never hides the refusal itself.
        """
        try:
            self.database.run(operation.work, attempts=1)
        except (AckboxError, SQLAlchemyError) as error:
            not_recorded(error)


def not_recorded(error: Exception) -> None:
    """Log that a refusal is missing in the record."""
    _log.warning("refusal_not_recorded", error=type(error).__name__)


def _worked(operation: Operation[T], connection: Connection) -> T:
    if not operation.savepoint:
        return operation.work(connection)
    with connection.begin_nested():
        return operation.work(connection)


def _autocommit() -> ConfigError:
    return ConfigError(
        "the connection given is in autocommit mode and no transaction is open on it",
        next_step="open a transaction on it, or leave on= out: then the call commits by itself",
    )
