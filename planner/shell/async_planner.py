"""The planner's calls for an application on an event loop, under the names that `Planner` has.

Decides nothing that `Planner` does not: both drive the same operations. Shell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Self, Unpack

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from ...outbox.defaults import DEFAULTS, Limits
from ...outbox.identity import DEFAULT_NAMESPACE
from ...outbox.intent import Draft, Intent, StepName, TypedName
from ...outbox.shell.async_database import AsyncDatabase
from ...outbox.shell.database import Database
from ...outbox.told import Told, ToldOutcome
from ...outbox.type_variables import R
from ...tool_adapters.contract import IntentDraft
from ...tool_adapters.registry import Tools
from ..options import PutOptions
from .async_link import AsyncLink
from .bell import TokenRinger
from .connecting import FindRunning, place_of
from .joining import AsyncOn, refuse_sync
from .operations import IfExists, RefusedPut, Until
from .parts import PlannerParts
from .seam import AsyncWay, Parts
from .transactions import note_on_async

THREADS_POOL_SIZE = 2
"""Connections of the two threads that wait and ring, beside the loop's own."""


class AsyncPlanner:
    """One planner of one outbox for asyncio. Opens nothing before it is used, blocks no loop.

    `on=` puts into the caller's own transaction, so that the intent commits or rolls back with the
    caller's rows: a SQLAlchemy AsyncConnection or AsyncSession on any driver, or a psycopg
    AsyncConnection. Without it a call is a transaction of its own. One planner may serve several
    loops; each of them gets connections of its own. In threads use `Planner`.
    """

    def __init__(
        self,
        database: Database,
        *,
        limits: Limits = DEFAULTS,
        namespace: str = DEFAULT_NAMESPACE,
        outbox: str | None = None,
        bus: TokenRinger | None = None,
        pool_size: int = 5,
    ) -> None:
        """Use a database; with a bus, lanes are rung through it instead of through NOTIFY.

        `database` serves the two threads that wait and ring; each loop has `pool_size` connections
        beside it. `outbox` is the name that its schema must have; None takes what it has.
        """
        parts = PlannerParts(database, limits, namespace, outbox, bus)
        self._stand_on(parts, AsyncLink(AsyncDatabase(database, pool_size), parts.passage))

    def _stand_on(self, parts: Parts, link: AsyncWay) -> None:
        self._parts = parts
        self._operations = parts.operations
        self._link = link

    @classmethod
    def _over(cls, parts: Parts, link: AsyncWay) -> Self:
        """Return a planner over another outbox than a database: what `ackbox.testing` has."""
        planner = cls.__new__(cls)
        planner._stand_on(parts, link)
        return planner

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        redis_url: str | None = None,
        schema: str | None = None,
        outbox: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        limits: Limits = DEFAULTS,
        pool_size: int = 5,
        pooler: bool | None = None,
        find_running: FindRunning | None = None,
    ) -> Self:
        """Return a planner for a database, named as for `Planner.connect`; opens nothing yet.

        Raises ConfigError where no database is named.
        """
        place = place_of(url, redis_url, schema, outbox, pooler, find_running)
        database = Database(
            place.url, schema=place.schema, pool_size=THREADS_POOL_SIZE,
            pooler=place.pooler, application_name="ackbox planner",
        )  # fmt: skip
        return cls(
            database, limits=limits, namespace=namespace, outbox=place.outbox, bus=place.bus,
            pool_size=pool_size,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"AsyncPlanner({self._link!r}, namespace={self.namespace!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def namespace(self) -> str:
        """The tenant whose steps this planner names."""
        return self._operations.namespace

    async def close(self) -> None:
        """Ring what waits to be rung, end the waits and close the connections of this loop."""
        await asyncio.to_thread(self._parts.close)
        await self._link.close()

    # -- put -------------------------------------------------------------------------------------

    def draft(
        self,
        call: IntentDraft[R] | str,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[PutOptions],
    ) -> Draft[R]:
        """Check what `put` takes, and store nothing: an item of `put_many`. Raises InvalidIntent.

        Not to be awaited, since it asks no database. `options` are those of `PutOptions`.
        """
        return self._operations.draft(call, args, options)

    async def put(
        self,
        call: IntentDraft[R] | str,
        args: Mapping[str, Any] | None = None,
        *,
        on: AsyncOn | None = None,
        if_exists: IfExists = "refuse",
        **options: Unpack[PutOptions],
    ) -> Intent[R]:
        """Store one intent, or return the one that is stored under its id already.

        As `Planner.put`: the id stored with another tool or other arguments raises
        Refused("args_conflict"); `if_exists="keep"` returns the stored live intent instead.
        """
        draft = self.draft(call, args, **options)
        return (await self.put_many([draft], on=on, if_exists=if_exists))[0]

    async def put_many(
        self,
        drafts: Iterable[Draft[R]],
        *,
        on: AsyncOn | None = None,
        if_exists: IfExists = "refuse",
    ) -> list[Intent[R]]:
        """Store many intents in one statement: all of them, or none where one is refused."""
        try:
            return await self._link.run(self._operations.put(drafts, if_exists), on)
        except RefusedPut as no:
            await self._link.note(self._operations.note_refusal(no))
            raise no.refused() from None

    # -- asking ----------------------------------------------------------------------------------

    async def get(
        self, name: TypedName[R], *, namespace: str | None = None, on: AsyncOn | None = None
    ) -> ToldOutcome[R] | None:
        """Return what is told of a step now; None where nothing is stored, or not committed."""
        return await self._link.run(self._operations.get(name, namespace), on)

    async def wait(
        self,
        name: TypedName[R],
        *,
        timeout_seconds: float,
        until: Until = "told",
        namespace: str | None = None,
    ) -> ToldOutcome[R]:
        """Wait until a step is settled or in front of a person, or the time is over.

        As `Planner.wait`: it never raises for time, and cancelling it changes nothing. All waits
        of a process share one query, which a thread asks.
        """
        address = self._operations.address(name, namespace)
        if self._parts.may_be_open(address) and await self.get(name, namespace=namespace) is None:
            raise self._operations.not_committed(address)
        bound = until == "bound"
        telling = await self._parts.waiters.wait_async(address, timeout_seconds, until_bound=bound)
        return self._operations.waited(telling, name, namespace)

    async def note_timeout(self, name: StepName, *, namespace: str | None = None) -> None:
        """Record that the planner gave up waiting, and ring the lane: nothing more."""
        await self._link.run(self._operations.note_timeout(name, namespace))

    # -- changing --------------------------------------------------------------------------------

    async def supersede(
        self,
        name: TypedName[R],
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft[R] | None = None,
        *,
        deadline: datetime | None = None,
        namespace: str | None = None,
        on: AsyncOn | None = None,
    ) -> Intent[R]:
        """Replace a step's live generation, with other arguments or the same; safe to repeat.

        Raises Refused("stale_generation") where another generation is live.
        """
        return await self._link.run(
            self._operations.supersede(name, from_generation, args, deadline, namespace), on
        )

    async def cancel(
        self, name: StepName, *, namespace: str | None = None, on: AsyncOn | None = None
    ) -> Told:
        """Call a step off: Cancelled where nothing was sent, else CancelRecorded.

        A committed step raises Refused("use_compensate").
        """
        return await self._link.run(self._operations.cancel(name, namespace), on)

    async def compensate(
        self,
        name: StepName,
        *,
        tools: Tools,
        namespace: str | None = None,
        on: AsyncOn | None = None,
    ) -> Intent | Told:
        """Order the undoing of a step's effect; returns the compensation's intent, to wait for.

        As `Planner.compensate`. Raises Refused where the effect cannot be undone, or not yet.
        """
        return await self._link.run(self._operations.compensate(name, tools, namespace), on)

    # -- transactions and rings ------------------------------------------------------------------

    @asynccontextmanager
    async def transaction(
        self, engine: AsyncEngine | None = None
    ) -> AsyncIterator[AsyncConnection]:
        """Open a transaction on an engine, ours where none is given, and ring after its COMMIT."""
        refuse_sync(engine)
        if engine is None:
            await self._link.know_own()
        async with (engine or self._link.engine()).connect() as connection:
            lanes = note_on_async(connection)
            async with connection.begin():
                yield connection
        self._parts.ring(lanes)

    def ring(self, lanes: Iterable[str] | None = None) -> None:
        """Ring lanes; without any, those of puts on bare connections. Call it after COMMIT.

        Not to be awaited: a thread rings.
        """
        self._parts.ring(lanes)
