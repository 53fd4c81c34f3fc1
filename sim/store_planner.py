"""The planner's side of the in-memory outbox: put, supersede, cancel, telling; the consumer's too.

Each method answers as its namesake in the real store and decides by the same pure functions. May
import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from ..outbox.bind import answer_unbound
from ..outbox.commands import BindAnswer
from ..outbox.generations import (
    CANCELLED,
    NOT_FOUND,
    SUPERSEDED,
    Stored,
    answer_cancel,
    answer_late_supersede,
    answer_stored,
    release_of,
    withdrawal_of,
)
from ..outbox.intent import Address, Content, Draft, Intent
from ..outbox.model import Actor, GateDecision, Move, Refusal, Row, State
from ..outbox.records import Note, Write, order
from ..outbox.telling import Generation
from ..outbox.transitions import BIND
from .records import Batch, Frozen, GateRecord, IntentRecord
from .tables import BOUND, SETTLED, Tables

_ON_THE_WIRE = (State.AWAITING_ACK, State.INDETERMINATE)


class MemoryPlanner:
    """What a planner may ask of one outbox's rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # -- put -------------------------------------------------------------------------------------

    def put(self, drafts: Sequence[Draft], *, keep: bool = False) -> list[Intent | Refusal]:
        """Insert drafts, or find what stands under their ids; one answer per draft, in order."""
        return [self._put(draft, keep) for draft in drafts]

    def _put(self, draft: Draft, keep: bool) -> Intent | Refusal:
        name = (draft.namespace, draft.intent_id)
        if name in self._tables.names:
            found = [self._stored(seq) for seq in self._tables.names[name]]
            shown = [one for one in found if one.intent.generation == 0 or one.live]
            return answer_stored(draft, shown, keep=keep)
        return self._insert(draft).intent(created=True)

    def _stored(self, seq: int) -> Stored:
        intent = self._tables.intents[seq]
        live = self._tables.rows[seq].live
        return Stored(intent.intent(created=False), intent.fingerprint, live)

    def _insert(self, draft: Draft) -> IntentRecord:
        tables, now = self._tables, self._tables.clock.now
        intent = IntentRecord(
            seq=tables.next_seq, namespace=draft.namespace, intent_id=draft.intent_id,
            generation=0, tool=draft.tool, tool_version=draft.tool_version, lane=draft.lane,
            args=Frozen(draft.args), fingerprint=draft.fingerprint, content=draft.content,
            created_at=now, run_id=draft.run_id, step=draft.step, read_set=draft.read_set,
            deadline=draft.deadline, traceparent=draft.traceparent, tracestate=draft.tracestate,
        )  # fmt: skip
        ready_at = now if draft.not_before is None else max(now, draft.not_before)
        held = draft.held_for is not None
        insert_row(tables, intent, held=held, ready_at=ready_at, actor=Actor.PLANNER, fence=None)
        if draft.held_for is not None:
            tables.gates[intent.seq] = GateRecord(draft.fingerprint, now, draft.held_for)
        return intent

    # -- generations -----------------------------------------------------------------------------

    def supersede(
        self,
        address: Address,
        from_generation: int,
        content: Content | None = None,
        deadline: datetime | None = None,
    ) -> Intent | Refusal:
        """Replace the live generation by the next one; repeated, answers with that one."""
        live = self._live(address)
        if live is None:
            return NOT_FOUND
        if live.generation != from_generation:
            asked = content.fingerprint if content else None
            before, after = (self._generation(address, from_generation + n) for n in (0, 1))
            return answer_late_supersede(from_generation, before, after, asked)
        self._withdraw(live, SUPERSEDED)
        successor = self._succeed(live.seq, content, deadline)
        self._tables.perform([Write(release_of(successor.seq), Actor.OUTBOX)])
        return successor.intent(created=True)

    def _succeed(
        self, seq: int, content: Content | None, deadline: datetime | None
    ) -> IntentRecord:
        """End a live row's turn and insert the next generation, held."""
        tables = self._tables
        tables.write(seq, live=False, wanted=False)
        retired, old = tables.rows[seq], tables.intents[seq]
        intent = IntentRecord(
            seq=tables.next_seq, namespace=old.namespace, intent_id=old.intent_id,
            generation=old.generation + 1, tool=old.tool,
            tool_version=content.tool_version if content else old.tool_version,
            lane=content.lane if content else old.lane,
            args=Frozen(content.args) if content else old.args,
            fingerprint=content.fingerprint if content else old.fingerprint,
            content=content.content if content else old.content,
            created_at=tables.clock.now, run_id=old.run_id, step=old.step, read_set=old.read_set,
            deadline=deadline or old.deadline, traceparent=old.traceparent,
            tracestate=old.tracestate,
        )  # fmt: skip
        tables.log(seq, "supersede", Actor.PLANNER, None, retired.fence, retired.state,
                   retired.state, detail={"generation": intent.generation})  # fmt: skip
        insert_row(tables, intent, held=True, ready_at=None, actor=Actor.PLANNER,
                   diverged_at=retired.diverged_at)  # fmt: skip
        if seq in tables.gates:
            policy = tables.gates[seq].policy
            gate = GateRecord(intent.fingerprint, tables.clock.now, policy)
            tables.gates[intent.seq] = gate
        return intent

    def _generation(self, address: Address, generation: int) -> Stored | None:
        seqs = self._tables.names[address.namespace, address.intent_id]
        found = [s for s in seqs if self._tables.intents[s].generation == generation]
        return self._stored(found[0]) if found else None

    def _live(self, address: Address) -> Row | None:
        seqs = self._tables.names.get((address.namespace, address.intent_id), ())
        return next((self._tables.rows[s] for s in seqs if self._tables.rows[s].live), None)

    # -- cancel ----------------------------------------------------------------------------------

    def cancel(self, address: Address) -> State | Refusal:
        """Withdraw the live generation, or record that it is not wanted; answer its state then."""
        if (address.namespace, address.intent_id) not in self._tables.names:
            return NOT_FOUND
        live = self._live(address)
        answer = answer_cancel(live, address.generation)
        if answer is not None or live is None:
            return answer or NOT_FOUND
        if self._withdraw(live, CANCELLED):
            return State.CANCELLED
        self._record_cancel(live)
        return live.state

    def _record_cancel(self, live: Row) -> None:
        if live.wanted and live.state in _ON_THE_WIRE:
            self._tables.write(live.seq, wanted=False)
            self._tables.note(
                Note(live.seq, "cancel_recorded", Actor.PLANNER, None, live.fence, live.state)
            )

    def _withdraw(self, row: Row, reason: str) -> bool:
        move = withdrawal_of(row, reason)
        if move is None:
            return False
        write = Write(move, Actor.PLANNER, row.contract_id, order(reason))
        return row.seq in self._tables.perform([write])

    # -- telling ---------------------------------------------------------------------------------

    def find(self, name: tuple[str, str]) -> Intent | None:
        """Return the live generation of a step as an intent."""
        live = self._live(Address(*name))
        return None if live is None else self._tables.intents[live.seq].intent(created=False)

    def steps(
        self, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[list[Generation], datetime]]:
        """Read all generations of the named steps, with the store's time."""
        return {
            name: ([self._told(seq) for seq in self._tables.names[name]], self._tables.clock.now)
            for name in names
            if name in self._tables.names
        }

    def _told(self, seq: int) -> Generation:
        tables, row, intent = self._tables, self._tables.rows[seq], self._tables.intents[seq]
        seen, gate = tables.settled_by(seq), tables.gates.get(seq)
        queued = row.state is State.QUEUED
        return Generation(
            row=row, namespace=intent.namespace, intent_id=intent.intent_id, tool=intent.tool,
            version=intent.tool_version, outcome=seen.outcome if seen else None,
            ref=seen.ref if seen else None,
            document=seen.document if seen else {}, gate=gate.decision if gate else None,
            unserved=queued and not tables.is_served(seq),
            paused=queued and tables.is_paused(intent.tool),
            last_word=tables.last_word(seq) if row.state is State.INDETERMINATE else None,
        )  # fmt: skip


def insert_row(
    tables: Tables,
    intent: IntentRecord,
    *,
    held: bool,
    ready_at: datetime | None,
    actor: Actor,
    diverged_at: datetime | None = None,
    detail: dict[str, int] | None = None,
    actor_name: str | None = None,
    reason: str | None = None,
    fence: int | None = 0,
) -> None:
    """Insert an intent with its state row and event. Edges: put, put.held."""
    seq, state = intent.seq, State.HELD if held else State.QUEUED
    tables.next_seq += 1
    tables.intents[seq] = intent
    row = Row(
        seq=seq, generation=intent.generation, lane=intent.lane, state=state,
        ready_at=None if held else ready_at, hold_at=tables.clock.now if held else None,
        withdraw_at=intent.deadline, deadline=intent.deadline, diverged_at=diverged_at,
        fingerprint=intent.fingerprint, content=intent.content,
    )  # fmt: skip
    tables.insert(row)
    tables.names[intent.name] = (*tables.names.get(intent.name, ()), seq)
    if intent.compensates is not None:
        target = intent.compensates
        tables.undos[target] = (*tables.undos.get(target, ()), seq)
    tables.log(
        seq, "put.held" if held else "put", actor, reason, fence, None, state, actor_name,
        detail=detail,
    )  # fmt: skip


class MemoryBinding:
    """Batches of settled and of bound rows: the consumer's side."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def due(self, stage: str, limit: int) -> tuple[int, ...]:
        """Return batches of a stage whose turn has come."""
        if not self._tables.batches:
            return ()
        now = self._tables.clock.now
        found = [
            batch_id
            for batch_id, batch in self._tables.batches.items()
            if batch.stage == stage and batch.due_at <= now
        ]
        return tuple(sorted(found)[:limit])

    def bind_together(self, batch_ids: Collection[int]) -> BindAnswer:
        """Bind whole batches and forget them."""
        due = set(self.due(SETTLED, len(self._tables.batches))) & set(batch_ids)
        seqs = [seq for one in sorted(due) for seq in self._tables.batches.pop(one).seqs]
        return self.bind_rows(seqs, ())

    def bind_rows(self, seqs: Sequence[int], hand_over: Collection[str]) -> BindAnswer:
        """Bind rows; those whose tool is in `hand_over` get a batch of the next stage."""
        bound: list[int] = []
        answers: list[str] = []
        for seq in seqs:
            if self._bind(seq):
                bound.append(seq)
            else:
                answers.append(self._rest(seq))
        waiting = [seq for seq in bound if self._tables.intents[seq].tool in hand_over]
        if waiting:
            self._tables.add_batch(BOUND, waiting)
        return BindAnswer(
            len(bound), answers.count("stale"), answers.count("duplicate"), len(waiting)
        )

    def _bind(self, seq: int) -> bool:
        tables, row = self._tables, self._tables.rows[seq]
        world, move = tables.world(seq), Move("bind", seq, row.state)
        rule = (tables.edges or {}).get(BIND.name, BIND)
        if not all(guard.holds(row, move, world) for guard in rule.guards):
            return False
        tables.write(seq, bound_at=tables.clock.now)
        return True

    def _rest(self, seq: int) -> str:
        row = self._tables.rows[seq]
        answer = answer_unbound(row)
        past = self._tables.events.get(seq, ())
        known = any(one.name == "stale" and one.to_state is row.state for one in past)
        if answer == "stale" and not known:
            self._tables.note(Note(seq, "stale", Actor.OUTBOX, None, row.fence, row.state))
        return answer

    # -- batches under a lease -------------------------------------------------------------------

    def take(self, batch_id: int, stage: str, lease_seconds: float) -> Batch | None:
        """Lease a batch that is due; None where another consumer has it."""
        if batch_id not in self.due(stage, len(self._tables.batches)):
            return None
        batch = self._tables.batches[batch_id]
        due_at = self._tables.clock.now + timedelta(seconds=lease_seconds)
        taken = Batch(batch.stage, batch.seqs, due_at, batch.tries + 1)
        self._tables.batches[batch_id] = taken
        return taken

    def finish(
        self, batch_id: int, batch: Batch, left: Sequence[int], delay_seconds: float
    ) -> None:
        """Forget a leased batch, or keep what is left of it for later."""
        found = self._tables.batches.get(batch_id)
        if found is None or found.tries != batch.tries:
            return
        due_at = self._tables.clock.now + timedelta(seconds=delay_seconds)
        if left:
            kept = Batch(batch.stage, tuple(sorted(left)), due_at, batch.tries)
            self._tables.batches[batch_id] = kept
        else:
            del self._tables.batches[batch_id]

    def lease_hand_over(self, seq: int, lease_seconds: float) -> bool:
        """Take the right to hand one row over; False where it is done or somebody is at it."""
        tables, row = self._tables, self._tables.rows[seq]
        now, until = tables.clock.now, tables.hand_by.get(seq)
        if row.bound_at is None or row.handed_at is not None:
            return False
        if until is not None and until > now:
            return False
        tables.hand_by[seq] = now + timedelta(seconds=lease_seconds)
        return True

    def handed(self, seq: int) -> bool:
        """Record that the row's callback returned; False where that was on record."""
        if self._tables.rows[seq].handed_at is not None:
            return False
        self._tables.hand_by.pop(seq, None)
        self._tables.write(seq, handed_at=self._tables.clock.now)
        return True

    def hand_later(self, seq: int) -> None:
        """Let go of a row whose callback raised."""
        if self._tables.rows[seq].handed_at is None:
            self._tables.hand_by.pop(seq, None)

    def unhanded(self, seqs: Collection[int]) -> list[int]:
        """Return which of the rows still wait for their hand-over."""
        return sorted(seq for seq in seqs if self._tables.rows[seq].handed_at is None)


def gate_of(tables: Tables, seq: int) -> GateDecision | None:
    """Return what was decided at a row's gate, None where it has none."""
    gate = tables.gates.get(seq)
    return None if gate is None else gate.decision


def set_gate(tables: Tables, seq: int, gate: GateRecord) -> None:
    """Write a gate, and have hold_pass look at its row."""
    tables.gates[seq] = gate
    tables.write(seq, hold_at=tables.clock.now)
