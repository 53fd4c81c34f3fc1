"""What a planner on a memory bus stands on, in place of a database: see `planner.shell.seam`.

A wait drains the bus in virtual time, and so returns at once. Composition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_scoped_session
from sqlalchemy.orm import Session, scoped_session

from ...outbox.errors import ConfigError
from ...outbox.intent import Address
from ...outbox.telling import Telling, tell
from ...planner.shell.joining import AsyncOn, On
from ...planner.shell.operations import Operation, Operations
from ...planner.shell.waiting import is_over
from .engine import Engine as BusEngine
from .staging import Owner, Transactions

T = TypeVar("T")


class MemoryWaits:
    """Waits that let virtual time pass."""

    def __init__(self, engine: BusEngine) -> None:
        self._engine = engine

    def wait(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Run the bus until the step is told for good or the time is over."""
        engine = self._engine
        with engine.working():
            end = engine.now + timedelta(seconds=timeout_seconds)
            while True:
                engine.drain()
                telling = self._telling(address)
                following = engine.next_moment()
                if is_over(telling, until_bound=until_bound):
                    return telling
                if following is None or following > end:
                    engine.move_to(end)
                    return self._telling(address)
                engine.pass_time(following)

    async def wait_async(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Wait on a thread, so that the caller's loop goes on."""
        return await asyncio.to_thread(self.wait, address, timeout_seconds, until_bound=until_bound)

    def _telling(self, address: Address) -> Telling | None:
        name = (address.namespace, address.intent_id)
        with self._engine.locked() as world:
            found = world.store.planner.steps([name]).get(name)
        return tell(found[0], address.generation, found[1]) if found else None


class MemoryParts:
    """A planner's parts on a memory bus."""

    def __init__(
        self, operations: Operations, engine: BusEngine, transactions: Transactions
    ) -> None:
        self.operations = operations
        self.waiters = MemoryWaits(engine)
        self._engine = engine
        self._transactions = transactions

    def may_be_open(self, address: Address) -> bool:
        """Return whether an open transaction has put or changed the step."""
        with self._engine.locked():
            return self._transactions.is_open((address.namespace, address.intent_id))

    def ring(self, lanes: Iterable[str] | None) -> None:
        """Ring nobody: a bus in memory looks at its rows."""

    def close(self) -> None:
        """Nothing is open."""


class MemoryLink:
    """The way of a planner's calls to a memory bus."""

    def __init__(self, engine: BusEngine, transactions: Transactions) -> None:
        self._engine = engine
        self._transactions = transactions

    def __repr__(self) -> str:
        return "memory"

    def run(self, operation: Operation[T], on: On | None = None) -> T:
        """Run an operation by itself, or in the caller's transaction."""
        return self.run_on(operation, None if on is None else _owner(on))

    def run_on(self, operation: Operation[T], owner: Owner | None) -> T:
        """Run an operation for a transaction's owner."""
        with self._engine.locked():
            if owner is None:
                return self._transactions.alone(operation)
            return self._transactions.joined(owner, operation)

    def note(self, operation: Operation[None]) -> None:
        """Record a refusal."""
        self.run(operation)

    def know_own(self) -> None:
        """There is no other outbox to be taken for this one."""

    def engine(self) -> Engine:
        """Raise ConfigError: there is no database."""
        raise _no_engine()

    def close(self) -> None:
        """Nothing is open."""


class AsyncMemoryLink:
    """The same for a planner on an event loop: no call ever blocks it."""

    def __init__(self, link: MemoryLink) -> None:
        self._link = link

    def __repr__(self) -> str:
        return "memory"

    async def run(self, operation: Operation[T], on: AsyncOn | None = None) -> T:
        """Run an operation by itself, or in the caller's transaction."""
        if isinstance(on, async_scoped_session):
            on = on()
        owner = None if on is None else _async_owner(on)
        if owner is None or owner.in_transaction():
            return self._link.run_on(operation, owner)
        assert isinstance(on, AsyncSession | AsyncConnection)
        return await on.run_sync(lambda _: self._link.run_on(operation, owner))

    async def note(self, operation: Operation[None]) -> None:
        """Record a refusal."""
        self._link.note(operation)

    async def know_own(self) -> None:
        """There is no other outbox to be taken for this one."""

    def engine(self) -> AsyncEngine:
        """Raise ConfigError: there is no database."""
        raise _no_engine()

    async def close(self) -> None:
        """Nothing is open."""


def _owner(on: On) -> Owner:
    if isinstance(on, scoped_session):
        on = on()
    if isinstance(on, Session | Connection):
        return on
    raise _refused(on, "a SQLAlchemy Session or Connection")


def _async_owner(on: Any) -> Owner:
    if isinstance(on, AsyncSession):
        return on.sync_session
    if isinstance(on, AsyncConnection) and on.sync_connection is not None:
        return on.sync_connection
    raise _refused(on, "a SQLAlchemy AsyncSession, or an AsyncConnection that is open")


def _refused(on: object, taken: str) -> ConfigError:
    return ConfigError(
        f"on= of a memory bus takes {taken}, not {type(on).__name__}",
        next_step="use the fixture ackbox_bus, whose bus is real, for any other connection",
    )


def _no_engine() -> ConfigError:
    return ConfigError(
        "a memory bus has no database of its own",
        next_step="give transaction(...) the engine of your application",
    )
