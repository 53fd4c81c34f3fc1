"""The way of a planner on an event loop: what `Link` is for threads.

Shell.
"""

from __future__ import annotations

from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from ...outbox.errors import AckboxError, StoreUnavailable
from ...outbox.shell.async_database import AsyncDatabase
from .joining import AsyncOn, join_async
from .link import Passage, not_recorded
from .operations import Operation

T = TypeVar("T")


class AsyncLink:
    """Runs operations without blocking the loop."""

    def __init__(self, database: AsyncDatabase, passage: Passage) -> None:
        self.database = database
        self.passage = passage

    def __repr__(self) -> str:
        return repr(self.database.beside)

    def engine(self) -> AsyncEngine:
        """Return the engine of our own transactions on the running loop."""
        return self.database.engine

    async def close(self) -> None:
        """Close the connections of the running loop, and those of the threads beside it."""
        await self.database.close()
        self.database.beside.dispose()

    async def run(self, operation: Operation[T], on: AsyncOn | None = None) -> T:
        """Run an operation in the caller's transaction, or in one of our own where there is none.

        Raises ConfigError where the database has no schema, or `on` is nothing to join.
        """
        if on is None:
            answer = await self.database.run(lambda c: self.passage.alone(operation, c))
            self.passage.ring(operation, answer)
            return answer
        await self.know_own()
        return await join_async(on, lambda joined: self.passage.joined(operation, joined))

    async def know_own(self) -> None:
        """Learn which outbox our own database holds, if it answers."""
        if self.passage.asks_own():
            try:
                await self.database.run(self.passage.fitting.own, attempts=1)
            except (StoreUnavailable, SQLAlchemyError) as error:
                self.passage.own_silent(error)

    async def note(self, operation: Operation[None]) -> None:
        """Record a refusal on a connection of our own; what goes wrong here never hides it."""
        try:
            await self.database.run(operation.work, attempts=1)
        except (AckboxError, SQLAlchemyError) as error:
            not_recorded(error)
