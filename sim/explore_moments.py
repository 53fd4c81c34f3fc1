"""The moments of a small world at which anything may look different, each under a name.

May import `world` and the pure core.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import datetime, timedelta
from typing import TypeAlias

from ..outbox.model import SETTLED_STATES, GateDecision, Row, State
from .world import World

Moment: TypeAlias = tuple[datetime, Hashable]
S = State
_OPEN = frozenset({S.HELD, S.QUEUED, S.EXECUTING, S.AWAITING_ACK, S.INDETERMINATE})
OWNED = frozenset({S.EXECUTING, S.AWAITING_ACK})
"""The states in which a process holds a row."""
_READ_IN: dict[str, frozenset[State]] = {
    "ready_at": frozenset({S.QUEUED}),
    "ack_by": OWNED,
    "hold_at": frozenset({S.HELD}),
    "deadline": _OPEN,
}
"""The states in which a moment of a row is looked at."""
_TICK = timedelta(seconds=1)


def moments_of_row(world: World, row: Row) -> Iterator[Moment]:
    """Yield the moments that stand in a row's own columns or follow from them."""
    for column, states in _READ_IN.items():
        moment = getattr(row, column)
        if moment is not None and row.state in states:
            yield moment, (row.seq, column)
    contract = world.store.tables.contract_of(row)
    if row.unready_since is not None and row.state in (S.QUEUED, S.EXECUTING):
        limit = timedelta(seconds=world.spec.limits.unready_limit_seconds)
        # Waiting in the queue does not count: the claim moves `unready_since` on by that time.
        waited = max(world.clock.now - (row.ready_at or world.clock.now), timedelta(0))
        yield row.unready_since + waited + limit, (row.seq, "unready")
    if contract is None:
        return
    may_be_undone = row.state is S.COMMITTED and contract.compensates
    if row.quiet_at is not None and (row.state not in SETTLED_STATES or may_be_undone):
        yield row.quiet_at, (row.seq, "quiet_at")
    if row.state in SETTLED_STATES:
        return
    if row.probe_at is not None and row.parked_at is None:
        yield row.probe_at, (row.seq, "probe_at")
    if row.unknown_since is not None and row.parked_at is None:
        yield row.unknown_since + timedelta(seconds=contract.park_after_seconds), (row.seq, "old")
    window_seconds = contract.key.window_seconds
    if row.first_sent_at is not None and window_seconds is not None:
        usable = timedelta(seconds=window_seconds - contract.margin_seconds)
        yield row.first_sent_at + usable, (row.seq, "usable")


def moments_of_world(world: World, labels: dict[str, int]) -> list[Moment]:
    """Return every moment that stands in no row; workers are named by their labels."""
    tables, found = world.store.tables, list[Moment]()
    if tables.gates:
        found += _of_gates(world)
    for batch in tables.batches.values():
        found.append((batch.due_at, (batch.stage, batch.seqs)))
    for seq, until in tables.hand_by.items():
        found.append((until, (seq, "hand_by")))
    for flight in world.flights.values():
        if flight.answer is None:
            found.append((flight.dies_at, _labelled(flight.name, labels)))
    for task in world.tasks.values():
        if task.send_by is not None and task.flight is None:
            # A send at this very moment is still in time; what comes after it is not.
            found.append((task.send_by + _TICK, _labelled(task.name, labels)))
    found += _of_owners(world)
    return found + _of_tools(world)


def _of_gates(world: World) -> list[Moment]:
    limit = timedelta(seconds=world.spec.limits.gate_limit_seconds)
    return [
        (gate.clock_started_at + limit, (seq, "gate"))
        for seq, gate in world.store.tables.gates.items()
        if gate.clock_started_at is not None and gate.decision is GateDecision.OPEN
    ]


def _of_owners(world: World) -> list[Moment]:
    """Return when the heartbeats of processes that beat no more are too old for their rows."""
    tables = world.store.tables
    held = [r for r in tables.rows.values() if r.owner is not None and r.state in OWNED]
    if not held:
        return []
    running = [p.owner for p in world.processes.values() if p.owner is not None and p.runs]
    return [
        (tables.workers[row.owner].beat_at + tables.dead_after, (row.seq, "owner"))
        for row in held
        if row.owner is not None and row.owner not in running
    ]


def _labelled(name: str, labels: dict[str, int]) -> Hashable:
    who, _, what = name.partition(":")
    return labels.get(who, who), what


def _of_tools(world: World) -> list[Moment]:
    found: list[Moment] = [(moment, place) for place, moment in world.tools.forgetting()]
    for effect in world.tools.effects.values():
        lag_seconds = world.tools.specs[effect.tool].lag_seconds
        if lag_seconds and not effect.undone:
            found.append((effect.at + timedelta(seconds=lag_seconds), ("seen", effect.number)))
    return found
