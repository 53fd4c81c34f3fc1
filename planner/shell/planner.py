"""The planner's calls: put, ask, wait, supersede, cancel, compensate.

Decides what an application on threads types, and nothing else: what a call does is decided in
`operations`, which `AsyncPlanner` drives too. Shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self, Unpack

from sqlalchemy import Connection, Engine

from ...outbox.defaults import DEFAULTS, Limits
from ...outbox.identity import DEFAULT_NAMESPACE
from ...outbox.intent import Draft, Intent, StepName, TypedName
from ...outbox.shell.database import Database
from ...outbox.told import Told, ToldOutcome
from ...outbox.type_variables import R
from ...tool_adapters.contract import IntentDraft
from ...tool_adapters.registry import Tools
from ..options import PutOptions
from .bell import TokenRinger
from .connecting import FindRunning, place_of
from .joining import On, refuse_async
from .link import Link
from .operations import IfExists, RefusedPut, Until
from .parts import PlannerParts
from .seam import Parts, Way
from .transactions import note_on


class Planner:
    """One planner of one outbox. Safe to share between threads; opens nothing before it is used.

    It needs Postgres only. `on=` puts into the caller's own transaction, so that the intent
    commits or rolls back with the caller's rows: a SQLAlchemy Connection or Session on any driver,
    or a psycopg Connection. Without it a call is a transaction of its own. On an event loop use
    `AsyncPlanner`.
    """

    def __init__(
        self,
        database: Database,
        *,
        limits: Limits = DEFAULTS,
        namespace: str = DEFAULT_NAMESPACE,
        outbox: str | None = None,
        bus: TokenRinger | None = None,
    ) -> None:
        """Use a database; with a bus, lanes are rung through it instead of through NOTIFY.

        `outbox` is the name that the database's schema must have; None takes what it has.
        """
        parts = PlannerParts(database, limits, namespace, outbox, bus)
        self._stand_on(parts, Link(database, parts.passage))

    def _stand_on(self, parts: Parts, link: Way) -> None:
        self._parts = parts
        self._operations = parts.operations
        self._link = link

    @classmethod
    def _over(cls, parts: Parts, link: Way) -> Self:
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
        """Return a planner for a database, named here, by ACKBOX_DATABASE_URL or a running bus.

        `schema` and `outbox` are those of ACKBOX_SCHEMA and ACKBOX_OUTBOX, else ackbox and
        default. `pooler` says that the URL leads to a transaction-mode pooler; None takes what
        ACKBOX_DATABASE_POOLER says. `find_running` answers the URL of an `ackbox up` nearby.
        Never starts a server. Raises ConfigError where no database is named.
        """
        place = place_of(url, redis_url, schema, outbox, pooler, find_running)
        database = Database(
            place.url, schema=place.schema, pool_size=pool_size, pooler=place.pooler,
            application_name="ackbox planner",
        )  # fmt: skip
        return cls(database, limits=limits, namespace=namespace, outbox=place.outbox, bus=place.bus)

    def __repr__(self) -> str:
        return f"Planner({self._link!r}, namespace={self.namespace!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def namespace(self) -> str:
        """The tenant whose steps this planner names."""
        return self._operations.namespace

    def close(self) -> None:
        """Ring what waits to be rung, end the waits and close the connections."""
        self._parts.close()
        self._link.close()

    # -- put -------------------------------------------------------------------------------------

    def draft(
        self,
        call: IntentDraft[R] | str,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[PutOptions],
    ) -> Draft[R]:
        """Check what `put` takes, and store nothing: an item of `put_many`. Raises InvalidIntent.

        `options` are those of `PutOptions`.
        """
        return self._operations.draft(call, args, options)

    def put(
        self,
        call: IntentDraft[R] | str,
        args: Mapping[str, Any] | None = None,
        *,
        on: On | None = None,
        if_exists: IfExists = "refuse",
        **options: Unpack[PutOptions],
    ) -> Intent[R]:
        """Store one intent, or return the one that is stored under its id already.

        `call` is a tool's draft, or a tool's name with `args` beside it; `options` name the step
        and its terms (`PutOptions`). The id stored with another tool or other arguments raises
        Refused("args_conflict"); `if_exists="keep"` returns the stored live intent instead.
        """
        draft = self.draft(call, args, **options)
        return self.put_many([draft], on=on, if_exists=if_exists)[0]

    def put_many(
        self, drafts: Iterable[Draft[R]], *, on: On | None = None, if_exists: IfExists = "refuse"
    ) -> list[Intent[R]]:
        """Store many intents in one statement: all of them, or none where one is refused."""
        try:
            return self._link.run(self._operations.put(drafts, if_exists), on)
        except RefusedPut as no:
            self._link.note(self._operations.note_refusal(no))
            raise no.refused() from None

    # -- asking ----------------------------------------------------------------------------------

    def get(
        self, name: TypedName[R], *, namespace: str | None = None, on: On | None = None
    ) -> ToldOutcome[R] | None:
        """Return what is told of a step now; None where nothing is stored, or not committed."""
        return self._link.run(self._operations.get(name, namespace), on)

    def wait(
        self,
        name: TypedName[R],
        *,
        timeout_seconds: float,
        until: Until = "told",
        namespace: str | None = None,
    ) -> ToldOutcome[R]:
        """Wait until a step is settled or in front of a person, or the time is over.

        Never raises for time: then the newest word is told, InFlight with its reason as a rule.
        `until="bound"` waits on until the outcome is bound to the plan. Raises Refused where this
        process still holds the transaction open that put the intent.
        """
        address = self._operations.address(name, namespace)
        if self._parts.may_be_open(address) and self.get(name, namespace=namespace) is None:
            raise self._operations.not_committed(address)
        telling = self._parts.waiters.wait(address, timeout_seconds, until_bound=until == "bound")
        return self._operations.waited(telling, name, namespace)

    def note_timeout(self, name: StepName, *, namespace: str | None = None) -> None:
        """Record that the planner gave up waiting, and ring the lane: nothing more.

        Nothing is sent again for it and nothing is called off.
        """
        self._link.run(self._operations.note_timeout(name, namespace))

    # -- changing --------------------------------------------------------------------------------

    def supersede(
        self,
        name: TypedName[R],
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft[R] | None = None,
        *,
        deadline: datetime | None = None,
        namespace: str | None = None,
        on: On | None = None,
    ) -> Intent[R]:
        """Replace a step's live generation, with other arguments or the same; safe to repeat.

        What was not sent is withdrawn; what was sent runs on, and the new generation waits for
        it. Raises Refused("stale_generation") where another generation is live.
        """
        return self._link.run(
            self._operations.supersede(name, from_generation, args, deadline, namespace), on
        )

    def cancel(self, name: StepName, *, namespace: str | None = None, on: On | None = None) -> Told:
        """Call a step off: Cancelled where nothing was sent, else CancelRecorded.

        A recorded cancel stops every further send; the outcome of the open one still binds. A
        final step is left as it is and told, but a committed one raises Refused("use_compensate").
        """
        return self._link.run(self._operations.cancel(name, namespace), on)

    def compensate(
        self,
        name: StepName,
        *,
        tools: Tools,
        namespace: str | None = None,
        on: On | None = None,
    ) -> Intent | Told:
        """Order the undoing of a step's effect; returns the compensation's intent, to wait for.

        `tools` holds the step's tool, whose adapter says how. Where nothing had been sent the step
        is called off instead, and what is told of it is returned. Repeated, an open compensation
        is returned as it is. Raises Refused where the effect cannot be undone, or not yet.
        """
        return self._link.run(self._operations.compensate(name, tools, namespace), on)

    # -- transactions and rings ------------------------------------------------------------------

    @contextmanager
    def transaction(self, engine: Engine | None = None) -> Iterator[Connection]:
        """Open a transaction on an engine, ours where none is given, and ring after its COMMIT."""
        refuse_async(engine)
        if engine is None:
            self._link.know_own()
        with (engine or self._link.engine()).connect() as connection:
            lanes = note_on(connection)
            with connection.begin():
                yield connection
        self._parts.ring(lanes)

    def ring(self, lanes: Iterable[str] | None = None) -> None:
        """Ring lanes; without any, those of puts on bare connections. Call it after COMMIT."""
        self._parts.ring(lanes)
