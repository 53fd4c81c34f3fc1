"""A caller's plain psycopg connection, asked like a SQLAlchemy connection by the store's functions.

Decides how a statement runs beside whatever the caller has set on the connection: on a cursor of
our own, whose rows are tuples and whose loaders are ours, so that nothing of the caller's is
changed and nothing of the caller's changes what is read. Commits and rolls back nothing. May import
SQLAlchemy (for its rendering of statements and its results) and psycopg.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg.abc import Loader
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.bool import BoolLoader
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import FloatLoader, IntLoader
from psycopg.types.string import TextLoader
from psycopg.types.uuid import UUIDLoader
from sqlalchemy import Connection, Executable
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.engine import Dialect, IteratorResult, Result
from sqlalchemy.engine.interfaces import Compiled
from sqlalchemy.engine.result import SimpleResultMetaData
from sqlalchemy.sql import ClauseElement
from sqlalchemy.util import await_only

Driver = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]
Answer = tuple[Sequence[str], Sequence[tuple[Any, ...]]]
_LOADERS: dict[str, type[Loader]] = {
    "bool": BoolLoader, "float8": FloatLoader, "int2": IntLoader, "int4": IntLoader,
    "int8": IntLoader, "text": TextLoader, "timestamptz": TimestamptzLoader, "uuid": UUIDLoader,
}  # fmt: skip
_SAVEPOINT = "ackbox_put"
_OPEN = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)
_DIALECT: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
_compiled: WeakKeyDictionary[ClauseElement, Compiled] = WeakKeyDictionary()


class PlainConnection:
    """What the store needs of a connection, on a driver's own one."""

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], Answer], driver: Driver) -> None:
        self._ask = ask
        self._driver = driver

    def execute(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> Result[Any]:
        """Run one statement; its rows are all read at once."""
        compiled = _rendered(cast("ClauseElement", statement))
        given = compiled.construct_params(dict(values or {})) or {}
        keys, rows = self._ask(str(compiled), given)
        return IteratorResult(SimpleResultMetaData(keys), iter(rows))

    def scalar(self, statement: Executable, values: Mapping[str, Any] | None = None) -> Any:
        """Run one statement and return the first column of its first row."""
        return self.execute(statement, values).scalar()

    @contextmanager
    def begin_nested(self) -> Iterator[None]:
        """Undo what the block did where it raises, and nothing else."""
        self._ask(f"SAVEPOINT {_SAVEPOINT}", {})
        try:
            yield
        except BaseException:
            if in_transaction(self._driver):
                self._ask(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}", {})
                self._ask(f"RELEASE SAVEPOINT {_SAVEPOINT}", {})
            raise
        self._ask(f"RELEASE SAVEPOINT {_SAVEPOINT}", {})


def plain_connection(driver: psycopg.Connection[Any]) -> Connection:
    """Return a psycopg connection for the store's functions, which take it for SQLAlchemy's."""

    def ask(statement: str, values: Mapping[str, Any]) -> Answer:
        with psycopg.Cursor(driver, row_factory=tuple_row) as cursor:
            _read_like_us(cursor)
            with driver.pipeline() if _in_pipeline(driver) else nullcontext():
                cursor.execute(statement.encode(), values)
            return _keys(cursor), cursor.fetchall() if cursor.description else []

    return cast("Connection", PlainConnection(ask, driver))


def plain_async_connection(driver: psycopg.AsyncConnection[Any]) -> Connection:
    """Return the same for an async connection; to be used inside `greenlet_spawn` only."""

    async def ask(statement: str, values: Mapping[str, Any]) -> Answer:
        async with psycopg.AsyncCursor(driver, row_factory=tuple_row) as cursor:
            _read_like_us(cursor)
            async with driver.pipeline() if _in_pipeline(driver) else nullcontext():
                await cursor.execute(statement.encode(), values)
            return _keys(cursor), await cursor.fetchall() if cursor.description else []

    return cast("Connection", PlainConnection(lambda *a: await_only(ask(*a)), driver))


def in_transaction(driver: Driver) -> bool:
    """Return whether a transaction is open on the connection; asks no server."""
    return not driver.closed and driver.info.transaction_status in _OPEN


def _in_pipeline(driver: Driver) -> bool:
    """Return whether answers are held back; the end of a block inside the pipeline fetches them."""
    return driver.pgconn.pipeline_status != PipelineStatus.OFF


def _rendered(statement: ClauseElement) -> Compiled:
    if statement not in _compiled:
        _compiled[statement] = statement.compile(dialect=_DIALECT)
    return _compiled[statement]


def _keys(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> Sequence[str]:
    return [column.name for column in cursor.description or ()]


def _read_like_us(cursor: psycopg.Cursor[Any] | psycopg.AsyncCursor[Any]) -> None:
    """Register our loaders on the cursor: what the caller registered is for the caller's rows."""
    for name, loader in _LOADERS.items():
        cursor.adapters.register_loader(name, loader)
    set_json_loads(json.loads, cursor)
