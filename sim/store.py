"""The in-memory outbox: the same commands as the real store, decided by the same pure code.

`MemoryStore` has one part per shell store with the same method names (`claims`, `attempts`,
`reaper`, `planner`, `binding`, `holds`, `compensations`, `gates`, `unknowns`, `people`). A row
changes its state in `Tables.perform` alone, which asks `transitions.apply`. Every method is one
transaction: there are no locks to wait for, because nothing runs between two steps of a world.

`key` says what a state *is* for a search: rows without their history, times only as passed or not.
May import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Any
from uuid import UUID

from ..outbox.commands import (
    FindHeld,
    FindOverdue,
    FindReadyLanes,
    FindSettled,
    FindUndone,
    FindUnknown,
    FinishUndo,
    GiveBack,
    HoldStep,
    LookAgain,
    MarkSend,
    OrderCompensation,
    Park,
    ReapRows,
    Record,
    RecordProbe,
    Resend,
)
from ..outbox.defaults import DEFAULTS, Limits
from ..outbox.gates import FindGatesDue, TimeOutGate
from ..outbox.guards import inside_window
from ..outbox.model import Refusal, Row
from ..outbox.undo_order import CallOff, FindUndoSteps, OrderUndo
from .clock import VirtualClock
from .store_attempts import MemoryAttempts, MemoryClaims, MemoryReaper
from .store_holds import MemoryCompensations, MemoryGates, MemoryHolds
from .store_planner import MemoryBinding, MemoryPlanner
from .store_undo import MemoryUndos
from .store_unknowns import MemoryPeople, MemoryUnknowns
from .tables import SETTLED, Snapshot, Tables

Handler = Callable[["MemoryStore", Any, UUID | None], Any]


class MemoryStore:
    """One outbox in memory. `draw` returns a random share for the jitter of back-offs."""

    def __init__(
        self,
        clock: VirtualClock,
        limits: Limits = DEFAULTS,
        draw: Callable[[], float] = lambda: 1.0,
    ) -> None:
        self.tables = Tables(clock, limits, draw)
        self.claims = MemoryClaims(self.tables)
        self.attempts = MemoryAttempts(self.tables)
        self.reaper = MemoryReaper(self.tables)
        self.planner = MemoryPlanner(self.tables)
        self.binding = MemoryBinding(self.tables)
        self.holds = MemoryHolds(self.tables)
        self.compensations = MemoryCompensations(self.tables)
        self.undos = MemoryUndos(self.tables)
        self.gates = MemoryGates(self.tables)
        self.unknowns = MemoryUnknowns(self.tables)
        self.people = MemoryPeople(self.tables)

    def answer(self, command: Any, owner: UUID | None = None) -> Any:
        """Return the reply to a procedure's command. KeyError: not a command of the store."""
        return _HANDLERS[type(command)](self, command, owner)

    def answers(self, command: Any) -> bool:
        """Return whether the command is one of the store's."""
        return type(command) in _HANDLERS

    def snapshot(self) -> Snapshot:
        """Return a cheap value from which `restore` makes the store what it is now."""
        return self.tables.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        self.tables.restore(snapshot)

    def key(self) -> Hashable:
        """Return what tells this state from others, without its history."""
        return store_key(self.tables)


def store_key(tables: Tables) -> Hashable:
    """Return the store's part of a state key.

    Left out: counters that are only shown, ids, observations and events, but for the few facts of
    them that a decision looks at (references, whose undo the outbox has ordered).
    """
    alive = {owner: tables.is_alive(owner) for owner in tables.workers}
    return (
        tuple([_row_key(tables, row) for row in tables.rows.values()]),
        tuple([(gate.decision, gate.clock_started_at is None) for gate in tables.gates.values()]),
        tuple([(owner.int, alive[owner]) for owner in tables.workers]),
        tuple(sorted((batch.stage, batch.seqs) for batch in tables.batches.values())),
        tables.paused,
        tuple(tables.domains.items()),
    )


def _row_key(tables: Tables, row: Row) -> Hashable:
    now, world = tables.clock.now, None
    if row.first_sent_at is not None:
        world = inside_window(row, tables.world(row.seq))
    return (
        row.state, row.fence, row.sends, row.resends, row.probes, row.cut_offs, row.suspect,
        row.suspect_claims, row.unresolved, row.key_trusted, row.in_doubt, row.live, row.wanted,
        row.undo, row.adopted_from, row.parked_at is None, row.diverged_at is None,
        row.bound_at is None, row.handed_at is None, row.observation_id is None,
        None if row.owner is None else row.owner.int, row.request_digest, repr(row.handle),
        _passed(row.ready_at, now), _passed(row.deadline, now), _passed(row.ack_by, now),
        _passed(row.quiet_at, now), _passed(row.hold_at, now), _passed(row.probe_at, now),
        row.unready_since is None, world, tuple(sorted(tables.known_refs(row.seq))),
    )  # fmt: skip


def _passed(moment: datetime | None, now: datetime) -> bool | None:
    return None if moment is None else moment <= now


_HANDLERS: dict[type[Any], Handler] = {
    FindReadyLanes: lambda s, c, o: s.reaper.ready_lanes(c.row_limit),
    MarkSend: lambda s, c, o: s.attempts.mark([c], _known(o))[0],
    Record: lambda s, c, o: s.attempts.record([c])[0],
    GiveBack: lambda s, c, o: s.attempts.give_back([c])[0],
    FindOverdue: lambda s, c, o: s.reaper.find_overdue(c.limit),
    ReapRows: lambda s, c, o: s.reaper.reap(c.seqs),
    FindHeld: lambda s, c, o: s.holds.find_held(c.limit),
    HoldStep: lambda s, c, o: s.holds.hold_step(c.seq),
    FindUndone: lambda s, c, o: s.holds.find_undone(c.limit),
    FinishUndo: lambda s, c, o: s.holds.finish_undo(c.seq),
    OrderCompensation: lambda s, c, o: s.holds.order(c.seq, c.owner, c.plan),
    FindUndoSteps: lambda s, c, o: s.undos.find(c),
    CallOff: lambda s, c, o: s.undos.call_off(c),
    OrderUndo: lambda s, c, o: s.undos.order(c),
    FindGatesDue: lambda s, c, o: s.gates.due(c.limit),
    TimeOutGate: lambda s, c, o: not isinstance(s.gates.time_out(c.seq, c.fingerprint), Refusal),
    FindSettled: lambda s, c, o: s.binding.due(SETTLED, c.limit),
    FindUnknown: lambda s, c, o: s.unknowns.find_unknown(c.limit),
    RecordProbe: lambda s, c, o: s.unknowns.record_probe(c),
    Resend: lambda s, c, o: s.unknowns.resend(c, _known(o)),
    LookAgain: lambda s, c, o: s.unknowns.look_again(c),
    Park: lambda s, c, o: s.unknowns.park(c),
}


def _known(owner: UUID | None) -> UUID:
    if owner is None:
        raise ValueError("a send mark needs the process that asks for it")
    return owner
