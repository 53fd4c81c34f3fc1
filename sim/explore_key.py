"""What makes two states of a small world one: the key of a search.

In it: every row as the rules see it, the processes with what they do and hold, requests on their
way, the tools' objects and key stores. Moments stand in it as passed or not, and those to come in
their order; how far apart they are is left out. Not in it: events, observations (but for the
references that decisions look at), counters that are only shown, and columns that nothing reads in
the row's state. Workers that serve the same tools are told apart by what they do, never by name.

May import `world` and the pure core.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from ..outbox.model import SETTLED_STATES, GateDecision, Row, State
from .world import World
from .world_values import Process

Named: TypeAlias = tuple[datetime, Hashable]
S = State
_OPEN = frozenset({S.HELD, S.QUEUED, S.EXECUTING, S.AWAITING_ACK, S.INDETERMINATE})
_OWNED = frozenset({S.EXECUTING, S.AWAITING_ACK})
_READ_IN: dict[str, frozenset[State]] = {
    "ready_at": frozenset({S.QUEUED}),
    "ack_by": _OWNED,
    "hold_at": frozenset({S.HELD}),
    "deadline": _OPEN,
}
"""The states in which a moment of a row is looked at."""


def state_key(world: World, budgets: Hashable) -> Hashable:
    """Return what tells this state from others; equal keys are one state."""
    tables, now = world.store.tables, world.clock.now
    workers = sorted(((_worker(world, name), name) for name in world.spec.workers), key=_by_hash)
    labels = {name: number for number, (_, name) in enumerate(workers)}
    busy = {task.process for task in world.tasks.values()}
    others = [
        _doing(world, process)
        for name, process in world.processes.items()
        if name not in labels and (process.owner is not None or name in busy)
    ]
    passed: list[Named] = []
    coming: list[Named] = []
    for moment, name in moments(world, labels):
        (passed if moment <= now else coming).append((moment, name))
    return (
        budgets, tuple([_row(world, row) for row in tables.rows.values()]),
        tuple([signature for signature, _ in workers]), tuple(others),
        tuple(sorted(tables.gates.items(), key=_first)) if tables.gates else (),
        tuple(sorted((batch.stage, batch.seqs) for batch in tables.batches.values())),
        tables.paused, tuple(tables.domains.items()), world.broken,
        tuple(sorted(world.allowed.items())), world.tools.key(),
        frozenset([name for _, name in passed]), _in_order(coming),
    )  # fmt: skip


def _first(pair: tuple[int, object]) -> int:
    return pair[0]


def _by_hash(pair: tuple[Hashable, str]) -> tuple[int, str]:
    """Any order will do that does not depend on names where the workers differ."""
    return hash(pair[0]), pair[1]


def _in_order(coming: list[Named]) -> Hashable:
    """Return names in the order of their moments, and which ones fall together."""
    coming.sort(key=lambda one: (one[0], hash(one[1])))
    order: list[Hashable] = []
    last: datetime | None = None
    for moment, name in coming:
        order.append((moment == last, name))
        last = moment
    return tuple(order)


# -- rows and processes ----------------------------------------------------------------------------


def _row(world: World, row: Row) -> Hashable:
    tables = world.store.tables
    undos = tuple([tables.events[seq][0].actor for seq in tables.undos.get(row.seq, ())])
    shared = (
        row.state, row.fence, row.live, row.wanted, row.undo, row.adopted_from,
        row.diverged_at is None, row.in_doubt, row.bound_at is None, row.handed_at is None,
        row.content, tuple(sorted(tables.known_refs(row.seq))), undos,
    )  # fmt: skip
    if row.state in SETTLED_STATES:
        return shared
    return (
        *shared, row.sends, row.resends, row.probes, row.cut_offs, row.suspect,
        row.suspect_claims, row.unresolved, row.key_trusted, row.parked_at is None,
        row.request_digest, repr(row.handle), row.contract_id,
    )  # fmt: skip


def _worker(world: World, name: str) -> Hashable:
    """Return all that tells a worker from another one."""
    process, tables = world.processes[name], world.store.tables
    owned = tuple([row.seq for row in tables.rows.values()
                   if row.state in _OWNED and row.owner == process.owner])  # fmt: skip
    alive = tables.is_alive(process.owner) if owned else None
    return (*_doing(world, process), world.spec.unserved.get(name), owned, alive)


def _doing(world: World, process: Process) -> tuple[Hashable, ...]:
    name = process.name
    tasks = [
        (task.name.removeprefix(name), task.node.number, task.flight is None, task.lost)
        for task in world.tasks.values()
        if task.process == name
    ]
    sent = [
        (flight.name.removeprefix(name), flight.answer, flight.awaited)
        for flight in world.flights.values()
        if flight.task.startswith(f"{name}:")
    ]
    role = None if name in world.spec.workers else name
    lives = (process.incarnation, process.alive, process.frozen)
    return role, lives, tuple(sorted(tasks)), tuple(sorted(sent, key=lambda one: one[0]))


# -- moments ---------------------------------------------------------------------------------------


def moments(world: World, labels: dict[str, int] | None = None) -> Iterator[Named]:
    """Yield every moment at which a rule, a tool or a process may see something else, by name."""
    tables = world.store.tables
    for seq, row in tables.rows.items():
        for column, states in _READ_IN.items():
            moment = getattr(row, column)
            if moment is not None and row.state in states:
                yield moment, (seq, column)
        yield from _of_row(world, seq, row)
    for seq, gate in tables.gates.items():
        if gate.clock_started_at is not None and gate.decision is GateDecision.OPEN:
            limit = timedelta(seconds=world.spec.limits.gate_limit_seconds)
            yield gate.clock_started_at + limit, (seq, "gate")
    for batch in tables.batches.values():
        yield batch.due_at, (batch.stage, batch.seqs)
    for seq, until in tables.hand_by.items():
        yield until, (seq, "hand_by")
    yield from _of_processes(world, labels or {})
    yield from _of_tools(world)


def _of_row(world: World, seq: int, row: Row) -> Iterator[Named]:
    contract = world.store.tables.contract_of(row)
    if row.unready_since is not None and row.state in (S.QUEUED, S.EXECUTING):
        limit = timedelta(seconds=world.spec.limits.unready_limit_seconds)
        yield row.unready_since + limit, (seq, "unready")
    if contract is None:
        return
    may_be_undone = row.state is S.COMMITTED and contract.compensates
    if row.quiet_at is not None and (row.state not in SETTLED_STATES or may_be_undone):
        yield row.quiet_at, (seq, "quiet_at")
    if row.state in SETTLED_STATES:
        return
    if row.probe_at is not None and row.parked_at is None:
        yield row.probe_at, (seq, "probe_at")
    if row.unknown_since is not None and row.parked_at is None:
        yield row.unknown_since + timedelta(seconds=contract.park_after_seconds), (seq, "old")
    window_seconds = contract.key.window_seconds
    if row.first_sent_at is not None and window_seconds is not None:
        usable = timedelta(seconds=window_seconds - contract.margin_seconds)
        yield row.first_sent_at + usable, (seq, "usable")


def _of_processes(world: World, labels: dict[str, int]) -> Iterator[Named]:
    tables = world.store.tables
    for flight in world.flights.values():
        if flight.answer is None:
            yield flight.dies_at, _labelled(flight.name, labels)
    for task in world.tasks.values():
        if task.send_by is not None and task.flight is None:
            # A send at this very moment is still in time; what comes after it is not.
            yield task.send_by + timedelta(seconds=1), _labelled(task.name, labels)
    beating = {p.owner for p in world.processes.values() if p.runs}
    for row in tables.rows.values():
        if row.state in _OWNED and row.owner is not None and row.owner not in beating:
            yield tables.workers[row.owner].beat_at + tables.dead_after, (row.seq, "owner")


def _labelled(name: str, labels: dict[str, int]) -> Hashable:
    who, _, what = name.partition(":")
    return labels.get(who, who), what


def _of_tools(world: World) -> Iterator[Named]:
    for effect in world.tools.effects.values():
        lag_seconds = world.tools.specs[effect.tool].lag_seconds
        if lag_seconds and not effect.undone:
            yield effect.at + timedelta(seconds=lag_seconds), ("seen", effect.number)
    for place, moment in world.tools.forgetting():
        yield moment, place
