"""One outbox's database for code that awaits: a pool of connections for each event loop.

Decides what happens to the connections of a loop that has ended: they are closed at the next use,
without that loop, so that one object serves several loops one after another. May import SQLAlchemy
and psycopg.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.util import greenlet_spawn

from .database import Database
from .loop_database import LoopDatabase

T = TypeVar("T")


class _Pool:
    """The connections of one loop in one process."""

    def __init__(self, database: Database, pool_size: int) -> None:
        self.database = LoopDatabase.beside(database, pool_size)
        self._pid = os.getpid()
        self._drivers: WeakSet[psycopg.AsyncConnection[Any]] = WeakSet()
        event.listen(self.database.engine, "connect", self._connected)

    def _connected(self, _: object, record: Any) -> None:
        self._drivers.add(record.driver_connection)

    async def close(self) -> None:
        """Close the idle connections in the loop that opened them."""
        await greenlet_spawn(self.database.dispose)

    def abandon(self) -> None:
        """Close the connections of a loop that has ended; a parent's are the parent's to close."""
        if self._pid == os.getpid():
            for driver in list(self._drivers):
                driver.pgconn.finish()
            self.database.engine.dispose(close=False)


class AsyncDatabase:
    """`Database` for callers on event loops; each loop has connections of its own."""

    def __init__(self, database: Database, pool_size: int = 5) -> None:
        """Open nothing yet."""
        self._database = database
        self._pool_size = pool_size
        self._lock = threading.Lock()
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def __repr__(self) -> str:
        return f"Async{self._database!r}"

    @property
    def beside(self) -> Database:
        """The database for threads that it stands beside."""
        return self._database

    @property
    def engine(self) -> AsyncEngine:
        """The engine of the running loop."""
        return AsyncEngine(self._here().database.engine)

    async def run(self, work: Callable[[Connection], T], *, attempts: int = 5) -> T:
        """Run `work` in one transaction, as `Database.run` does; other tasks go on meanwhile."""
        return await greenlet_spawn(self._here().database.run, work, attempts=attempts)

    async def close(self) -> None:
        """Close the connections of the running loop, and those of loops that have ended.

        Another loop that still runs closes its own.
        """
        with self._lock:
            self._abandon_ended()
            pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _here(self) -> _Pool:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._pools:
                self._abandon_ended()
                self._pools[loop] = _Pool(self._database, self._pool_size)
            return self._pools[loop]

    def _abandon_ended(self) -> None:
        for loop in [loop for loop in self._pools if loop.is_closed()]:
            self._pools.pop(loop).abandon()
