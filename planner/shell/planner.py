"""The planner's calls: put, ask, wait, supersede, cancel, compensate.

Decides which refusals are raised here, because a caller could overlook them, and what each of
them tells to do next. Everything about rows is the store's. Shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, Self, Unpack

import structlog
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.defaults import DEFAULTS, Limits
from ...outbox.errors import AckboxError, InvalidIntent
from ...outbox.identity import DEFAULT_NAMESPACE, check_name, is_derived
from ...outbox.intent import (
    Address,
    Content,
    Draft,
    Intent,
    StepName,
    TypedName,
    address_of,
    content_of,
    reader_of,
)
from ...outbox.model import SETTLED_STATES, Refusal, State
from ...outbox.shell.database import Database
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.shell.statements import Statements
from ...outbox.telling import tell
from ...outbox.told import CancelRecorded, InFlight, Told, ToldOutcome, with_result
from ...outbox.type_variables import R
from ...tool_adapters.contract import IntentDraft
from ...tool_adapters.registry import Tools
from ..options import PutOptions, checked_content, checked_draft
from ..refusals import refused
from .bell import PlannerBell, TokenRinger
from .compensating import Compensator
from .connecting import FindRunning, database_url, schema_name, token_bus
from .link import Link, On
from .transactions import note_on
from .waiting import Waiters

IfExists = Literal["refuse", "keep"]
Until = Literal["told", "bound"]
_log = structlog.get_logger(__name__)


class Planner:
    """One planner of one outbox. Safe to share between threads; opens nothing before it is used.

    It needs Postgres only. `on=` puts into the caller's own transaction, so that the intent
    commits or rolls back with the caller's rows; without it a call is a transaction of its own.
    """

    def __init__(
        self,
        database: Database,
        *,
        limits: Limits = DEFAULTS,
        namespace: str = DEFAULT_NAMESPACE,
        bus: TokenRinger | None = None,
    ) -> None:
        """Use a database; with a bus, lanes are rung through it instead of through NOTIFY."""
        self.namespace = check_name(namespace, "namespace")
        self._limits = limits
        statements = Statements(database.schema, limits)
        self._store = PlannerStore(statements, limits)
        self._compensator = Compensator(statements, limits, self._store)
        self._link = Link(database, PlannerBell(database, statements, bus))
        self._waiters = Waiters(database, self._store)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        redis_url: str | None = None,
        schema: str | None = None,
        outbox: str = "default",
        namespace: str = DEFAULT_NAMESPACE,
        limits: Limits = DEFAULTS,
        pool_size: int = 5,
        find_running: FindRunning | None = None,
    ) -> Self:
        """Return a planner for a database, named here, by ACKBOX_DATABASE_URL or a running bus.

        `find_running` answers the URL of an `ackbox up` nearby. Never starts a server. Raises
        ConfigError where no database is named.
        """
        database = Database(
            database_url(url, find_running),
            schema=schema_name(schema),
            pool_size=pool_size,
            application_name="ackbox planner",
        )
        bus = token_bus(redis_url, outbox)
        return cls(database, limits=limits, namespace=namespace, bus=bus)

    def __repr__(self) -> str:
        return f"Planner({self._link.database!r}, namespace={self.namespace!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ring what waits to be rung, end the waits and close the connections."""
        self._waiters.close()
        self._link.bell.close()
        self._link.database.dispose()

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
        given = {"namespace": self.namespace, **options}
        return checked_draft(call, args, self._limits, given)

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
        if if_exists not in ("refuse", "keep"):
            raise InvalidIntent("if_exists is refuse or keep", next_step="ackbox put --help")
        batch = list(drafts)

        def work(connection: Connection) -> list[Intent[R]]:
            answers = self._store.put(connection, batch, keep=if_exists == "keep")
            return [_stored(*pair) for pair in zip(batch, answers, strict=True)]

        try:
            intents = self._link.run(work, on, savepoint=len(batch) > 1)
        except _RefusedPut as no:
            self._note_refusal(no.draft, no.refusal)
            raise refused(no.refusal, no.draft.intent_id) from None
        created = [
            (intent, draft)
            for intent, draft in zip(intents, batch, strict=True)
            if intent.created and draft.held_for is None
        ]
        self._link.rung([intent for intent, _ in created], on)
        return intents

    def _note_refusal(self, draft: Draft, refusal: Refusal) -> None:
        """Keep the refusal on a connection of our own: the caller's may roll back.

        Whatever goes wrong here never hides the refusal itself.
        """
        subject = f"{draft.namespace}/{draft.intent_id}"
        try:
            self._link.database.run(
                lambda c: self._store.note_refusal(c, subject, refusal.code), attempts=1
            )
        except (AckboxError, SQLAlchemyError) as error:
            _log.warning("refusal_not_recorded", code=refusal.code, error=type(error).__name__)

    # -- asking ----------------------------------------------------------------------------------

    def get(
        self, name: TypedName[R], *, namespace: str | None = None, on: On | None = None
    ) -> ToldOutcome[R] | None:
        """Return what is told of a step now; None where nothing is stored, or not committed."""
        address = self._address(name, namespace)
        told = self._link.run(lambda connection: self._told(connection, address), on)
        return with_result(told, reader_of(name)) if told else None

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
        address = self._address(name, namespace)
        if isinstance(name, Intent) and self._link.puts.is_open(name.seq):
            raise refused(Refusal("not_committed", "its transaction is open"), name.intent_id)
        telling = self._waiters.wait(address, timeout_seconds, until_bound=until == "bound")
        if telling is not None:
            return with_result(telling.told, reader_of(name))
        return InFlight(
            namespace=address.namespace,
            intent_id=address.intent_id,
            generation=address.generation or 0,
            reason="nothing is stored under this id, or its transaction is not committed",
            next_step="commit the transaction that put it, or put it",
        )

    def note_timeout(self, name: StepName, *, namespace: str | None = None) -> None:
        """Record that the planner gave up waiting, and ring the lane: nothing more.

        Nothing is sent again for it and nothing is called off.
        """
        intent = name if isinstance(name, Intent) else self._find(name, namespace)
        self._link.run(lambda c: self._store.note(c, intent, "planner_timeout"), None)
        self._link.bell.ring([intent.lane])

    def _told(self, connection: Connection, address: Address) -> ToldOutcome[Any] | None:
        key = (address.namespace, address.intent_id)
        found = self._store.steps(connection, [key]).get(key)
        telling = tell(found[0], address.generation, found[1]) if found else None
        return telling.told if telling else None

    def _find(self, name: StepName, namespace: str | None) -> Intent:
        address = self._address(name, namespace)
        key = (address.namespace, address.intent_id)
        intent = self._link.run(lambda connection: self._store.find(connection, key), None)
        if intent is None:
            raise refused(Refusal("not_found"), address.intent_id)
        return intent

    # -- changing --------------------------------------------------------------------------------

    def supersede(
        self,
        name: StepName,
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft | None = None,
        *,
        deadline: datetime | None = None,
        namespace: str | None = None,
        on: On | None = None,
    ) -> Intent:
        """Replace a step's live generation, with other arguments or the same; safe to repeat.

        What was not sent is withdrawn; what was sent runs on, and the new generation waits for
        it. Raises Refused("stale_generation") where another generation is live.
        """
        address = self._own_address(name, namespace)

        def work(connection: Connection) -> Intent:
            content = self._next_content(connection, address, from_generation, args)
            answer = self._store.supersede(connection, address, from_generation, content, deadline)
            if isinstance(answer, Refusal):
                raise refused(answer, address.intent_id)
            return answer

        intent = self._link.run(work, on)
        self._link.rung([intent] if intent.created else [], on)
        return intent

    def _next_content(
        self,
        connection: Connection,
        address: Address,
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft | None,
    ) -> Content | None:
        if args is None:
            return None
        before = self._store.generation(connection, address, from_generation)
        if before is None:
            raise refused(Refusal("not_found"), address.intent_id)
        if not isinstance(args, IntentDraft):
            return content_of(
                before["tool"], before["tool_version"], before["lane"], args, limits=self._limits
            )
        if args.tool != before["tool"]:
            raise InvalidIntent(
                "a later generation is a call of the same tool", next_step="put another step"
            )
        return checked_content(args, None, self._limits)

    def cancel(self, name: StepName, *, namespace: str | None = None, on: On | None = None) -> Told:
        """Call a step off: Cancelled where nothing was sent, else CancelRecorded.

        A recorded cancel stops every further send; the outcome of the open one still binds. A
        final step is left as it is and told, but a committed one raises Refused("use_compensate").
        """
        address = self._own_address(name, namespace)

        def work(connection: Connection) -> Told:
            answer = self._store.cancel(connection, address)
            if isinstance(answer, Refusal):
                raise refused(answer, address.intent_id)
            told = self._told(connection, address)
            assert told is not None
            return told if answer in SETTLED_STATES else _cancel_recorded(told, answer)

        return self._link.run(work, on)

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
        address = self._own_address(name, namespace)

        def work(connection: Connection) -> Intent | Told:
            answer = self._compensator.order(connection, address, tools)
            if isinstance(answer, Refusal):
                raise refused(answer, address.intent_id)
            told = answer or self._told(connection, address)
            assert told is not None
            return told

        answer = self._link.run(work, on)
        if isinstance(answer, Intent):
            self._link.rung([answer] if answer.created else [], on)
        return answer

    def _address(self, name: StepName, namespace: str | None) -> Address:
        return address_of(name, self.namespace if namespace is None else namespace)

    def _own_address(self, name: StepName, namespace: str | None) -> Address:
        address = self._address(name, namespace)
        if is_derived(address.intent_id):
            raise refused(Refusal("is_compensation"), address.intent_id)
        return address

    # -- transactions and rings ------------------------------------------------------------------

    @contextmanager
    def transaction(self, engine: Engine | None = None) -> Iterator[Connection]:
        """Open a transaction on an engine, ours where none is given, and ring after its COMMIT."""
        with (engine or self._link.database.engine).connect() as connection:
            lanes = note_on(connection)
            with connection.begin():
                yield connection
        self._link.bell.ring(lanes)

    def ring(self, lanes: Iterable[str] | None = None) -> None:
        """Ring lanes; without any, those of puts on bare connections. Call it after COMMIT."""
        self._link.bell.ring(self._link.puts.unrung() if lanes is None else lanes)


class _RefusedPut(Exception):
    """Carries a refusal out of the transaction that it must undo."""

    def __init__(self, draft: Draft, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.draft = draft
        self.refusal = refusal


def _stored(draft: Draft[R], answer: Intent | Refusal) -> Intent[R]:
    if isinstance(answer, Refusal):
        raise _RefusedPut(draft, answer)
    return answer.read_by(draft.read_result)


def _cancel_recorded(told: Told, state: State) -> CancelRecorded:
    return CancelRecorded(
        namespace=told.namespace,
        intent_id=told.intent_id,
        generation=told.generation,
        reason=f"it is {state.value}: one send is open and may take effect",
        next_step="wait for its outcome",
        also_happened=told.also_happened,
    )
