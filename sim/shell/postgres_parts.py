"""The Postgres stores under the method names of the in-memory outbox, one class for each part.

Arguments and replies are those of `sim.store_*`; what a shell wants in another shape (a transaction
of the caller, a leased batch) is put into that shape here. May import the outbox's shells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from ...outbox.commands import BindAnswer, Claimed, Marked, MarkSend, NotMarked, Resend
from ...outbox.compensate import CompensationRequest
from ...outbox.contract import ToolContract
from ...outbox.defaults import Limits
from ...outbox.intent import Address, Content, Draft
from ...outbox.model import Actor, GateDecision, Refusal
from ...outbox.shell.attempt_store import AttemptStore
from ...outbox.shell.bind_store import BindStore, TakenBatch
from ...outbox.shell.claim_store import ClaimStore, Incarnation
from ...outbox.shell.compensation_store import order_compensation, undo_target
from ...outbox.shell.database import CommitLost, CommitUnknown, Database
from ...outbox.shell.gate_store import Gate, decide_gate, gates_due, time_out_gate
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.shell.reconcile_store import ReconcileStore
from ...outbox.shell.rows import RowReader
from ...outbox.shell.statements import Statements

T = TypeVar("T")
_QUICK = "-c synchronous_commit=off"
"""Nothing of a replay outlives it, so no COMMIT waits for the disk."""


class ForgetfulDatabase(Database):
    """Loses the acknowledgement of a COMMIT on demand; what it says then is what really is lost."""

    def __init__(self, url: str, schema: str) -> None:
        quick = make_url(url).update_query_dict({"options": _QUICK}, append=True)
        super().__init__(
            quick.render_as_string(hide_password=False), schema=schema, pool_size=2,
            application_name="ackbox sim replay",
        )  # fmt: skip
        self.has_lost = False
        """The COMMIT of the transaction before is unacknowledged: the next one learns of that."""

    def run(
        self,
        work: Callable[[Connection], T],
        *,
        attempts: int = 5,
        commit_lost: CommitLost = "repeat",
    ) -> T:
        """Run as the real one does, unless the caller is still to learn of a lost COMMIT."""
        if self.has_lost and commit_lost == "raise":
            self.has_lost = False
            raise CommitUnknown(
                "the acknowledgement of the COMMIT was lost", next_step="read the row again"
            )
        return super().run(work, attempts=attempts, commit_lost=commit_lost)


def whole() -> float:
    """Return the share that a world without chance draws."""
    return 1.0


class Claims:
    """Claims and heartbeats. The store is made anew whenever the clock has moved."""

    def __init__(self, database: Database, statements: Statements) -> None:
        self._database, self._statements = database, statements
        self.forget_hints()

    def forget_hints(self) -> None:
        """Drop hints of when a lane was scanned: they go by this host's clock."""
        self._store = ClaimStore(self._database, self._statements)

    def declare(self, contract: ToolContract) -> None:
        """Keep one tool's declaration."""
        self._store.contract_ids([contract])

    def register(self, owner: UUID, tools: Iterable[str], role: str = "worker") -> None:
        """Write a process's heartbeat row."""
        self._store.register(Incarnation(owner, role, "here", 1, tuple(sorted(tools))))

    def beat(self, owner: UUID) -> bool:
        """Beat once."""
        return self._store.beat(owner)

    def stop(self, owner: UUID) -> None:
        """Say that a process ends on purpose."""
        self._store.stop(owner)

    def claim(
        self, lane: str, limit: int, owner: UUID, contracts: Mapping[str, int], *,
        alone: bool = False,
    ) -> list[Claimed]:  # fmt: skip
        """Claim ready rows of a lane."""
        found = self._store.claim(lane, limit, owner, contracts, alone=alone)
        return sorted(found, key=lambda one: one.seq)

    def suspect_ready(self, lane: str) -> bool:
        """Return whether a ready row of the lane must be claimed alone."""
        return self._store.suspect_ready(lane)

    def push_quiet(self, seqs: Iterable[int]) -> None:
        """Say that calls of these rows still run."""
        self._store.push_quiet(seqs)


class Attempts(AttemptStore):
    """Marks, records, rows given back; and a mark whose COMMIT was lost."""

    def __init__(self, database: ForgetfulDatabase, statements: Statements, limits: Limits) -> None:
        super().__init__(database, statements, limits, draw=whole)
        self._forgetful = database

    def mark_again(self, command: MarkSend, owner: UUID) -> Marked | NotMarked:
        """Ask for a mark whose COMMIT turns out to be unacknowledged."""
        self._forgetful.has_lost = True
        return self.mark([command], owner)[0]


class Unknowns(ReconcileStore):
    """The reconciler's commands; and a resend whose COMMIT was lost."""

    def __init__(self, database: ForgetfulDatabase, statements: Statements, limits: Limits) -> None:
        super().__init__(database, statements, limits, draw=whole)
        self._forgetful = database

    def resend_again(self, command: Resend, owner: UUID) -> Claimed | NotMarked:
        """Ask for a resend whose COMMIT turns out to be unacknowledged."""
        self._forgetful.has_lost = True
        return self.resend(command, owner)


class PlannerSide:
    """What a planner asks, each in a transaction of its own."""

    def __init__(self, database: Database, store: PlannerStore) -> None:
        self._database, self._store = database, store

    def put(self, drafts: Sequence[Draft], *, keep: bool = False) -> Any:
        """Insert drafts, or find what stands under their ids."""
        return self._database.run(lambda c: self._store.put(c, drafts, keep=keep))

    def supersede(
        self, address: Address, from_generation: int, content: Content | None = None
    ) -> Any:
        """Replace the live generation by the next one."""
        return self._database.run(
            lambda c: self._store.supersede(c, address, from_generation, content)
        )

    def cancel(self, address: Address) -> Any:
        """Withdraw the live generation, or record that it is not wanted."""
        return self._database.run(lambda c: self._store.cancel(c, address))

    def find(self, name: tuple[str, str]) -> Any:
        """Return the live generation of a step."""
        return self._database.run(lambda c: self._store.find(c, name))

    def steps(self, names: Collection[tuple[str, str]]) -> Any:
        """Read all generations of the named steps, with the store's time."""
        return self._database.run(lambda c: self._store.steps(c, list(names)))


@dataclass(frozen=True, slots=True)
class LeasedBatch:
    """A leased batch as the world looks at it."""

    seqs: tuple[int, ...]
    tries: int


class Binding:
    """The consumer's side, each call in a transaction of its own."""

    def __init__(self, database: Database, store: BindStore) -> None:
        self._database, self._store = database, store

    def due(self, stage: str, limit: int) -> tuple[int, ...]:
        """Return batches of a stage whose turn has come."""
        return self._database.run(lambda c: self._store.due(c, stage, limit))

    def bind_together(self, batch_ids: Collection[int]) -> BindAnswer:
        """Bind whole batches and forget them."""
        return self._database.run(lambda c: self._store.bind_together(c, batch_ids))

    def bind_rows(self, seqs: Sequence[int], hand_over: Collection[str]) -> BindAnswer:
        """Bind rows; those that are handed over get a batch of the next stage."""
        return self._database.run(lambda c: self._store.bind_rows(c, seqs, hand_over))

    def take(self, batch_id: int, stage: str, lease_seconds: float) -> LeasedBatch | None:
        """Lease a batch that is due."""
        taken = self._database.run(lambda c: self._store.take(c, batch_id, stage, lease_seconds))
        return None if taken is None else LeasedBatch(tuple(seq for seq, _ in taken.rows),
                                                      taken.tries)  # fmt: skip

    def finish(
        self, batch_id: int, batch: LeasedBatch, left: Sequence[int], delay_seconds: float
    ) -> None:
        """Forget a leased batch, or keep what is left of it."""
        taken = TakenBatch(batch_id, tuple((seq, "") for seq in batch.seqs), batch.tries)
        self._database.run(lambda c: self._store.finish(c, taken, left, delay_seconds))

    def lease_hand_over(self, seq: int, lease_seconds: float) -> bool:
        """Take the right to hand one row over."""
        return self._database.run(lambda c: self._store.lease_hand_over(c, seq, lease_seconds))

    def handed(self, seq: int) -> bool:
        """Record that the row's callback returned."""
        return self._database.run(lambda c: self._store.handed(c, seq))

    def hand_later(self, seq: int) -> None:
        """Let go of a row whose callback raised."""
        self._database.run(lambda c: self._store.hand_later(c, seq))

    def unhanded(self, seqs: Collection[int]) -> list[int]:
        """Return which of the rows still wait for their hand-over."""
        return sorted(self._database.run(lambda c: self._store.unhanded(c, seqs)))


class Compensations:
    """Orders compensations."""

    def __init__(self, database: Database, statements: Statements, reader: RowReader) -> None:
        self._database, self._statements, self._reader = database, statements, reader

    def undo_target(self, seq: int) -> Any:
        """Return whose effect a compensation of `seq` would undo."""
        return self._database.run(lambda c: undo_target(c, self._statements, seq))

    def order(self, seq: int, plan: CompensationRequest, actor: Actor) -> Any:
        """Insert the intent that undoes a row's effect, or say why not."""
        return self._database.run(
            lambda c: order_compensation(
                c, self._statements, self._reader, seq=seq, plan=plan, actor=actor
            )
        )


class Gates:
    """Decides gates and times them out."""

    def __init__(self, database: Database, statements: Statements, reader: RowReader) -> None:
        self._database, self._statements, self._reader = database, statements, reader

    def decide(
        self, seq: int, decision: GateDecision, *, actor: Actor, actor_name: str, reason: str,
        fingerprint: str,
    ) -> Gate | Refusal:  # fmt: skip
        """Approve or reject."""
        return self._database.run(
            lambda c: decide_gate(
                c, self._statements, self._reader, seq=seq, decision=decision, actor=actor,
                actor_name=actor_name, reason=reason, fingerprint=fingerprint,
            )
        )  # fmt: skip

    def due(self, limit: int) -> Any:
        """Return open gates whose clock has run out."""
        return self._database.run(lambda c: gates_due(c, self._statements, limit))

    def time_out(self, seq: int, fingerprint: str) -> Any:
        """Reject a gate whose clock has run out."""
        return self._database.run(
            lambda c: time_out_gate(c, self._statements, self._reader, seq, fingerprint)
        )
