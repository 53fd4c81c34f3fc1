"""What makes two states of a small world one: the key of a search.

In it: every row as the rules see it, the processes with what they do and hold, requests on their
way, the tools' objects and key stores. Moments stand in it as passed or not, and those to come in
their order; how far apart they are is left out. Not in it: events, observations (but for the
references that decisions look at), counters that are only shown, and columns that nothing reads in
the row's state. Workers that serve the same tools are told apart by what they do, never by name.

Each part of a key is kept once, under a number: a key is a short tuple of numbers, and two of one
search are equal exactly where all their parts are. May import `explore_moments` and `world`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import TypeAlias

from ..outbox.model import SETTLED_STATES, Row
from .explore_moments import OWNED, Moment, moments_of_row, moments_of_world
from .world import World
from .world_values import Process

Named: TypeAlias = tuple[datetime, int]
_MOST_ROWS = 20_000
"""Rows whose part is kept; after so many all are forgotten, and found again."""


class StateKeys:
    """The keys of one search: only keys of the same object may be compared."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._rows: dict[int, tuple[Row, int, list[Named]]] = {}
        """By identity: a row is a value that is shared by all the states it stands in."""

    def key(self, world: World, budgets: Hashable) -> Hashable:
        """Return what tells this state from others; equal keys are one state."""
        tables, number = world.store.tables, self._number
        rows = [self._row(world, row) for row in tables.rows.values()]
        workers, labels, others = self._processes(world)
        named = self._named(moments_of_world(world, labels))
        for _, _, own in rows:
            named += own
        refs = [self._references(world, seq) for seq in tables.rows]
        batches = tuple(sorted([(batch.stage, batch.seqs) for batch in tables.batches.values()]))
        return (
            number(budgets), number(tuple([part for _, part, _ in rows])), number(tuple(refs)),
            number(workers), number(others), number(batches), number(_rest(world)),
            number(world.tools.key()),
            number(_in_order(named, world.clock.now)),
        )  # fmt: skip

    def next_moment(self, world: World) -> datetime | None:
        """Return the next moment that tells two states apart, None where none will come."""
        now = world.clock.now
        coming = [moment for moment, _ in moments_of_world(world, {}) if moment > now]
        for row in world.store.tables.rows.values():
            coming += [moment for moment, _ in self._row(world, row)[2] if moment > now]
        return min(coming, default=None)

    def _number(self, part: Hashable) -> int:
        found = self._numbers.get(part)
        if found is None:
            found = self._numbers[part] = len(self._numbers)
        return found

    def _named(self, moments: Iterable[Moment]) -> list[Named]:
        return [(moment, self._number(name)) for moment, name in moments]

    # -- rows ------------------------------------------------------------------------------------

    def _row(self, world: World, row: Row) -> tuple[Row, int, list[Named]]:
        """Return a row with its part and its moments, which depend on nothing but its columns."""
        known = self._rows.get(id(row))
        if known is not None:
            return known
        if len(self._rows) >= _MOST_ROWS:
            self._rows.clear()
        found = (row, self._number(_part(row)), self._named(moments_of_row(world, row)))
        self._rows[id(row)] = found
        return found

    def _references(self, world: World, seq: int) -> Hashable:
        """Return what is on record of a row beside it: references, and who ordered its undos."""
        tables = world.store.tables
        undos = tables.undos.get(seq)
        if undos is None:
            if seq not in tables.observations:
                return None
            return tuple(sorted(tables.known_refs(seq))) or None
        actors = tuple([tables.events[undo][0].actor for undo in undos])
        return tuple(sorted(tables.known_refs(seq))), actors

    # -- processes -------------------------------------------------------------------------------

    def _processes(self, world: World) -> tuple[Hashable, dict[str, int], Hashable]:
        """Return the workers by what they do, the label that each gets, and the other processes."""
        doing, processes = _doing(world), world.processes
        held = [row for row in world.store.tables.rows.values() if row.state in OWNED]
        workers = []
        for name in world.spec.workers:
            process = processes[name]
            owned = tuple([row.seq for row in held if row.owner == process.owner])
            alive = world.store.tables.is_alive(process.owner) if owned else None
            whole = (_lives(process), doing.pop(name, None), world.spec.unserved.get(name), owned,
                     alive)  # fmt: skip
            workers.append((self._number(whole), name))
        workers.sort()
        labels = {name: place for place, (_, name) in enumerate(workers)}
        others = [
            (name, _lives(processes[name]), doing.pop(name, None))
            for name in world.spec.reconcilers
        ]
        # What is left are roles: they hold no rows, and count while they do something.
        others += [(name, _lives(processes[name]), doing[name]) for name in sorted(doing)]
        return tuple([part for part, _ in workers]), labels, tuple(others)


def _first(pair: tuple[int, object]) -> int:
    return pair[0]


def _rest(world: World) -> Hashable:
    """Return what most worlds do without: gates, pauses, versions, broken adapters, allowances."""
    tables = world.store.tables
    bare = not (tables.gates or tables.paused or tables.domains or world.broken)
    if bare and not (world.allowed or world.throttles):
        return None
    return (
        tuple(sorted(tables.gates.items(), key=_first)), tables.paused,
        tuple(tables.domains.items()), world.broken, tuple(sorted(world.allowed.items())),
        world.throttles,
    )  # fmt: skip


def _in_order(named: list[Named], now: datetime) -> Hashable:
    """Return which moments have passed, and the others' names in order: which fall together."""
    named.sort()
    passed: set[int] = set()
    order: list[int] = []
    last: datetime | None = None
    for moment, name in named:
        if moment <= now:
            passed.add(name)
        else:
            order.append(name if moment == last else ~name)
            last = moment
    return tuple(sorted(passed)), tuple(order)


def _part(row: Row) -> Hashable:
    shared = (
        row.state, row.fence, row.live, row.wanted, row.undo, row.adopted_from,
        row.diverged_at is None, row.in_doubt, row.bound_at is None, row.handed_at is None,
        row.content,
    )  # fmt: skip
    if row.state in SETTLED_STATES:
        return shared
    return (
        *shared, row.sends, row.resends, row.probes, row.cut_offs, row.suspect,
        row.suspect_claims, row.unresolved, row.key_trusted, row.parked_at is None,
        row.request_digest, repr(row.handle), row.contract_id,
    )  # fmt: skip


def _lives(process: Process) -> Hashable:
    return process.incarnation, process.alive, process.frozen


def _doing(world: World) -> dict[str, tuple[Hashable, ...]]:
    """Return what each process that does something does: its tasks, and requests it has sent."""
    tasks: dict[str, list[tuple[str, int, bool, bool]]] = {}
    for task in world.tasks.values():
        own = (task.name.removeprefix(task.process), task.node.number, task.flight is None,
               task.lost)  # fmt: skip
        tasks.setdefault(task.process, []).append(own)
    doing: dict[str, tuple[Hashable, ...]] = {
        name: (tuple(sorted(own)),) for name, own in tasks.items()
    }
    if not world.flights:
        return doing
    for flight in sorted(world.flights.values(), key=lambda one: one.name):
        sender = flight.task.partition(":")[0]
        sent = (flight.name.removeprefix(sender), flight.answer, flight.awaited)
        doing[sender] = (*doing.get(sender, ((),)), sent)
    return doing
