"""The planner's store over the simulator's tables: what `planner.shell.seam` asks for.

Connections are ignored: there is one store, and whoever calls holds its lock. Composition.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from ...outbox.compensate import CompensationRequest, OrderedCompensation
from ...outbox.intent import Address, Content, Draft, Intent
from ...outbox.model import Actor, Refusal, State
from ...outbox.records import Note
from ...outbox.shell.compensation_store import UndoTarget
from ...outbox.telling import Generation
from ...planner.shell.seam import Row
from ...sim.store import MemoryStore

_COLUMNS = (
    "seq", "namespace", "intent_id", "generation", "run_id", "step", "tool", "tool_version",
    "lane", "args", "fingerprint",
)  # fmt: skip


T = TypeVar("T", Draft[Any], Content)


def _stored(call: T) -> T:
    """Return a call with its arguments as a database gives them back: through JSON."""
    return replace(call, args=json.loads(json.dumps(call.args)))


class MemorySteps:
    """Steps in memory."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def put(
        self, connection: Any, drafts: Sequence[Draft], *, keep: bool = False
    ) -> list[Intent | Refusal]:
        """Insert drafts, or find what stands under their ids; none of them where one is refused."""
        before = self._store.snapshot()
        answers = self._store.planner.put([_stored(draft) for draft in drafts], keep=keep)
        if any(isinstance(answer, Refusal) for answer in answers):
            self._store.restore(before)
        return answers

    def note_refusal(self, connection: Any, subject: str, code: str) -> None:
        """Put a refused put on record."""
        self._store.tables.note(Note(None, code, Actor.PLANNER, "put", subject=subject))

    def note(self, connection: Any, intent: Intent, name: str) -> None:
        """Append an event of the planner that moves nothing."""
        self._store.tables.note(Note(intent.seq, name, Actor.PLANNER))

    def steps(
        self, connection: Any, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[list[Generation], datetime]]:
        """Read all generations of the named steps, with the store's time."""
        return self._store.planner.steps(names)

    def find(self, connection: Any, name: tuple[str, str]) -> Intent | None:
        """Return the live generation of a step as an intent."""
        return self._store.planner.find(name)

    def generation(self, connection: Any, address: Address, generation: int) -> Row | None:
        """Read one generation's immutable part."""
        tables = self._store.tables
        for seq in tables.names.get((address.namespace, address.intent_id), ()):
            intent = tables.intents[seq]
            if intent.generation == generation:
                return {name: getattr(intent, name) for name in _COLUMNS}
        return None

    def supersede(
        self,
        connection: Any,
        address: Address,
        from_generation: int,
        content: Content | None = None,
        deadline: datetime | None = None,
    ) -> Intent | Refusal:
        """Replace the live generation by the next one."""
        stored = None if content is None else _stored(content)
        return self._store.planner.supersede(address, from_generation, stored, deadline)

    def cancel(self, connection: Any, address: Address) -> State | Refusal:
        """Withdraw the live generation, or record that it is not wanted."""
        return self._store.planner.cancel(address)


class MemoryUndoOrders:
    """Compensations in memory."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def undo_target(self, connection: Any, seq: int) -> UndoTarget | None:
        """Return whose effect a compensation of a row would undo."""
        found = self._store.compensations.undo_target(seq)
        if found is None:
            return None
        return UndoTarget(found.seq, found.tool, found.version, found.state, found.target)

    def order(
        self, connection: Any, seq: int, plan: CompensationRequest
    ) -> OrderedCompensation | Refusal:
        """Insert the intent that undoes a row's effect, or say why not."""
        return self._store.compensations.order(seq, plan, Actor.PLANNER)
