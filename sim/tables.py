"""The in-memory outbox's tables, and the one way to write its rows.

Every row is written by `transitions.apply` or by a fact that is no edge (trust, quiet, marks of a
divergence); what to do is always decided by the pure core, exactly as under the locks of the real
store. Every method here is one transaction. May import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

from ..outbox import effects
from ..outbox.contract import ToolContract
from ..outbox.defaults import Limits
from ..outbox.model import SETTLED_STATES, Actor, Move, Refusal, Row, State, World, changed
from ..outbox.records import Moved, Note, Observation, Write
from ..outbox.transitions import EDGE, Edge, apply
from .clock import VirtualClock
from .records import Batch, Event, GateRecord, IntentRecord, Kept, WorkerRecord

SETTLED = "settled"
BOUND = "bound"
_SETTLED_AS_NOTHING = (State.FAILED, State.CANCELLED)
_HOLDABLE = (State.QUEUED, State.EXECUTING)
Snapshot: TypeAlias = tuple[Any, ...]


def _in_lock_order(writes: Iterable[Write]) -> list[Write]:
    found = list(writes)
    if len(found) > 1:
        found.sort(key=lambda one: (one.move.edge, one.move.seq))
    return found


def served_name(tool: str, version: int) -> str:
    """Return how a worker row lists a tool it serves."""
    return f"{tool}@{version}"


class Tables:
    """All rows of one outbox. `draw` returns a random share for the jitter of back-offs."""

    def __init__(
        self, clock: VirtualClock, limits: Limits, draw: Callable[[], float] = lambda: 1.0
    ) -> None:
        self.clock = clock
        self.limits = limits
        self.draw = draw
        self.edges: Mapping[str, Edge] | None = None
        """A table to go by instead of the shipped one, where a guard is left out on trial."""
        self.dead_after = timedelta(seconds=limits.dead_after_seconds)
        self.contracts: list[ToolContract] = []
        self.contract_ids: dict[ToolContract, int] = {}
        self.intents: dict[int, IntentRecord] = {}
        self.rows: dict[int, Row] = {}
        self.names: dict[tuple[str, str], tuple[int, ...]] = {}
        self.undos: dict[int, tuple[int, ...]] = {}
        self.gates: dict[int, GateRecord] = {}
        self.workers: dict[UUID, WorkerRecord] = {}
        self.batches: dict[int, Batch] = {}
        self.domains: dict[tuple[str, str], int] = {}
        self.hand_by: dict[int, Any] = {}
        self.observations: dict[int, tuple[Kept, ...]] = {}
        self.events: dict[int | None, tuple[Event, ...]] = {}
        self.paused: frozenset[str] = frozenset()
        self.next_seq = 1
        self.next_event = 1
        self.next_observation = 1
        self.next_batch = 1
        self.dirty: dict[int, Row | None] = {}
        """Rows written since somebody emptied this, each as it was before; not part of a fork."""
        self.recent: list[Event] = []
        """Events since somebody emptied this; not part of a fork."""

    # -- forks -----------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return everything that `restore` needs; values are shared, so it is cheap."""
        copied = tuple([table.copy() for table in self._tables()])
        plain = (
            self.paused, self.next_seq, self.next_event, self.next_observation, self.next_batch,
        )  # fmt: skip
        return copied, plain

    def _tables(self) -> tuple[dict[Any, Any], ...]:
        return (
            self.intents, self.rows, self.names, self.undos, self.gates, self.workers,
            self.batches, self.domains, self.hand_by, self.observations, self.events,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, which stays usable."""
        copied, plain = snapshot
        (
            self.intents, self.rows, self.names, self.undos, self.gates, self.workers,
            self.batches, self.domains, self.hand_by, self.observations, self.events,
        ) = [table.copy() for table in copied]  # fmt: skip
        (
            self.paused, self.next_seq, self.next_event, self.next_observation, self.next_batch,
        ) = plain  # fmt: skip

    # -- what guards look at ---------------------------------------------------------------------

    def contract_id(self, contract: ToolContract) -> int:
        """Keep a declaration, once, and return its id."""
        found = self.contract_ids.get(contract)
        if found is None:
            self.contracts.append(contract)
            found = self.contract_ids[contract] = len(self.contracts)
        return found

    def contract_of(self, row: Row) -> ToolContract | None:
        """Return the stamped declaration of a row, None before its first claim."""
        return None if row.contract_id is None else self.contracts[row.contract_id - 1]

    def step_of(self, seq: int) -> tuple[Row, ...]:
        """Return every generation of the row's step, ascending."""
        seqs = self.names[self.intents[seq].name]
        if len(seqs) == 1:
            return (self.rows[seq],)
        return tuple([self.rows[one] for one in seqs])

    def is_alive(self, worker: UUID | None) -> bool:
        """Return whether a process's heartbeat row says that it lives."""
        found = self.workers.get(worker) if worker is not None else None
        if found is None or found.stopped:
            return False
        return found.beat_at > self.clock.now - self.dead_after

    def is_served(self, seq: int) -> bool:
        """Return whether a live worker's row lists the row's tool at its version."""
        intent = self.intents[seq]
        name = served_name(intent.tool, intent.tool_version)
        return any(name in one.tools and self.is_alive(key) for key, one in self.workers.items())

    def is_paused(self, tool: str) -> bool:
        """Return whether sends of the tool are paused."""
        return bool(self.paused) and ("*" in self.paused or tool in self.paused)

    def world(self, seq: int, share: float = 1.0) -> World:
        """Return what the guards of a row's edges may look at, read under its lock."""
        row = self.rows[seq]
        contract = self.contract_of(row)
        gate = self.gates.get(seq)
        return World(
            now=self.clock.now,
            contract=contract,
            limits=self.limits,
            owner_alive=self.is_alive(row.owner),
            tool_served=row.unready_since is not None and self.is_served(seq),
            paused=contract is not None and self.is_paused(contract.tool),
            read_set_holds=self._read_set_holds(self.intents[seq]),
            gate=None if gate is None else gate.decision,
            step=self.step_of(seq),
            undo_committed=seq in self.undos and self._is_undone(seq),
            share=share,
            edges=self.edges,
        )

    def _is_undone(self, seq: int) -> bool:
        return any(self.rows[undo].state is State.COMMITTED for undo in self.undos[seq])

    def _read_set_holds(self, intent: IntentRecord) -> bool:
        if not intent.read_set:
            return True
        versions = self.domains
        return all(
            versions.get((intent.namespace, name), 0) == version
            for name, version in intent.read_set.items()
        )

    # -- writing ---------------------------------------------------------------------------------

    def write(self, seq: int, **columns: Any) -> None:
        """Write columns that no edge writes: a fact about the row, never its state."""
        if "state" in columns:
            raise ValueError("only an edge changes a state")
        self._store(seq, changed(self.rows[seq], columns))

    def insert(self, row: Row) -> None:
        """Insert a new state row."""
        self._store(row.seq, row)

    def _store(self, seq: int, row: Row) -> None:
        self.dirty.setdefault(seq, self.rows.get(seq))
        self.rows[seq] = row

    def perform(self, writes: Iterable[Write]) -> dict[int, Moved]:
        """Perform the moves and return those that took place, by seq.

        As in the real store: a row that settles as nothing while a send of it is in doubt opens a
        divergence in the same transaction.
        """
        done = self._take_edges(writes)
        for moved in sorted(done.values(), key=lambda one: one.seq):
            row = self.rows[moved.seq]
            if moved.state in _SETTLED_AS_NOTHING and row.in_doubt and row.diverged_at is None:
                self.diverge(moved.seq, Actor.OUTBOX, "in_doubt")
        return done

    def _take_edges(self, writes: Iterable[Write]) -> dict[int, Moved]:
        done: dict[int, Moved] = {}
        settled: dict[str, list[int]] = {}
        for write in _in_lock_order(writes):
            moved = self._take(write)
            if moved is not None:
                done[moved.seq] = moved
                if moved.state in SETTLED_STATES:
                    settled.setdefault(moved.edge, []).append(moved.seq)
        for seqs in settled.values():
            self.add_batch(SETTLED, seqs)
        return done

    def _take(self, write: Write) -> Moved | None:
        move = write.move
        before = self.rows[move.seq]
        after = apply(before, move, self.world(move.seq))
        refused = isinstance(after, Refusal)
        seen = write.observation
        kept: int | None = None
        if seen is not None and not (refused and seen.kind == "order"):
            kept = self.keep(move.seq, move.fence or 0, seen, write.actor)
        if isinstance(after, Refusal):
            return None
        if effects.observed in EDGE[move.edge].effects:
            after = changed(after, {"observation_id": kept})
        self._store(move.seq, after)
        self.log(
            move.seq, move.edge, write.actor, move.reason, after.fence, before.state, after.state,
            write.actor_name, detail=write.detail,
        )  # fmt: skip
        return Moved(move.seq, move.edge, after.state, after.fence)

    # -- history ---------------------------------------------------------------------------------

    def keep(self, seq: int, fence: int, seen: Observation, actor: Actor) -> int:
        """Store an observation, or find it: one per (seq, fence, kind, number)."""
        stored = self.observations.get(seq, ())
        number = seen.number
        if seen.kind == "order":
            number = sum(one.fence == fence and one.kind == "order" for one in stored)
        for one in stored:
            if (one.fence, one.kind, one.number) == (fence, seen.kind, number):
                return one.observation_id
        kept = Kept(
            self.next_observation, fence, seen.kind, number, seen.outcome, seen.ref,
            seen.document, actor,
        )  # fmt: skip
        self.next_observation += 1
        self.observations[seq] = (*stored, kept)
        return kept.observation_id

    def next_number(self, seq: int, fence: int, kind: str) -> int:
        """Return the number of a row's next observation of this fence and kind."""
        numbers = [
            one.number
            for one in self.observations.get(seq, ())
            if one.fence == fence and one.kind == kind
        ]
        return max(numbers, default=-1) + 1

    def settled_by(self, seq: int) -> Kept | None:
        """Return the observation that settled a row, None where it is open."""
        wanted = self.rows[seq].observation_id
        if wanted is None:
            return None
        return next(one for one in self.observations[seq] if one.observation_id == wanted)

    def last_word(self, seq: int) -> str | None:
        """Return what the newest attempt of a row said of its outcome."""
        attempts = [one for one in self.observations.get(seq, ()) if one.kind == "attempt"]
        newest = max(attempts, key=lambda one: (one.fence, one.number), default=None)
        return newest.document.get("reason") if newest is not None else None

    def known_refs(self, seq: int) -> set[str]:
        """Return the effect references on record for a row and for its compensations."""
        rows = (seq, *self.undos.get(seq, ()))
        return {
            kept.ref
            for one in rows
            for kept in self.observations.get(one, ())
            if kept.ref is not None
        }

    def log(
        self,
        seq: int | None,
        name: str,
        actor: Actor,
        reason: str | None = None,
        fence: int | None = None,
        from_state: State | None = None,
        to_state: State | None = None,
        actor_name: str | None = None,
        subject: str | None = None,
        detail: Any = None,
    ) -> None:
        """Append one event."""
        event = Event(
            self.next_event, self.clock.now, seq, name, from_state, to_state, actor, fence, reason,
            actor_name, subject, detail,
        )  # fmt: skip
        self.next_event += 1
        self.recent.append(event)
        self.events[seq] = (*self.events.get(seq, ()), event)

    def note(self, item: Note) -> None:
        """Append an event that moves no state."""
        self.log(
            item.seq, item.name, item.actor, item.reason, item.fence, item.state, item.state,
            item.actor_name, item.subject, item.detail,
        )  # fmt: skip

    def add_batch(self, stage: str, seqs: Iterable[int]) -> None:
        """Have rows bound, or handed over, by the next consumer."""
        self.batches[self.next_batch] = Batch(stage, tuple(sorted(seqs)), self.clock.now)
        self.next_batch += 1

    # -- facts about a step ------------------------------------------------------------------------

    def diverge(self, seq: int, actor: Actor, reason: str, detail: Any = None) -> None:
        """Open a divergence on a row and on what hangs on it, and hold the step's live row."""
        marked = self._rows_that_diverge(seq)
        for one in marked:
            if self.rows[one].diverged_at is None:
                self.write(one, diverged_at=self.clock.now)
        self.note(Note(seq, "divergence", actor, reason, detail=detail))
        holds = [
            Write(Move("hold", one, self.rows[one].state, reason=reason), actor,
                  self.rows[one].contract_id)
            for one in marked
            if self.rows[one].live and self.rows[one].state in _HOLDABLE
        ]  # fmt: skip
        self._take_edges(holds)

    def _rows_that_diverge(self, seq: int) -> list[int]:
        own = self.intents[seq]
        steps = set(self.names[own.name])
        if own.compensates is not None:
            steps |= set(self.names[self.intents[own.compensates].name])
        return [
            one for one in sorted(steps) if self.rows[one].live or one in (seq, own.compensates)
        ]

    def poke_step(self, seq: int) -> None:
        """Have hold_pass look at the held rows of a step at its next run."""
        now = self.clock.now
        for one in self.names[self.intents[seq].name]:
            hold_at = self.rows[one].hold_at
            if hold_at is not None and hold_at > now:
                self.write(one, hold_at=now)
