"""Carries out composite events, and lets a world run on without faults until it is quiet.

Quiet means: no task, no request, nothing ready, and every row is final and handed on, or waits for
a person. What is found here is put into choices and applied one by one, so that a recorded run
holds primitive events alone. May import `world`, `driver` and `verbs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ..outbox.identity import DEFAULT_NAMESPACE
from ..outbox.model import SETTLED_STATES, GateDecision, Row, State
from ..outbox.telling import tell
from .world import Choice, World
from .world_values import Impossible

Apply = Callable[[Choice], None]
LONGEST_RUN = 20_000
"""Choices after which a world that is not quiet counts as stuck."""
LONGEST_WAIT_SECONDS = 40 * 86_400.0
_FINAL = SETTLED_STATES


def carry_out(world: World, event: Mapping[str, Any], apply: Apply) -> None:
    """Carry out one composite event. Raises Impossible where it cannot, or does not hold."""
    _COMPOSITES[event["do"]](world, event, apply)


# -- run and pass --------------------------------------------------------------------------------


def _run(world: World, event: Mapping[str, Any], apply: Apply) -> None:
    name, until = world.task(event["who"]).name, event.get("until")
    fate = event.get("fate")
    while name in world.tasks:
        task = world.tasks[name]
        if task.flight is None:
            if type(task.node.command).__name__ == until:
                return
            apply(("step", name))
            continue
        if until == "sent":
            return
        if world.flights[task.flight].answer is None:
            apply(("arrive", task.flight, fate) if fate else ("arrive", task.flight))
            if until == "arrived":
                return
        if name in world.tasks and world.tasks[name].flight is not None:
            apply(("answer", task.flight))
    if until is not None:
        raise Impossible(f"{event['who']} has ended and never came to {until!r}", "until")


def _pass(world: World, event: Mapping[str, Any], apply: Apply) -> None:
    role, who = event["role"], event.get("who")
    apply(("start", role, who) if who else ("start", role))
    names = _looks(world, who) if role == "reconcile" else [role]
    for name in names:
        if name in world.tasks:
            _run(world, {"who": name}, apply)


def _looks(world: World, who: str | None) -> list[str]:
    owner = who or world.spec.reconcilers[0]
    return [task.name for task in world.tasks.values() if task.process == owner]


# -- until quiet ---------------------------------------------------------------------------------


def _settle(world: World, event: Mapping[str, Any], apply: Apply) -> None:
    for _ in range(LONGEST_RUN):
        choice = next_plain_choice(world)
        if choice is None:
            return
        apply(choice)
    raise Impossible("the world does not come to rest")


def next_plain_choice(world: World, *, travels: bool = True) -> Choice | None:
    """Return what a world without faults does next, None where it is quiet.

    `travels` False leaves every request where it is, for a caller that moves them itself.
    """
    for process in world.processes.values():
        if process.frozen:
            return ("thaw", process.name)
    if travels:
        for flight in world.flights.values():
            return ("arrive" if flight.answer is None else "answer", flight.name)
    for task in world.tasks.values():
        if task.flight is None:
            return ("step", task.name)
    for found in (_work, _revive, _time):
        choice = next(found(world), None)
        if choice is not None:
            return choice
    return None


def _work(world: World) -> Iterator[Choice]:
    """Yield the passes that have something to do, and the claims of what is ready."""
    store = world.store
    if store.tables.batches and (store.binding.due("settled", 1) or store.binding.due("bound", 1)):
        yield ("start", "bind")
    if store.reaper.find_overdue(1):
        yield ("start", "reap")
    if (store.tables.undos and store.holds.find_undone(1)) or store.holds.find_held(1):
        yield ("start", "hold")
    if store.gates.due(1):
        yield ("start", "gate")
    worker = _free_worker(world)
    if worker is not None:
        now = world.clock.now
        rows = store.tables.rows.values()
        lanes = {row.lane for row in rows if row.ready_at is not None and row.ready_at <= now}
        for lane in sorted(lanes):
            yield ("claim", worker, _step_in(world, lane))
    if _reconciler(world) and _is_due(world):
        yield ("start", "reconcile", _reconciler(world))


def _free_worker(world: World) -> str | None:
    alive = [name for name in world.spec.workers if world.processes[name].runs]
    return alive[-1] if alive else None


def _step_in(world: World, lane: str) -> str:
    now, tables = world.clock.now, world.store.tables
    for seq, row in tables.rows.items():
        if row.lane == lane and row.ready_at is not None and row.ready_at <= now:
            return tables.intents[seq].intent_id
    raise Impossible(f"no row of lane {lane} is ready")


def _reconciler(world: World) -> str | None:
    return next((name for name in world.spec.reconcilers if world.processes[name].runs), None)


def _is_due(world: World) -> bool:
    now = world.clock.now
    return any(
        row.probe_at is not None and row.probe_at <= now and row.parked_at is None
        for row in world.store.tables.rows.values()
    )


def _revive(world: World) -> Iterator[Choice]:
    """Somebody starts dead processes again where nobody of their kind is left."""
    for names in (world.spec.workers, world.spec.reconcilers):
        if names and not any(world.processes[name].runs for name in names):
            yield ("restart", names[0])


def _time(world: World) -> Iterator[Choice]:
    now = world.clock.now
    moments = [moment for moment in waited_for(world) if moment > now]
    if moments:
        seconds = (min(moments) - now).total_seconds()
        if seconds <= LONGEST_WAIT_SECONDS:
            yield ("wait", seconds)


def waited_for(world: World) -> Iterator[datetime]:
    """Yield every moment at which something that is not a person's turn may go on."""
    tables = world.store.tables
    for row in tables.rows.values():
        if not _is_persons(world, row):
            yield from _moments(world, row)
        if row.deadline is not None and row.withdraw_at is not None:
            yield row.deadline
    for batch in tables.batches.values():
        yield batch.due_at


def _moments(world: World, row: Row) -> Iterator[datetime]:
    for moment in (row.ready_at, row.hold_at, row.probe_at, row.ack_by):
        if moment is not None:
            yield moment
    if row.ack_by is not None and row.owner is not None:
        beat = world.store.tables.workers[row.owner].beat_at
        yield beat + world.store.tables.dead_after


def _is_persons(world: World, row: Row) -> bool:
    """Return whether only a person moves the row now."""
    if row.parked_at is not None:
        return True
    gate = world.store.tables.gates.get(row.seq)
    waits = gate is not None and gate.decision is GateDecision.OPEN
    clock_runs = gate is not None and gate.clock_started_at is not None
    if row.state is not State.HELD:
        return False
    return (waits and clock_runs) or _waits_for_a_parked_one(world, row)


def _waits_for_a_parked_one(world: World, row: Row) -> bool:
    rows = world.store.tables.rows
    for other in world.store.tables.step_of(row.seq):
        undo = None if other.undo is None else rows[other.undo].parked_at
        if other.generation < row.generation and (other.parked_at is not None or undo is not None):
            return True
    return False


def unfinished(world: World) -> list[str]:
    """Return the rows of a quiet world that are neither final and bound nor a person's turn."""
    tables, left = world.store.tables, []
    for seq, row in tables.rows.items():
        name = f"{tables.intents[seq].intent_id}~g{row.generation}"
        if row.state not in _FINAL:
            if not _is_persons(world, row):
                left.append(f"{name} is {row.state.value}")
        elif row.live and row.bound_at is None and row.diverged_at is None and row.undo is None:
            left.append(f"{name} is not bound")
    return left


# -- expect --------------------------------------------------------------------------------------


def _expect(world: World, event: Mapping[str, Any], apply: Apply) -> None:
    step, generation = event["step"], event.get("generation")
    row = world.store.tables.rows[world.row_of(step, generation)]
    for name, value in event.get("row", {}).items():
        found = shown(getattr(row, name, None))
        if found != value:
            raise Impossible(f"{step}: {name} is {found!r}, not {value!r}", "row")
    if "told" in event:
        word = told_word(world, step, generation)
        if word != event["told"]:
            raise Impossible(f"{step} is told {word!r}, not {event['told']!r}", "told")


def shown(value: Any) -> Any:
    """Return a column as a trace writes it: a state by its word, a moment as true."""
    if isinstance(value, datetime):
        return True
    return value.value if isinstance(value, State) else value


def told_word(world: World, step: str, generation: int | None = None) -> str:
    """Return the word that a planner is told of a step's generation, the live one by default."""
    name = (DEFAULT_NAMESPACE, step)
    steps, now = world.store.planner.steps([name])[name]
    telling = tell(steps, generation, now)
    return "" if telling is None else telling.told.word


_COMPOSITES: dict[str, Callable[[World, Mapping[str, Any], Apply], None]] = {
    "run": _run,
    "pass": _pass,
    "settle": _settle,
    "expect": _expect,
}
