"""One outbox's database: short transactions, repeated as a whole where that is harmless.

What is repeated is the transaction, never a call of a tool: `run` is for work that only talks to
the database and may be done again from its start. May import SQLAlchemy and psycopg; nothing else
in the package holds anything that depends on the driver.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..errors import StoreUnavailable
from ..pooler import no_session
from .connection import (
    READ_ONLY,
    SessionLimits,
    connect_arguments,
    make_engine,
    postgres_url,
    quoted,
    sqlstate_of,
)
from .pooler import pooler_behind

T = TypeVar("T")
CommitLost = Literal["repeat", "raise"]

_REPEATED_STATES = {"40001", "40P01", READ_ONLY, "57P01", "57P02", "57P03"}
_REPEATED_CLASSES = {"08", "53"}
_LOCK_TIMEOUT = "55P03"
_STATEMENT_TIMEOUT = "57014"
_BACKOFF_BASE_SECONDS = 0.05
_BACKOFF_CAP_SECONDS = 1.0


class LockTimeout(StoreUnavailable):
    """Another transaction holds a row's lock; the transaction is rolled back and not repeated."""

    default_code = "lock_timeout"
    default_effect = "Nothing was changed."


class CommitUnknown(StoreUnavailable):
    """The connection was lost during COMMIT: the transaction may or may not have happened."""

    default_code = "commit_unknown"
    default_effect = "The transaction may have been committed: read the row before acting on it."


class Database:
    """A pool of connections to the database that holds one outbox's schema.

    Safe to carry across a fork: each process gets an engine of its own. No repr shows the URL.
    """

    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        schema: str = "ackbox",
        pool_size: int = 5,
        application_name: str = "ackbox",
        statement_timeout_seconds: float = 10.0,
        idle_in_transaction_seconds: float = 10.0,
        lock_timeout_seconds: float = 0.5,
        pool_wait_seconds: float = 5.0,
        pooler: bool = False,
    ) -> None:
        """Open nothing yet. Raises ConfigError for a URL or a schema name that cannot be used.

        `pooler` says that `url` leads to a transaction-mode pooler; `direct_url` leads past it.
        """
        self.schema = schema
        self.quoted_schema = quoted(schema)
        self._url = postgres_url(url)
        self._direct_url = postgres_url(direct_url) if direct_url else None if pooler else self._url
        self._limits = SessionLimits(
            statement_timeout_seconds, idle_in_transaction_seconds, lock_timeout_seconds
        )
        self._pool_size = pool_size
        self._pool_wait_seconds = pool_wait_seconds
        self._name = application_name
        self._pooler = pooler
        self._engines: dict[int, Engine] = {}
        self._pause = threading.Event()

    def __repr__(self) -> str:
        return f"Database(schema={self.schema!r}, name={self._name!r})"

    @property
    def pooler(self) -> bool:
        """Whether a transaction-mode pooler is declared."""
        return self._pooler

    @property
    def engine(self) -> Engine:
        """The engine of this process.

        A parent's engine stays referenced in a forked child, unused: closing its connections there
        would end the parent's sessions. `setdefault` makes one winner among racing threads.
        """
        return self._engines.get(os.getpid()) or self._engines.setdefault(
            os.getpid(), self._make_engine()
        )

    def _make_engine(self) -> Engine:
        arguments = connect_arguments(self._url, self._limits, pooler=self._pooler, name=self._name)
        return make_engine(self._url, arguments, self._pool_size, self._pool_wait_seconds)

    def run(
        self,
        work: Callable[[Connection], T],
        *,
        attempts: int = 5,
        commit_lost: CommitLost = "repeat",
    ) -> T:
        """Run `work` in one transaction, commit, and return what it returned.

        The whole transaction is repeated, at most `attempts` times with a short back-off, after a
        serialization failure, a deadlock, a lost connection or a read-only server; then
        StoreUnavailable is raised. With `commit_lost="raise"` a connection lost during COMMIT
        raises CommitUnknown at once. LockTimeout is never repeated here.
        """
        for number in range(1, attempts + 1):
            try:
                return self._once(work)
            except CommitUnknown as error:
                if commit_lost == "raise" or number == attempts:
                    raise error
            except (DBAPIError, PoolTimeout) as error:
                if number == attempts or not may_repeat(error):
                    raise judged(error) from error
            self._pause.wait(_backoff_seconds(number))
        raise ValueError("attempts must be at least 1")

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self.engine.connect() as connection:
            transaction = connection.begin()
            reply = work(connection)
            try:
                transaction.commit()
            except DBAPIError as error:
                if error.connection_invalidated and sqlstate_of(error) != READ_ONLY:
                    raise _commit_unknown(error) from error
                raise
            return reply

    def listen_connection(self) -> psycopg.Connection[Any]:
        """Open a session of its own on the direct URL, in autocommit, for LISTEN.

        The caller closes it. Raises StoreUnavailable where no session can be had, and ConfigError
        where no URL leads past a pooler.
        """
        if self._direct_url is None:
            raise no_session()
        arguments = connect_arguments(
            self._direct_url, self._limits, pooler=False, name=f"{self._name} listen"
        )
        _, parameters = self.engine.dialect.create_connect_args(self._direct_url)
        try:
            return psycopg.connect(**{**parameters, **arguments}, autocommit=True)
        except psycopg.OperationalError as error:
            raise pooler_behind(error) or _unavailable(_first_line(error)) from error

    def dispose(self) -> None:
        """Close this process's idle connections; the next use opens new ones."""
        engine = self._engines.get(os.getpid())
        if engine is not None:
            engine.dispose()


def may_repeat(error: DBAPIError | PoolTimeout) -> bool:
    """Return whether the failed transaction changed nothing and may well succeed the next time."""
    if isinstance(error, PoolTimeout):
        return False
    state = sqlstate_of(error)
    if pooler_behind(error) is not None:
        return False
    if state is None:
        # No answer of the server at all: it could not be reached, or the connection broke.
        return error.connection_invalidated or isinstance(error.orig, psycopg.OperationalError)
    repeated = state in _REPEATED_STATES or state[:2] in _REPEATED_CLASSES
    return repeated or error.connection_invalidated


def judged(error: DBAPIError | PoolTimeout) -> Exception:
    """Return what a failure that is not repeated any more is raised as."""
    if isinstance(error, PoolTimeout):
        return _unavailable("every connection of the pool is in use")
    state = sqlstate_of(error)
    if state == _LOCK_TIMEOUT:
        return LockTimeout("another transaction holds the row", next_step="ask again later")
    if (pooler := pooler_behind(error)) is not None:
        return pooler
    if state == _STATEMENT_TIMEOUT or may_repeat(error):
        return _unavailable(_first_line(error.orig))
    return error


def _commit_unknown(error: DBAPIError) -> CommitUnknown:
    return CommitUnknown(
        f"the connection was lost during COMMIT ({_first_line(error.orig)})",
        next_step="ackbox doctor",
    )


def _unavailable(reason: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"the database cannot be used now ({reason})", next_step="ackbox doctor"
    )


def _first_line(error: BaseException | None) -> str:
    """Return the message without DETAIL and CONTEXT, which may hold stored values."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    return (str(error).splitlines() or ["no reason given"])[0]


def _backoff_seconds(number: int) -> float:
    ceiling = min(_BACKOFF_CAP_SECONDS, _BACKOFF_BASE_SECONDS * 2 ** (number - 1))
    return random.uniform(ceiling / 2, ceiling)
