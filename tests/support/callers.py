"""An application's own transaction, in every kind that `on=` takes, under one face that is awaited.

The table `own` stands for the application's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from ackbox.outbox.shell.database import Database
from ackbox.planner.shell.async_planner import AsyncPlanner
from ackbox.planner.shell.planner import Planner

T = TypeVar("T")
KINDS = (
    "connection+psycopg", "connection+psycopg2", "session+psycopg", "session+psycopg2",
    "scoped_session+psycopg", "plain",
    "async_connection+psycopg", "async_connection+asyncpg",
    "async_session+psycopg", "async_session+asyncpg", "async_plain",
)  # fmt: skip
REPEATABLE_READ = "REPEATABLE READ"
AUTOCOMMIT = "AUTOCOMMIT"


def with_driver(url: str, driver: str) -> str:
    """Return the URL for SQLAlchemy with a driver."""
    named = make_url(url).set(drivername=f"postgresql+{driver}")
    return named.render_as_string(hide_password=False)


def plain_url(url: str) -> str:
    """Return the URL as a driver without SQLAlchemy takes it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def add_own_table(url: str) -> str:
    """Create the application's table; return the URL."""
    with psycopg.connect(plain_url(url), autocommit=True) as connection:
        connection.execute("CREATE TABLE own (n integer NOT NULL)")
    return url


def own_rows(url: str) -> list[int]:
    """Return what is committed in the application's table."""
    with psycopg.connect(plain_url(url)) as connection:
        return [row[0] for row in connection.execute("SELECT n FROM own ORDER BY n")]


class Caller:
    """One transaction after another of an application, on one connection."""

    on: Any

    def __init__(self, kind: str, url: str, isolation: str | None = None) -> None:
        self.kind, _, self.driver = kind.partition("+")
        self.url = url
        self.isolation = isolation
        # One thread for all of it, as an application's request has: a scoped session belongs to it.
        self._thread = ThreadPoolExecutor(1)

    @property
    def is_async(self) -> bool:
        """Whether the kind belongs to an event loop."""
        return self.kind.startswith("async_")

    @property
    def rings_itself(self) -> bool:
        """Whether the commit of this kind is seen by the planner."""
        return self.kind.endswith("session")

    async def __aenter__(self) -> Caller:
        await (self._open_async() if self.is_async else self._in_thread(self._open))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._call("rollback")
        await self._call("close")
        if self.driver:
            await self._done(self._engine.dispose)
        self._thread.shutdown()

    def _open(self) -> None:
        if self.kind == "plain":
            self.on = psycopg.connect(plain_url(self.url), autocommit=self.isolation == AUTOCOMMIT)
            if self.isolation == REPEATABLE_READ:
                self.on.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            return
        engine = create_engine(with_driver(self.url, self.driver), **self._options())
        self._engine: Any = engine
        if self.kind == "connection":
            self.on = engine.connect()
        else:
            scoped = self.kind == "scoped_session"
            self.on = scoped_session(sessionmaker(engine)) if scoped else Session(engine)

    async def _open_async(self) -> None:
        if self.kind == "async_plain":
            self.on = await psycopg.AsyncConnection.connect(
                plain_url(self.url), autocommit=self.isolation == AUTOCOMMIT
            )
            if self.isolation == REPEATABLE_READ:
                await self.on.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            return
        self._engine = create_async_engine(with_driver(self.url, self.driver), **self._options())
        if self.kind == "async_connection":
            self.on = await self._engine.connect()
        else:
            self.on = AsyncSession(self._engine)

    def _options(self) -> dict[str, Any]:
        return {"isolation_level": self.isolation} if self.isolation else {}

    def planner(self, database: Database | None = None, **options: Any) -> Any:
        """Return a planner of the class that takes this kind."""
        made = AsyncPlanner if self.is_async else Planner
        return made(database or Database(self.url), **options)

    async def ask(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Make a planner's call in this transaction."""
        return await self._done(lambda: call(*args, on=self.on, **options))

    async def insert(self, number: int) -> None:
        """Write a row of the application's own."""
        await self.execute(f"INSERT INTO own VALUES ({number})")

    async def execute(self, statement: str) -> None:
        """Run a statement of the application's own."""
        plain = isinstance(self.on, psycopg.Connection | psycopg.AsyncConnection)
        await self._done(lambda: self.on.execute(statement if plain else text(statement)))

    async def commit(self) -> None:
        """End the transaction."""
        await self._call("commit")

    async def rollback(self) -> None:
        """Undo the transaction."""
        await self._call("rollback")

    async def _call(self, name: str) -> None:
        await self._done(getattr(self.on, name))

    async def close_planner(self, planner: Any) -> None:
        """Close a planner of either class."""
        await self._done(planner.close)

    async def _done(self, function: Callable[[], Any]) -> Any:
        if not self.is_async:
            return await self._in_thread(function)
        answer: Awaitable[Any] = function()
        return await answer

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)
