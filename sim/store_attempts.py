"""The attempts' side of the in-memory outbox: claims, send marks, outcomes, unsent rows, reaping.

Each method answers as its namesake in the real store and decides by the same pure functions. May
import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from ..outbox import give_back, reap
from ..outbox.commands import (
    Claimed,
    GiveBack,
    Marked,
    MarkSend,
    NotMarked,
    ReadyLane,
    Record,
    Recorded,
    Target,
)
from ..outbox.identity import wire_key
from ..outbox.marking import AfterLostCommit, after_lost_commit, mark_move
from ..outbox.model import SETTLED_STATES, Actor, Move, Row, State
from ..outbox.outcome import from_document
from ..outbox.record import Decision, decide, recorded
from ..outbox.records import Moved, Write, observation_of, order
from ..outbox.transitions import EDGE, refusal_of
from .records import WorkerRecord
from .tables import Tables, served_name

_OVERDUE = frozenset({State.EXECUTING, State.AWAITING_ACK})


def claimed_row(tables: Tables, seq: int) -> Claimed:
    """Return a row as an attempt gets it."""
    intent, row = tables.intents[seq], tables.rows[seq]
    target = None if intent.compensates is None else target_of(tables, intent.compensates)
    return Claimed(
        seq=seq, namespace=intent.namespace, intent_id=intent.intent_id,
        generation=intent.generation, fence=row.fence, tool=intent.tool,
        version=intent.tool_version, lane=intent.lane, args=intent.args,
        contract_id=row.contract_id, sends=row.sends, handle=row.handle, suspect=row.suspect,
        target=target, traceparent=intent.traceparent,
    )  # fmt: skip


def target_of(tables: Tables, seq: int) -> Target:
    """Return what a compensation is told about the effect that it undoes."""
    intent, seen = tables.intents[seq], tables.settled_by(seq)
    outcome = from_document(seen.document) if seen is not None else None
    return Target(
        wire_key=wire_key(intent.namespace, intent.intent_id, intent.generation),
        args=intent.args,
        ref=None if seen is None else seen.ref,
        result=getattr(outcome, "result", None),
    )


class MemoryClaims:
    """Claims rows for processes and keeps their heartbeat rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def register(self, owner: UUID, tools: Iterable[str], role: str = "worker") -> None:
        """Write a process's heartbeat row. Only a worker's row says that a tool is served."""
        served = frozenset(tools) if role == "worker" else frozenset[str]()
        self._tables.workers[owner] = WorkerRecord(self._tables.clock.now, served)

    def beat(self, owner: UUID) -> bool:
        """Beat once; False where the row is gone or was stopped."""
        found = self._tables.workers.get(owner)
        if found is None or found.stopped:
            return False
        self._tables.workers[owner] = WorkerRecord(self._tables.clock.now, found.tools)
        return True

    def stop(self, owner: UUID) -> None:
        """Say that a process ends on purpose."""
        found = self._tables.workers[owner]
        self._tables.workers[owner] = replace(found, stopped=True)

    def claim(
        self,
        lane: str,
        limit: int,
        owner: UUID,
        contracts: Mapping[str, int],
        *,
        alone: bool = False,
    ) -> list[Claimed]:
        """Claim up to `limit` ready rows of a lane, oldest first."""
        tables = self._tables
        claimed: list[Claimed] = []
        for row in sorted(self._ready(lane, alone), key=_oldest_first):
            if len(claimed) == limit:
                break
            intent = tables.intents[row.seq]
            contract_id = contracts.get(served_name(intent.tool, intent.tool_version))
            move = Move("claim", row.seq, State.QUEUED, owner=owner, contract_id=contract_id,
                        alone=alone)  # fmt: skip
            write = Write(move, Actor.WORKER, actor_name=str(owner))
            if tables.perform([write]):
                claimed.append(claimed_row(tables, row.seq))
        return sorted(claimed, key=lambda one: one.seq)

    def _ready(self, lane: str, alone: bool) -> list[Row]:
        now = self._tables.clock.now
        return [
            row
            for row in self._tables.rows.values()
            if row.ready_at is not None
            and row.ready_at <= now
            and row.lane == lane
            and row.suspect == alone
        ]

    def suspect_ready(self, lane: str) -> bool:
        """Return whether a ready row of the lane must be claimed alone."""
        return bool(self._ready(lane, True))

    def push_quiet(self, seqs: Iterable[int]) -> None:
        """Say that calls of these rows still run although their limit has passed."""
        tables = self._tables
        for seq in seqs:
            row = tables.rows[seq]
            contract = tables.contract_of(row)
            settle = contract.settle_seconds if contract else tables.limits.settle_seconds
            later = tables.clock.now + timedelta(seconds=settle)
            quiet_at = later if row.quiet_at is None else max(later, row.quiet_at)
            tables.write(seq, quiet_at=quiet_at)


def _oldest_first(row: Row) -> tuple[Any, int]:
    return row.ready_at, row.seq


class MemoryAttempts:
    """Marks, records and gives back; each row is judged by its own fence."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # -- the send mark ---------------------------------------------------------------------------

    def mark(self, batch: Sequence[MarkSend], owner: UUID) -> list[Marked | NotMarked]:
        """Write send marks; a row without one in the reply must not be sent."""
        return [self._mark(command, owner) for command in batch]

    def _mark(self, command: MarkSend, owner: UUID) -> Marked | NotMarked:
        tables, seq = self._tables, command.claim.seq
        move = mark_move(command, owner)
        if tables.perform([Write(move, Actor.WORKER, command.claim.contract_id)]):
            return Marked()
        refusal = refusal_of(tables.rows[seq], move, tables.world(seq))
        return NotMarked(refusal.code if refusal else "not_marked")

    def mark_again(self, command: MarkSend, owner: UUID) -> Marked | NotMarked:
        """Answer a mark whose COMMIT was lost: the row is read again by owner and fence."""
        row = self._tables.rows[command.claim.seq]
        ours = row.owner == owner and row.fence == command.claim.fence
        what = after_lost_commit(row.state if ours else None)
        if what is AfterLostCommit.MARK_AGAIN:
            return self._mark(command, owner)
        return Marked() if what is AfterLostCommit.GO_ON else NotMarked("commit_unknown")

    # -- outcomes --------------------------------------------------------------------------------

    def record(self, batch: Sequence[Record]) -> list[Recorded]:
        """Keep outcomes and take the edges that they call for."""
        return [self._record(record) for record in batch]

    def _record(self, record: Record) -> Recorded:
        tables, seq, fence = self._tables, record.claim.seq, record.claim.fence
        row = tables.rows[seq]
        decision = self._decide(row, record)
        seen = observation_of(record.outcome, record.kind, record.number)
        moved: Moved | None = None
        if decision.move is None:
            tables.keep(seq, fence, seen, Actor.WORKER)
        else:
            write = Write(decision.move, Actor.WORKER, row.contract_id, seen)
            moved = tables.perform([write]).get(seq)
        self._keep_facts(seq, decision)
        if decision.diverge:
            self._diverge(record, decision)
        return recorded(decision, moved, row.state)

    def _decide(self, row: Row, record: Record) -> Decision:
        tables, seq = self._tables, row.seq
        refs = tables.known_refs(seq) if row.state in SETTLED_STATES else set()
        world = tables.world(seq, tables.draw())
        return decide(row, record.outcome, record.claim.fence, world, refs)

    def _keep_facts(self, seq: int, decision: Decision) -> None:
        """Write what the outcome proves beside the edge."""
        row, now = self._tables.rows[seq], self._tables.clock.now
        if decision.distrust or decision.cut_off or decision.unresolve or decision.quiet:
            self._tables.write(
                seq,
                key_trusted=row.key_trusted and not decision.distrust,
                cut_offs=row.cut_offs + decision.cut_off,
                unresolved=row.unresolved or decision.unresolve,
                quiet_at=now if decision.quiet else row.quiet_at,
            )

    def _diverge(self, record: Record, decision: Decision) -> None:
        detail = {
            "ref": getattr(record.outcome, "ref", None),
            "fence": record.claim.fence,
            "tool": record.claim.tool,
        }
        self._tables.diverge(record.claim.seq, Actor.WORKER, decision.code, detail)

    # -- unsent attempts -------------------------------------------------------------------------

    def give_back(self, batch: Sequence[GiveBack]) -> list[Recorded]:
        """Return executing rows unsent; a row that is not wanted any more is withdrawn."""
        return [self._give_back(command) for command in batch]

    def _give_back(self, command: GiveBack) -> Recorded:
        tables, seq = self._tables, command.claim.seq
        row = tables.rows[seq]
        moves = give_back.moves_of(command, row, tables.world(seq))
        moved = first_move(tables, moves, Actor.WORKER, lambda move: command.reason)
        return recorded(Decision(code="stale_fence"), moved, row.state)


def first_move(
    tables: Tables, moves: Iterable[Move], actor: Actor, reason_of: Callable[[Move], str]
) -> Moved | None:
    """Perform the first of the moves whose guards hold."""
    for move in moves:
        settles = EDGE[move.edge].target in SETTLED_STATES
        seen = order(reason_of(move)) if settles else None
        contract_id = tables.rows[move.seq].contract_id
        moved = tables.perform([Write(move, actor, contract_id, seen)]).get(move.seq)
        if moved is not None:
            return moved
    return None


class MemoryReaper:
    """Finds and moves overdue rows; finds lanes with ready rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def ready_lanes(self, row_limit: int) -> tuple[ReadyLane, ...]:
        """Return lanes with claimable rows; counts stop at `row_limit` rows over all lanes."""
        now = self._tables.clock.now
        ready = [r for r in self._tables.rows.values() if r.ready_at is not None]
        ready = [r for r in ready if r.ready_at is not None and r.ready_at <= now][:row_limit]
        lanes: dict[str, list[float]] = {}
        for row in ready:
            assert row.ready_at is not None
            lanes.setdefault(row.lane, []).append((now - row.ready_at).total_seconds())
        return tuple(ReadyLane(lane, len(lanes[lane]), max(lanes[lane])) for lane in sorted(lanes))

    def find_overdue(self, limit: int) -> tuple[int, ...]:
        """Return at most `limit` seqs that look overdue."""
        found = [
            seq
            for seq, row in self._tables.rows.items()
            if (row.state in _OVERDUE or row.withdraw_at is not None) and self._looks_overdue(row)
        ]
        return tuple(sorted(found)[:limit])

    def _looks_overdue(self, row: Row) -> bool:
        now = self._tables.clock.now
        if row.withdraw_at is not None and row.withdraw_at <= now:
            return True
        if row.state not in _OVERDUE:
            return False
        return (row.ack_by is not None and row.ack_by <= now) or not self._tables.is_alive(
            row.owner
        )

    def reap(self, seqs: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Move overdue rows; returns (edge, lane) of those moved."""
        tables = self._tables
        done: list[tuple[str, str]] = []
        for seq in sorted(set(seqs)):
            row = tables.rows[seq]
            moves = reap.moves_for(row, tables.world(seq))
            moved = first_move(tables, moves, Actor.REAPER, lambda move: move.reason or move.edge)
            if moved is not None:
                done.append((moved.edge, row.lane))
        return tuple(done)
