"""Replays a trace on the Postgres stores, reply by reply, beside the same run in memory.

What is expected of the end is asked of Postgres: told words come from its replies, and its rows and
events are compared with those that states and counters were read from. May import `sim` and the
outbox's shells.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError

from ...outbox.defaults import DEFAULTS
from ...outbox.errors import AckboxError
from ...outbox.shell.migrate import upgrade
from ..trace import Trace
from ..trace_run import new_world, run_trace
from ..world import World
from .comparing import Difference
from .postgres_store import PostgresWorldStore
from .twin_store import TwinStore


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a trace on another store or stack. `not_mapped` says why it was not tried."""

    name: str
    complaints: tuple[str, ...] = ()
    not_mapped: str | None = None
    replies: int = 0
    """Replies of the store that were compared."""

    @property
    def passed(self) -> bool:
        """Whether it was tried and everything is as expected."""
        return self.not_mapped is None and not self.complaints


def replay_on_postgres(trace: Trace, store: PostgresWorldStore) -> Replayed:
    """Run a trace on both stores. Raises TraceError where it cannot be run at all."""
    worlds: list[tuple[World, TwinStore]] = []

    def make(of: Trace) -> World:
        world = new_world(of)
        twin = TwinStore(world.store, store)
        world.store = twin
        world.observers.append(twin.observe)
        worlds.append((world, twin))
        return world

    complaints: tuple[str, ...]
    try:
        complaints = run_trace(trace, make).complaints
        worlds[0][1].compare_all()
    except (Difference, AckboxError, DBAPIError) as error:
        step = worlds[0][0].tally["steps"] + 1 if worlds else 0
        complaints = (f"step {step}: {_told(error)}",)
    return Replayed(trace.name, complaints, replies=worlds[0][1].replies if worlds else 0)


def _told(error: Exception) -> str:
    if isinstance(error, DBAPIError):
        # Its own text holds the statement's parameters.
        return f"PostgreSQL refused a statement: {type(error.orig).__name__}"
    return str(error)


@contextmanager
def own_store(url: str, direct_url: str) -> Iterator[PostgresWorldStore]:
    """Give a store in a schema of its own, which is dropped afterwards."""
    schema = f"ackbox_replay_{secrets.token_hex(4)}"
    upgrade(direct_url, schema=schema, outbox=schema)
    store = PostgresWorldStore(url, schema, DEFAULTS)
    try:
        yield store
    finally:
        store.sql("DROP SCHEMA {schema} CASCADE")
        store.close()
