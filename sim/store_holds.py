"""Held rows, gates and compensations of the in-memory outbox.

Each method answers as its namesake in the real store and decides by the same pure functions. May
import the pure core of `outbox`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from ..outbox.commands import HoldAnswer, Target
from ..outbox.compensate import (
    IS_COMPENSATION,
    CompensationRequest,
    OrderedCompensation,
    proven_handle,
    refusal_to_undo,
    withdrawal,
)
from ..outbox.gates import TIMED_OUT, refusal_to_decide, rejection
from ..outbox.guards import is_quiet
from ..outbox.hold import (
    COMPENSATING,
    MOVED_ON,
    HoldDecision,
    decide,
    next_look_seconds,
    refused,
)
from ..outbox.identity import undo_id
from ..outbox.model import SETTLED_STATES, Actor, GateDecision, Move, Refusal, Row, State
from ..outbox.records import Note, Observation, Write, order
from ..outbox.transitions import EDGE
from .records import Frozen, GateRecord, IntentRecord
from .store_attempts import target_of
from .store_planner import insert_row, set_gate
from .tables import SETTLED, Tables

_UNDOABLE = (State.COMMITTED, State.INDETERMINATE)
_SHOWN = ("waiting", "parked", "hold", "put")


class MemoryHolds:
    """Answers the hold pass's commands."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def find_held(self, limit: int) -> tuple[int, ...]:
        """Return held rows whose turn has come, and live rows that met an open divergence."""
        now = self._tables.clock.now
        since: list[tuple[Any, int]] = []
        for seq, row in self._tables.rows.items():
            if row.hold_at is not None and row.hold_at <= now:
                since.append((row.hold_at, seq))
            elif (
                row.diverged_at is not None
                and row.live
                and row.state in (State.QUEUED, State.EXECUTING)
            ):
                since.append((row.diverged_at, seq))
        return tuple(seq for _, seq in sorted(since)[:limit])

    def find_undone(self, limit: int) -> tuple[int, ...]:
        """Return targets whose compensation has ended."""
        rows = self._tables.rows
        found = [
            seq
            for seq, row in rows.items()
            if row.undo is not None and rows[row.undo].state in SETTLED_STATES
        ]
        return tuple(sorted(found)[:limit])

    def hold_step(self, seq: int) -> HoldAnswer:
        """Adopt, release or hold the row, say whose effect to undo first, or look again later."""
        return self._carry_out(self._tables.rows[seq], self._decide(seq))

    def order(self, seq: int, owner: int, plan: CompensationRequest | Refusal) -> HoldAnswer:
        """Undo the owner's effect if that is still what the held row waits for."""
        decision, row = self._decide(seq), self._tables.rows[seq]
        if decision.owner != owner:
            return self._carry_out(row, decision)
        if isinstance(plan, Refusal):
            return self._carry_out(row, refused(decision, plan))
        answer = MemoryCompensations(self._tables).order(
            owner, plan, Actor.OUTBOX, reason=f"in the way of row {seq}"
        )
        if isinstance(answer, Refusal):
            return self._carry_out(row, refused(decision, answer))
        self._carry_out(row, replace(decision, owner=None))
        return HoldAnswer("order", COMPENSATING, plan.content.lane)

    def finish_undo(self, seq: int) -> HoldAnswer:
        """Settle a target by its ended compensation, with every adopter, and poke the step."""
        edge = MemoryCompensations(self._tables).finish(seq)
        return HoldAnswer(edge, edge or MOVED_ON, "")

    def _decide(self, seq: int) -> HoldDecision:
        tables = self._tables
        step = tables.step_of(seq)
        contracts = {row.seq: tables.contract_of(row) for row in step}
        ordered = [row.seq for row in step if self._ordered_before(row.seq)]
        return decide(tables.rows[seq], tables.world(seq), contracts, ordered)

    def _ordered_before(self, seq: int) -> bool:
        """Return whether the outbox has ordered a compensation of the row by itself."""
        return any(
            event.name == "put" and event.actor is Actor.OUTBOX
            for undo in self._tables.undos.get(seq, ())
            for event in self._tables.events[undo]
        )

    def _carry_out(self, row: Row, decision: HoldDecision) -> HoldAnswer:
        if decision.move is not None:
            seen = self._order_of(decision.move)
            write = Write(decision.move, Actor.OUTBOX, row.contract_id, seen)
            edge = decision.move.edge if self._tables.perform([write]) else None
            return HoldAnswer(edge, decision.reason if edge else MOVED_ON, row.lane)
        if decision.owner is None and row.state is State.HELD:
            self._rearm(row.seq, decision)
        return HoldAnswer(None, decision.reason, row.lane, decision.owner)

    def _order_of(self, move: Move) -> Observation | None:
        if EDGE[move.edge].target not in SETTLED_STATES:
            return None
        owner = self._tables.settled_by(move.adopted_from or move.seq)
        if owner is None:
            return order(move.edge)
        # An adopter is told the owner's outcome as its own.
        return Observation("order", owner.outcome, dict(owner.document), ref=owner.ref)

    def _rearm(self, seq: int, decision: HoldDecision) -> None:
        """Look again later, show why, park the row, start its gate's clock."""
        tables, row = self._tables, self._tables.rows[seq]
        now = tables.clock.now
        age = (now - tables.intents[seq].created_at).total_seconds()
        delay = next_look_seconds(age, tables.draw(), tables.limits)
        parked_at = (row.parked_at or now) if decision.needs_person else None
        tables.write(seq, hold_at=now + timedelta(seconds=delay), parked_at=parked_at)
        gate = tables.gates.get(seq)
        if decision.starts_gate_clock and gate is not None and gate.clock_started_at is None:
            tables.gates[seq] = replace(gate, clock_started_at=now)
        detail = None if decision.generation is None else {"generation": decision.generation}
        if not self._is_shown(row, decision, detail):
            name = "parked" if decision.needs_person else "waiting"
            tables.note(
                Note(seq, name, Actor.OUTBOX, decision.reason, row.fence, row.state, detail=detail)
            )

    def _is_shown(self, row: Row, decision: HoldDecision, detail: Any) -> bool:
        past = [event for event in self._tables.events[row.seq] if event.name in _SHOWN]
        if not past or (row.parked_at is not None) is not decision.needs_person:
            return False
        return past[-1].reason == decision.reason and past[-1].detail == detail


@dataclass(frozen=True, slots=True)
class UndoTarget:
    """The effect that a compensation would undo, as its adapter has to know it."""

    seq: int
    tool: str
    version: int
    state: State
    target: Target


class MemoryCompensations:
    """Orders compensations and ends them on their targets."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def undo_target(self, seq: int) -> UndoTarget | None:
        """Return whose effect a compensation of `seq` would undo; an adopter's owner, else it."""
        if seq not in self._tables.rows:
            return None
        owner = self._owner(seq)
        intent = self._tables.intents[owner]
        state = self._tables.rows[owner].state
        target = target_of(self._tables, owner)
        return UndoTarget(owner, intent.tool, intent.tool_version, state, target)

    def _owner(self, seq: int) -> int:
        return self._tables.rows[seq].adopted_from or seq

    def order(
        self,
        seq: int,
        plan: CompensationRequest,
        actor: Actor,
        *,
        actor_name: str | None = None,
        reason: str | None = None,
    ) -> OrderedCompensation | Refusal:
        """Insert the intent that undoes a row's effect, or say why not."""
        tables = self._tables
        if seq not in tables.rows:
            return Refusal("no_such_intent", f"row {seq} does not exist")
        if tables.intents[self._owner(seq)].compensates is not None:
            return Refusal(IS_COMPENSATION, "a compensation is not compensated")
        self.finish(seq)
        target = tables.rows[self._owner(seq)]
        if target.undo is not None:
            undo = tables.intents[target.undo]
            return OrderedCompensation(target.seq, undo.seq, undo.intent_id, undo.generation)
        withdraw = withdrawal(target)
        if withdraw is not None:
            write = Write(withdraw, actor, target.contract_id, order("compensate"),
                          actor_name=actor_name)  # fmt: skip
            if not tables.perform([write]):
                return Refusal("guard_failed", "the row moved on")
            return OrderedCompensation(target.seq, withdrawn=True)
        return self._insert(target, plan, actor, actor_name, reason)

    def _insert(
        self,
        target: Row,
        plan: CompensationRequest,
        actor: Actor,
        actor_name: str | None,
        reason: str | None,
    ) -> OrderedCompensation | Refusal:
        tables = self._tables
        settled = tables.settled_by(target.seq)
        world = tables.world(target.seq)
        ref = proven_handle(settled.kind, settled.ref) if settled is not None else None
        refusal = refusal_to_undo(target, world, plan, ref)
        if refusal is not None:
            return refusal
        if target.state not in _UNDOABLE or not is_quiet(target, world.now):
            return Refusal("guard_failed", "the row moved on")
        undo = self._new_undo(target, plan)
        detail = {"compensates": target.seq}
        insert_row(tables, undo, held=False, ready_at=tables.clock.now, actor=actor,
                   actor_name=actor_name, reason=reason, detail=detail)  # fmt: skip
        tables.write(target.seq, undo=undo.seq)
        tables.log(
            target.seq, "undo_ordered", actor, reason, target.fence, target.state, target.state,
            actor_name, detail={"undo": undo.seq},
        )  # fmt: skip
        return OrderedCompensation(
            target.seq, undo.seq, undo.intent_id, undo.generation, created=True
        )

    def _new_undo(self, target: Row, plan: CompensationRequest) -> IntentRecord:
        """Return the next generation of the compensation's intent; the earlier ones are over."""
        tables, own, content = self._tables, self._tables.intents[target.seq], plan.content
        name = undo_id(own.intent_id, own.generation)
        earlier = tables.names.get((own.namespace, name), ())
        for seq in earlier:
            tables.write(seq, live=False, wanted=False)
        generations = [tables.intents[seq].generation for seq in earlier]
        return IntentRecord(
            seq=tables.next_seq, namespace=own.namespace, intent_id=name,
            generation=max(generations, default=-1) + 1, tool=content.tool,
            tool_version=content.tool_version, lane=content.lane, args=Frozen(content.args),
            fingerprint=content.fingerprint, content=content.content,
            created_at=tables.clock.now, run_id=own.run_id, compensates=target.seq,
            traceparent=own.traceparent, tracestate=own.tracestate,
        )  # fmt: skip

    def finish(self, seq: int) -> str | None:
        """Settle a target by its ended compensation; the edge, "undo_ended", or None."""
        tables = self._tables
        target = tables.rows[self._owner(seq)]
        if target.undo is None or tables.rows[target.undo].state not in SETTLED_STATES:
            return None
        edge: str | None = None
        if tables.rows[target.undo].state is State.COMMITTED and target.state in _UNDOABLE:
            edge = self._compensate(target, tables.intents[target.undo].intent_id)
        if edge is None:
            edge = self._reset(target.seq)
        tables.poke_step(target.seq)
        return edge

    def _compensate(self, target: Row, undo: str) -> str | None:
        move = Move("compensate", target.seq, target.state, reason=undo)
        seen = order(f"undone by {undo}", number=1)
        if not self._tables.perform([Write(move, Actor.OUTBOX, target.contract_id, seen)]):
            return None
        self._tables.perform(adopters_follow(self._tables, target.seq, Actor.OUTBOX, undo))
        return "compensate"

    def _reset(self, seq: int) -> str | None:
        """A compensation ended without undoing: its target is where it was, and may bind again."""
        tables, row = self._tables, self._tables.rows[seq]
        if row.undo is None:
            return None
        ended = tables.rows[row.undo].state.value
        tables.write(seq, undo=None)
        tables.log(seq, "undo_ended", Actor.OUTBOX, ended, row.fence, row.state, row.state,
                   detail={"undo": row.undo})  # fmt: skip
        if row.settled_at is not None and row.bound_at is None:
            tables.add_batch(SETTLED, [seq])
        return "undo_ended"


def adopters_follow(
    tables: Tables, owner: int, actor: Actor, reason: str, actor_name: str | None = None
) -> list[Write]:
    """Return the moves by which every adopter of an undone effect is compensated with it."""
    return [
        Write(
            Move("compensate.adopter", row.seq, row.state, reason=reason), actor,
            row.contract_id, order(f"undone with {reason}", number=1), actor_name,
        )
        for row in tables.step_of(owner)
        if row.adopted_from == owner and row.state is State.COMMITTED
    ]  # fmt: skip


class MemoryGates:
    """Decides gates for exactly what their reviewers saw."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def decide(
        self,
        seq: int,
        decision: GateDecision,
        *,
        actor: Actor,
        actor_name: str,
        reason: str,
        fingerprint: str,
    ) -> GateRecord | Refusal:
        """Approve or reject; a rejected row is withdrawn in the same transaction."""
        tables, row, gate = self._tables, self._tables.rows[seq], self._tables.gates.get(seq)
        if gate is None:
            return refusal_to_decide(None, None, "", fingerprint, row.state)
        open_here = row.state is State.HELD and row.live and gate.decision is GateDecision.OPEN
        if not open_here or gate.fingerprint != fingerprint:
            return refusal_to_decide(
                gate.decision, gate.actor, gate.fingerprint, fingerprint, row.state
            )
        decided = replace(gate, decision=decision, decided_at=tables.clock.now,
                          actor=actor_name, reason=reason)  # fmt: skip
        set_gate(tables, seq, decided)
        tables.log(seq, f"gate_{decision.value}", actor, reason, row.fence, row.state, row.state,
                   actor_name)  # fmt: skip
        if decision is GateDecision.REJECTED:
            move, seen = rejection(tables.rows[seq], reason)
            write = Write(move, actor, row.contract_id, seen, actor_name=actor_name)
            tables.perform([write])
        return decided

    def due(self, limit: int) -> tuple[tuple[int, str], ...]:
        """Return (seq, fingerprint) of open gates whose clock has run out and whose row waits."""
        tables = self._tables
        if not tables.gates:
            return ()
        since = tables.clock.now - timedelta(seconds=tables.limits.gate_limit_seconds)
        found = [
            (gate.clock_started_at, seq, gate.fingerprint)
            for seq, gate in tables.gates.items()
            if gate.decision is GateDecision.OPEN
            and gate.clock_started_at is not None
            and gate.clock_started_at <= since
            and tables.rows[seq].state is State.HELD
            and tables.rows[seq].live
        ]
        return tuple((seq, fingerprint) for _, seq, fingerprint in sorted(found)[:limit])

    def time_out(self, seq: int, fingerprint: str) -> GateRecord | Refusal:
        """Reject a gate whose clock has run out, and withdraw its row."""
        return self.decide(
            seq, GateDecision.REJECTED, actor=Actor.OUTBOX, actor_name="gate_limit",
            reason=TIMED_OUT, fingerprint=fingerprint,
        )  # fmt: skip
