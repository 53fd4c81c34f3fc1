"""The in-memory outbox of the simulator, as the tests of this package ask it."""

import uuid
from collections.abc import Sequence
from typing import Any

from ackbox.outbox.commands import Claimed, GiveBack, MarkSend, Record
from ackbox.outbox.defaults import DEFAULTS, Limits
from ackbox.outbox.intent import Address, Content, Draft
from ackbox.outbox.model import Actor, GateDecision
from ackbox.sim.clock import VirtualClock
from ackbox.sim.store import MemoryStore
from ackbox.sim.tables import served_name

from .outboxes import COLUMNS, SERVED, TOOLS


class MemoryOutbox:
    """The in-memory outbox of the simulator."""

    kind = "memory"

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock, limits)
        self.tables = self.store.tables
        self.people = self.store.people
        self._contracts = {
            served_name(t.tool, t.version): self.tables.contract_id(t) for t in TOOLS
        }
        store = self.store
        self.cancel = store.planner.cancel
        self.beat, self.stop = store.claims.beat, store.claims.stop
        self.suspect_ready = store.claims.suspect_ready
        self.reap = store.reaper.reap
        self.hold_step, self.order = store.holds.hold_step, store.holds.order
        self.finish_undo = store.holds.finish_undo
        self.time_out = store.gates.time_out
        self.record_probe, self.resend = store.unknowns.record_probe, store.unknowns.resend
        self.look_again, self.park = store.unknowns.look_again, store.unknowns.park

    def put(self, draft: Draft, *, keep: bool = False) -> Any:
        return self.store.planner.put([draft], keep=keep)[0]

    def supersede(self, address: Address, generation: int, content: Content | None) -> Any:
        return self.store.planner.supersede(address, generation, content)

    def tell(self, name: tuple[str, str]) -> Any:
        return self.store.planner.steps([name]).get(name)

    def register(
        self, owner: uuid.UUID, tools: Sequence[str] = SERVED, role: str = "worker"
    ) -> None:
        self.store.claims.register(owner, tools, role)

    def claim(
        self,
        lane: str,
        limit: int,
        owner: uuid.UUID,
        *,
        alone: bool = False,
        knows: Sequence[str] = SERVED,
    ) -> list[Claimed]:
        contracts = {name: one for name, one in self._contracts.items() if name in knows}
        return self.store.claims.claim(lane, limit, owner, contracts, alone=alone)

    def mark(self, command: MarkSend, owner: uuid.UUID) -> Any:
        return self.store.attempts.mark([command], owner)[0]

    def record(self, command: Record) -> Any:
        return self.store.attempts.record([command])[0]

    def give_back(self, command: GiveBack) -> Any:
        return self.store.attempts.give_back([command])[0]

    def ready_lanes(self) -> Any:
        return self.store.reaper.ready_lanes(1000)

    def find_overdue(self) -> tuple[int, ...]:
        return self.store.reaper.find_overdue(100)

    def find_held(self) -> tuple[int, ...]:
        return self.store.holds.find_held(100)

    def find_undone(self) -> tuple[int, ...]:
        return self.store.holds.find_undone(100)

    def compensate(self, seq: int, plan: Any, actor: Actor = Actor.PLANNER) -> Any:
        return self.store.compensations.order(seq, plan, actor)

    def decide(self, seq: int, decision: GateDecision, fingerprint: str) -> Any:
        gate = self.store.gates.decide(
            seq, decision, actor=Actor.PERSON, actor_name="ops", reason="looked at it",
            fingerprint=fingerprint,
        )  # fmt: skip
        return getattr(gate, "decision", gate)

    def gates_due(self) -> Any:
        return self.store.gates.due(100)

    def find_unknown(self) -> Any:
        return self.store.unknowns.find_unknown(100)

    def due(self, stage: str) -> tuple[int, ...]:
        return self.store.binding.due(stage, 100)

    def bind_rows(self, seqs: Sequence[int], hand_over: Sequence[str] = ()) -> Any:
        return self.store.binding.bind_rows(sorted(seqs), hand_over)

    def pause(self, tool: str, *, on: bool) -> None:
        self.tables.paused = self.tables.paused - {tool} if not on else self.tables.paused | {tool}

    def touch(self, domain: str) -> None:
        name = ("default", domain)
        self.tables.domains[name] = self.tables.domains.get(name, 0) + 1

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def seqs(self) -> list[int]:
        return sorted(self.tables.rows)

    def row(self, seq: int) -> dict[str, Any]:
        return {name: getattr(self.tables.rows[seq], name) for name in COLUMNS}

    def events(self) -> list[tuple[Any, ...]]:
        found = sorted(
            (event for events in self.tables.events.values() for event in events),
            key=lambda event: event.event_id,
        )
        return [
            (
                e.seq,
                e.name,
                _word(e.from_state),
                _word(e.to_state),
                e.actor.value,
                e.fence,
                e.reason,
            )
            for e in found
        ]

    def observations(self) -> list[tuple[Any, ...]]:
        return sorted(
            (seq, one.fence, one.kind, one.number, one.outcome, one.ref, one.actor.value)
            for seq, kept in self.tables.observations.items()
            for one in kept
        )


def _word(state: Any) -> Any:
    return None if state is None else state.value
