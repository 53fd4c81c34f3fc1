"""What a planner asks of its outbox: one object per call, the same for threads and event loops.

Decides which refusals are raised, because a caller could overlook them, and which lanes a call
rings. Opens no transaction: `Link` and `AsyncLink` run the work in one. Shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from sqlalchemy import Connection

from ...outbox.defaults import Limits
from ...outbox.errors import InvalidIntent, Refused
from ...outbox.identity import check_name, is_derived
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
from ...outbox.telling import Telling, tell
from ...outbox.told import CancelRecorded, InFlight, Told, ToldOutcome, with_result
from ...outbox.type_variables import R
from ...tool_adapters.contract import IntentDraft
from ...tool_adapters.registry import Tools
from ..options import checked_content, checked_draft
from ..refusals import refused
from .compensating import Compensator
from .seam import StepStore, UndoStore

T = TypeVar("T")
IfExists = Literal["refuse", "keep"]
Until = Literal["told", "bound"]


def _no_intents(_: object) -> Sequence[Intent]:
    return ()


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """One call of a planner: what runs inside a transaction, and what is rung after it.

    `created` and `rings` say of an answer which intents are new and which lanes to ring.
    `savepoint`: work that raises is undone without undoing what else the caller's transaction did.
    """

    work: Callable[[Connection], T]
    created: Callable[[T], Sequence[Intent]] = _no_intents
    rings: Callable[[T], Sequence[Intent]] = _no_intents
    savepoint: bool = False
    writes: bool = True


class RefusedPut(Exception):
    """Carries a refusal out of the transaction that it must undo."""

    def __init__(self, draft: Draft, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.draft = draft
        self.refusal = refusal

    def refused(self) -> Refused:
        """Return what the caller is told."""
        return refused(self.refusal, self.draft.intent_id)


class Operations:
    """The calls of one planner on one outbox."""

    def __init__(self, store: StepStore, undos: UndoStore, limits: Limits, namespace: str) -> None:
        """Raise InvalidIntent for a namespace that cannot be one."""
        self.namespace = check_name(namespace, "namespace")
        self.store = store
        self._limits = limits
        self._compensator = Compensator(store, undos)

    def address(self, name: StepName, namespace: str | None) -> Address:
        """Return where a step stands. Raises InvalidIntent for a malformed name."""
        return address_of(name, self.namespace if namespace is None else namespace)

    def _own_address(self, name: StepName, namespace: str | None) -> Address:
        address = self.address(name, namespace)
        if is_derived(address.intent_id):
            raise refused(Refusal("is_compensation"), address.intent_id)
        return address

    # -- put -------------------------------------------------------------------------------------

    def draft(
        self,
        call: IntentDraft[R] | str,
        args: Mapping[str, Any] | None,
        options: Mapping[str, Any],
    ) -> Draft[R]:
        """Return what can be stored. Raises InvalidIntent."""
        return checked_draft(call, args, self._limits, {"namespace": self.namespace, **options})

    def put(self, drafts: Iterable[Draft[R]], if_exists: IfExists) -> Operation[list[Intent[R]]]:
        """Store drafts: all of them, or RefusedPut is raised."""
        if if_exists not in ("refuse", "keep"):
            raise InvalidIntent("if_exists is refuse or keep", next_step="ackbox put --help")
        batch = list(drafts)

        def work(connection: Connection) -> list[Intent[R]]:
            answers = self.store.put(connection, batch, keep=if_exists == "keep")
            pairs = zip(batch, answers, strict=True)
            return [_stored(draft, answer) for draft, answer in pairs]

        def created(intents: list[Intent[R]]) -> Sequence[Intent]:
            return [intent for intent in intents if intent.created]

        def rings(intents: list[Intent[R]]) -> Sequence[Intent]:
            pairs = zip(intents, batch, strict=True)
            return [one for one, draft in pairs if one.created and draft.held_for is None]

        return Operation(work, created, rings, savepoint=len(batch) > 1)

    def note_refusal(self, no: RefusedPut) -> Operation[None]:
        """Put a refused put on record."""
        subject = f"{no.draft.namespace}/{no.draft.intent_id}"
        return Operation(lambda c: self.store.note_refusal(c, subject, no.refusal.code))

    # -- asking ----------------------------------------------------------------------------------

    def get(self, name: TypedName[R], namespace: str | None) -> Operation[ToldOutcome[R] | None]:
        """Tell a step as it is now; None where nothing is visible."""
        address = self.address(name, namespace)

        def work(connection: Connection) -> ToldOutcome[R] | None:
            told = self._told(connection, address)
            return with_result(told, reader_of(name)) if told else None

        return Operation(work, writes=False)

    def _told(self, connection: Connection, address: Address) -> ToldOutcome[Any] | None:
        key = (address.namespace, address.intent_id)
        found = self.store.steps(connection, [key]).get(key)
        telling = tell(found[0], address.generation, found[1]) if found else None
        return telling.told if telling else None

    @staticmethod
    def not_committed(address: Address) -> Refused:
        """Return what is raised for a wait that could never end."""
        return refused(Refusal("not_committed", "its transaction is open"), address.intent_id)

    def waited(
        self, telling: Telling | None, name: TypedName[R], namespace: str | None
    ) -> ToldOutcome[R]:
        """Return what a wait is told, where it saw no such step too."""
        if telling is not None:
            return with_result(telling.told, reader_of(name))
        address = self.address(name, namespace)
        return InFlight(
            namespace=address.namespace,
            intent_id=address.intent_id,
            generation=address.generation or 0,
            reason="nothing is stored under this id, or its transaction is not committed",
            next_step="commit the transaction that put it, or put it",
        )

    def note_timeout(self, name: StepName, namespace: str | None) -> Operation[Intent]:
        """Record that the planner gave up waiting; its lane is rung."""
        address = self.address(name, namespace)

        def work(connection: Connection) -> Intent:
            key = (address.namespace, address.intent_id)
            intent = name if isinstance(name, Intent) else self.store.find(connection, key)
            if intent is None:
                raise refused(Refusal("not_found"), address.intent_id)
            self.store.note(connection, intent, "planner_timeout")
            return intent

        return Operation(work, rings=lambda intent: [intent])

    # -- changing --------------------------------------------------------------------------------

    def supersede(
        self,
        name: TypedName[R],
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft[R] | None,
        deadline: datetime | None,
        namespace: str | None,
    ) -> Operation[Intent[R]]:
        """Replace a step's live generation."""
        address = self._own_address(name, namespace)
        read_result = args.read_result if isinstance(args, IntentDraft) else reader_of(name)

        def work(connection: Connection) -> Intent[R]:
            content = self._next_content(connection, address, from_generation, args)
            answer = self.store.supersede(connection, address, from_generation, content, deadline)
            return _granted(answer, address).read_by(read_result)

        return Operation(work, _created, _created)

    def _next_content(
        self,
        connection: Connection,
        address: Address,
        from_generation: int,
        args: Mapping[str, Any] | IntentDraft | None,
    ) -> Content | None:
        if args is None:
            return None
        before = self.store.generation(connection, address, from_generation)
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

    def cancel(self, name: StepName, namespace: str | None) -> Operation[Told]:
        """Call a step off, or record that it is not wanted."""
        address = self._own_address(name, namespace)

        def work(connection: Connection) -> Told:
            state = _granted(self.store.cancel(connection, address), address)
            told = self._told(connection, address)
            assert told is not None, "the step was just locked"
            return told if state in SETTLED_STATES else _cancel_recorded(told, state)

        return Operation(work)

    def compensate(
        self, name: StepName, tools: Tools, namespace: str | None
    ) -> Operation[Intent | Told]:
        """Order the undoing of a step's effect; tells a step that was called off instead."""
        address = self._own_address(name, namespace)

        def work(connection: Connection) -> Intent | Told:
            ordered = _granted(self._compensator.order(connection, address, tools), address)
            answer = ordered or self._told(connection, address)
            assert answer is not None, "the step was just locked"
            return answer

        return Operation(work, _created, _created)


def _stored(draft: Draft[R], answer: Intent | Refusal) -> Intent[R]:
    if isinstance(answer, Refusal):
        raise RefusedPut(draft, answer)
    return answer.read_by(draft.read_result)


def _granted(answer: T | Refusal, address: Address) -> T:
    """Return the answer, or raise the refusal that it is."""
    if isinstance(answer, Refusal):
        raise refused(answer, address.intent_id)
    return answer


def _created(answer: Intent | Told) -> Sequence[Intent]:
    return [answer] if isinstance(answer, Intent) and answer.created else ()


def _cancel_recorded(told: Told, state: State) -> CancelRecorded:
    return CancelRecorded(
        namespace=told.namespace,
        intent_id=told.intent_id,
        generation=told.generation,
        reason=f"it is {state.value}: one send is open and may take effect",
        next_step="wait for its outcome",
        also_happened=told.also_happened,
    )
