"""What people do on a memory bus: statements about unknown effects, releases, gates.

The rules are those of the command line. Composition.
"""

from __future__ import annotations

from math import ceil

from ...outbox.errors import Refused
from ...outbox.intent import StepName
from ...outbox.model import Actor, GateDecision, Refusal
from ...outbox.people import Denied, Said
from ...planner.refusals import refused
from ...planner.shell.operations import Operations
from ...sim.planning import latest_divergence
from ...sim.store import MemoryStore
from .engine import Engine

NAME = "somebody"
REASON = "as the test has it"


class People:
    """A person in front of the bus. Every method raises Refused where the person is refused."""

    def __init__(self, engine: Engine, operations: Operations) -> None:
        self._engine = engine
        self._operations = operations

    def landed(self, name: StepName, ref: str) -> None:
        """Say that an unknown effect happened, and where it can be seen."""
        with self._engine.locked() as world:
            _take(world.store.people.landed(self._said(world.store, name), ref))

    def not_landed(
        self, name: StepName, *, requeue: bool = False, may_duplicate: bool = False
    ) -> None:
        """Say that an unknown effect did not happen: it has failed, or is to be sent again."""
        with self._engine.locked() as world:
            said = self._said(world.store, name)
            _take(world.store.people.not_landed(said, requeue=requeue, may_duplicate=may_duplicate))

    def undone(self, name: StepName) -> None:
        """Say that an effect was undone by hand."""
        with self._engine.locked() as world:
            _take(world.store.people.undone(self._said(world.store, name)))

    def release(self, name: StepName, *, may_duplicate: bool = False) -> None:
        """Let a held step go, having seen what there is to be seen."""
        with self._engine.locked() as world:
            said = self._said(world.store, name)
            divergence = latest_divergence(world, said.seq)
            answer = world.store.people.release(
                said, may_duplicate=may_duplicate, divergence=divergence
            )
            _take(answer)

    def approve(self, name: StepName) -> None:
        """Let a step through its gate."""
        self._decide(name, GateDecision.APPROVED)

    def reject(self, name: StepName) -> None:
        """Keep a step from ever being sent."""
        self._decide(name, GateDecision.REJECTED)

    def history(self, name: StepName) -> list[str]:
        """Return the names of everything that happened to a step, in order."""
        with self._engine.locked() as world:
            seq = self._seq(world.store, name)
            return [event.name for event in world.store.tables.events.get(seq, ())]

    # -- shared ------------------------------------------------------------------------------------

    def _decide(self, name: StepName, decision: GateDecision) -> None:
        with self._engine.locked() as world:
            seq = self._seq(world.store, name)
            answer = world.store.gates.decide(
                seq, decision, actor=Actor.PERSON, actor_name=NAME, reason=REASON,
                fingerprint=world.store.tables.intents[seq].fingerprint,
            )  # fmt: skip
            if isinstance(answer, Refusal):
                raise refused(answer, world.store.tables.intents[seq].intent_id)

    def _said(self, store: MemoryStore, name: StepName) -> Said:
        seq = self._seq(store, name)
        return Said(seq, NAME, REASON, store.tables.rows[seq].fence)

    def _seq(self, store: MemoryStore, name: StepName) -> int:
        address = self._operations.address(name, None)
        for seq in store.tables.names.get((address.namespace, address.intent_id), ()):
            row = store.tables.rows[seq]
            if row.live if address.generation is None else row.generation == address.generation:
                return seq
        raise refused(Refusal("not_found"), address.intent_id)


def _take(answer: object) -> None:
    if isinstance(answer, Denied):
        seconds = answer.seconds_left
        next_step = f"bus.advance({ceil(seconds)})" if seconds else answer.next_step
        raise Refused(answer.code, next_step, what=answer.detail)
