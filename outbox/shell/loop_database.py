"""A database for code that runs inside an event loop and is written without `await`.

SQLAlchemy drives its asynchronous engines by synchronous code in a greenlet; this is `Database` on
such an engine, so that its transactions, repeats and judgements are the same ones. Every call must
be made inside `greenlet_spawn`. May import SQLAlchemy.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Self

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.util import await_only

from .connection import connect_arguments, engine_options, watched
from .database import Database


class _LoopPause(threading.Event):
    """Waits without stopping the loop."""

    def wait(self, timeout: float | None = None) -> bool:
        """Let other tasks run meanwhile."""
        await_only(asyncio.sleep(timeout or 0.0))
        return self.is_set()


class LoopDatabase(Database):
    """The same database over an asynchronous engine, for one event loop."""

    @classmethod
    def beside(cls, database: Database, pool_size: int = 1) -> Self:
        """Return a pool of its own to the database of another one. Opens nothing yet."""
        beside = cls.__new__(cls)
        beside.__dict__.update(database.__dict__)
        beside._pool_size = pool_size
        beside._engines = {}
        beside._pause = _LoopPause()
        return beside

    def _make_engine(self) -> Engine:
        arguments = connect_arguments(self._url, self._limits, pooler=self._pooler, name=self._name)
        options = engine_options(arguments, self._pool_size, self._pool_wait_seconds)
        return watched(create_async_engine(self._url, **options).sync_engine)
