"""What may happen next in a bounded world: the interface that a search drives.

    search = Search(spec, Bounds(plan=(("put", "s", "tool", Frozen(title="x")),), crashes=1))
    for choice in search.choices():      # every choice that is enabled now, in a fixed order
        mark = search.snapshot()         # cheap and immutable; keep any number of them
        if search.apply(choice):         # False: refused in this state, and nothing has changed
            search.key()                 # hashable: equal keys are one state for the search
            search.violations            # what broke at this step (emptied by the next apply)
        search.restore(mark)

A state without choices is the end of a schedule; `search.left_over()` then names the rows that are
neither final nor a person's turn. What is left out on purpose: passes and claims that would find
nothing, tokens (a claim is possible whenever a row is ready, which is more than any queue does),
and every step that touches nothing shared, which is taken together with the step before it.

What keeps a search finite: each fault has a budget, plan and statements are used up, time moves
only to the next moment that somebody waits for and `waits` times at most, and the key holds times
as passed or not. Idle workers of the same kind are one choice. May import `world` and `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeAlias

from .driver import FAULTS
from .invariants import Monitors, Violation
from .process import Forest
from .running import unfinished, waited_for
from .world import Choice, World
from .world_spec import WorldSpec
from .world_values import Impossible, Process, altered

Mark: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Bounds:
    """What may still happen. Each budget goes down by one with each use."""

    plan: tuple[Choice, ...] = ()
    """What planners do, in this order, at any moments."""
    statements: tuple[Choice, ...] = ()
    """What people and late messages say, each at most once, in any order."""
    crashes: int = 0
    restarts: int = 0
    freezes: int = 0
    cuts: int = 0
    losses: int = 0
    fates: tuple[str, ...] = ()
    """What may become of a request besides its effect; each use takes one of `odd_fates`."""
    odd_fates: int = 1
    faults: tuple[str, ...] = ()
    """Faults of `driver.FAULTS`; each use takes one of `odd_faults`."""
    odd_faults: int = 1
    waits: int = 8
    fused_passes: bool = True
    """A pass of a role without rows of its own is one step: what it found is judged anew anyway."""

    def key(self) -> Hashable:
        """Return the budgets as a part of a state key."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def left(self) -> Hashable:
        """What is left of the budgets that a search without waits of its own goes by."""
        return (
            len(self.plan), self.statements, self.crashes, self.restarts, self.freezes,
            self.cuts, self.losses, self.odd_fates, self.odd_faults,
        )  # fmt: skip

    def less(self, **budgets: Any) -> Bounds:
        """Return the bounds with other budgets."""
        copy = altered(self, **budgets)
        copy.__dict__.pop("left", None)
        return copy


class Search:
    """A world with bounds; one object walks the whole state space by marks."""

    def __init__(self, spec: WorldSpec, bounds: Bounds, *, forest: Forest | None = None) -> None:
        self.bounds = bounds
        self.world = World(spec, forest=forest or Forest(remember=True))
        self._monitors = Monitors(self.world)

    @property
    def violations(self) -> list[Violation]:
        """What the last choice has broken."""
        return self._monitors.violations

    def snapshot(self) -> Mark:
        """Return a mark to come back to."""
        return self.world.snapshot(), self.bounds

    def restore(self, mark: Mark) -> None:
        """Go back to a mark, which stays usable."""
        world, self.bounds = mark
        self.world.restore(world)
        self._monitors.violations.clear()

    def key(self) -> Hashable:
        """Return what tells this state from others."""
        return self.world.key(), self.bounds.key()

    def left_over(self) -> list[str]:
        """Return the rows that nobody will move any more although no person's turn has come."""
        return unfinished(self.world)

    def apply(self, choice: Choice) -> bool:
        """Let one thing happen; False where it is refused now, and nothing has changed."""
        self._monitors.violations.clear()
        try:
            self.world.apply(choice)
        except Impossible:
            return False
        if self.bounds.fused_passes and choice[0] == "start" and len(choice) == 2:
            self._finish_pass(choice[1])
        self.bounds = _spent(self.bounds, choice)
        return True

    def _finish_pass(self, role: str) -> None:
        while role in self.world.tasks:
            self.world.apply(("step", role))

    # -- enumeration -----------------------------------------------------------------------------

    def choices(self) -> list[Choice]:
        """Return everything that may happen now, in a fixed order."""
        found: list[Choice] = []
        for offers in (_steps, _travels, _begins, _ends):
            found += offers(self.world, self.bounds)
        if self.bounds.plan:
            found.append(self.bounds.plan[0])
        found += self.bounds.statements
        if self.bounds.waits > 0:
            found += _next_wait(self.world)
        return found


def _steps(world: World, bounds: Bounds) -> Iterator[Choice]:
    for task in world.tasks.values():
        if task.flight is not None or not world.processes[task.process].runs:
            continue
        yield ("step", task.name)
        if bounds.odd_faults > 0 and not task.lost:
            for fault in FAULTS.get(type(task.node.command), ()):
                if fault in bounds.faults:
                    yield ("step", task.name, fault)


def _travels(world: World, bounds: Bounds) -> Iterator[Choice]:
    for flight in world.flights.values():
        if flight.answer is None:
            yield ("arrive", flight.name)
            if bounds.odd_fates > 0:
                yield from (("arrive", flight.name, fate) for fate in bounds.fates)
            if bounds.losses > 0:
                yield ("lose", flight.name)
        elif world.processes[world.tasks[flight.task].process].runs:
            yield ("answer", flight.name)
        if flight.awaited and bounds.cuts > 0:
            yield ("cut", flight.name)


def _begins(world: World, bounds: Bounds) -> Iterator[Choice]:
    store, busy = world.store, world.tasks
    ready: dict[str, Callable[[], object]] = {
        "bind": lambda: store.binding.due("settled", 1) or store.binding.due("bound", 1),
        "reap": lambda: store.reaper.find_overdue(1),
        "hold": lambda: store.holds.find_undone(1) or store.holds.find_held(1),
        "gate": lambda: store.gates.due(1),
    }
    yield from (("start", role) for role, has in ready.items() if role not in busy and has())
    now = world.clock.now
    due = [r.seq for r in store.tables.rows.values() if r.probe_at is not None]
    due = [seq for seq in due if _is_due(world, seq)]
    for name in world.spec.reconcilers:
        idle = not any(f"{name}:{seq}" in busy for seq in due)
        if due and idle and world.processes[name].runs:
            yield ("start", "reconcile", name)
    workers: list[str] | None = None
    for seq, row in store.tables.rows.items():
        if row.ready_at is not None and row.ready_at <= now and row.live:
            step = store.tables.intents[seq].intent_id
            workers = list(_idle_workers(world)) if workers is None else workers
            for name in workers:
                yield ("claim", name, step)


def _is_due(world: World, seq: int) -> bool:
    row = world.store.tables.rows[seq]
    return row.probe_at is not None and row.probe_at <= world.clock.now and row.parked_at is None


def _idle_workers(world: World) -> Iterator[str]:
    """Yield idle workers; of several that are alike only the first."""
    seen: set[Hashable] = set()
    working = {task.process for task in world.tasks.values()}
    for name in world.spec.workers:
        process = world.processes[name]
        if name in working or not process.runs:
            continue
        alike = (world.spec.unserved.get(name), _has_history(world, process))
        if alike not in seen:
            seen.add(alike)
            yield name


def _has_history(world: World, process: Process) -> Hashable:
    """Return what tells an idle worker from another: rows and requests that still name it."""
    rows = world.store.tables.rows.values()
    held = tuple(row.seq for row in rows if row.owner == process.owner)
    sent = any(flight.task.startswith(f"{process.name}:") for flight in world.flights.values())
    return held, sent


def _ends(world: World, bounds: Bounds) -> Iterator[Choice]:
    working = {task.process for task in world.tasks.values()}
    for process in world.processes.values():
        if process.owner is not None and process.name in working and process.runs:
            if bounds.crashes > 0:
                yield ("crash", process.name)
            if bounds.freezes > 0:
                yield ("freeze", process.name)
        if process.frozen:
            yield ("thaw", process.name)
        if not process.alive and bounds.restarts > 0:
            yield ("restart", process.name)


def _next_wait(world: World) -> Iterator[Choice]:
    now = world.clock.now
    moments = sorted({moment for moment in _moments(world) if moment > now})
    if moments:
        yield ("wait", (moments[0] - now).total_seconds())


def _moments(world: World) -> Iterator[Any]:
    """Yield every moment at which the key of this state may change."""
    yield from waited_for(world)
    for row in world.store.tables.rows.values():
        if row.quiet_at is not None:
            yield row.quiet_at
    for flight in world.flights.values():
        yield flight.dies_at
    for task in world.tasks.values():
        if task.send_by is not None:
            yield task.send_by + timedelta(seconds=1)


_BUDGETS = {
    "crash": "crashes",
    "restart": "restarts",
    "freeze": "freezes",
    "cut": "cuts",
    "lose": "losses",
    "wait": "waits",
}


def _spent(bounds: Bounds, choice: Choice) -> Bounds:
    if bounds.plan and choice == bounds.plan[0]:
        return bounds.less(plan=bounds.plan[1:])
    if choice in bounds.statements:
        return bounds.less(statements=_without(bounds.statements, choice))
    verb = choice[0]
    if verb == "arrive" and len(choice) > 2:
        return bounds.less(odd_fates=bounds.odd_fates - 1)
    if verb == "step" and len(choice) > 2:
        return bounds.less(odd_faults=bounds.odd_faults - 1)
    name = _BUDGETS.get(verb)
    return bounds if name is None else bounds.less(**{name: getattr(bounds, name) - 1})


def _without(choices: Iterable[Choice], gone: Choice) -> tuple[Choice, ...]:
    return tuple(choice for choice in choices if choice != gone)
