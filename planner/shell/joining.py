"""What `on=` takes, and the caller's open transaction as a planner sees it.

Decides which kinds of connection and session may be joined, and that none in autocommit mode is:
there is no transaction with which an intent could commit or roll back. Shell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session
from sqlalchemy.util import greenlet_spawn

from ...outbox.errors import ConfigError
from ...outbox.shell.plain_connection import (
    Driver,
    in_transaction,
    plain_async_connection,
    plain_connection,
)

T = TypeVar("T")
On = Connection | Session | scoped_session[Any] | psycopg.Connection[Any]
AsyncOn = AsyncConnection | AsyncSession | async_scoped_session[Any] | psycopg.AsyncConnection[Any]
_USE_ASYNC = "use ackbox.AsyncPlanner, which takes async connections and sessions"
_USE_SYNC = "use ackbox.Planner, which takes connections and sessions of threads"
_SYNC = (Connection, Session, scoped_session, psycopg.Connection, Engine)
_ASYNC = (AsyncConnection, AsyncSession, async_scoped_session, psycopg.AsyncConnection, AsyncEngine)


@dataclass(frozen=True, slots=True)
class Joined:
    """A caller's transaction: what to run on, who ends it, and which pool or server it is on."""

    connection: Connection
    owner: Connection | Session | Driver
    origin: object

    @property
    def session(self) -> Session | None:
        """The session that ends the transaction, where one does."""
        return self.owner if isinstance(self.owner, Session) else None

    @property
    def holder(self) -> Connection | Driver:
        """The connection on which one can see whether the transaction is open."""
        return self.connection if isinstance(self.owner, Session) else self.owner

    @property
    def autocommit(self) -> bool:
        """Whether each statement would be a transaction of its own."""
        if isinstance(self.owner, psycopg.Connection | psycopg.AsyncConnection):
            return self.owner.autocommit and not in_transaction(self.owner)
        driver: Any = self.connection.connection.dbapi_connection
        return bool(getattr(driver, "autocommit", False))


def is_open(holder: Connection | Driver) -> bool:
    """Return whether a transaction is open on a connection; asks no server."""
    if isinstance(holder, Connection):
        return not holder.closed and holder.in_transaction()
    return in_transaction(holder)


def join(on: On) -> Joined:
    """Return the transaction of what a sync planner was given. Raises ConfigError."""
    if isinstance(on, scoped_session):
        on = on()
    if isinstance(on, psycopg.Connection):
        return Joined(plain_connection(on), on, _server(on))
    if isinstance(on, Session):
        connection = on.connection()
        return Joined(connection, on, connection.engine.pool)
    if isinstance(on, Connection):
        return Joined(on, on, on.engine.pool)
    raise _refused(on, "a SQLAlchemy Connection or Session, or a psycopg Connection")


async def join_async(on: AsyncOn, work: Callable[[Joined], T]) -> T:
    """Run work on the transaction of what an async planner was given. Raises ConfigError."""
    if isinstance(on, async_scoped_session):
        on = on()
    if isinstance(on, psycopg.AsyncConnection):
        plain = Joined(plain_async_connection(on), on, _server(on))
        return await greenlet_spawn(work, plain)
    if isinstance(on, AsyncSession | AsyncConnection):
        return await on.run_sync(lambda sync: work(join(sync)))
    raise _refused(on, "a SQLAlchemy AsyncConnection or AsyncSession, or a psycopg AsyncConnection")


def refuse_async(engine: object) -> None:
    """Raise ConfigError for an engine of event loops where one of threads is needed."""
    if isinstance(engine, AsyncEngine):
        raise ConfigError("an AsyncEngine was given to ackbox.Planner", next_step=_USE_ASYNC)


def refuse_sync(engine: object) -> None:
    """Raise ConfigError for an engine of threads where one of event loops is needed."""
    if isinstance(engine, Engine):
        raise ConfigError("an Engine was given to ackbox.AsyncPlanner", next_step=_USE_SYNC)


def _server(driver: Driver) -> str:
    """Return which database a driver's connection is on; a pool of it has no name to us."""
    info = driver.info
    return f"{info.host}:{info.port}/{info.dbname}"


def _refused(on: object, taken: str) -> ConfigError:
    given = type(on).__name__
    if isinstance(on, _ASYNC) and "Async" not in taken:
        step = _USE_ASYNC
    elif isinstance(on, _SYNC) and "Async" in taken:
        step = _USE_SYNC
    else:
        step = "pass the session or connection that your transaction is open on"
    return ConfigError(f"on= takes {taken}, not {given}", next_step=step)
