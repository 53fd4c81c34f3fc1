"""Runs a world by a seed: which process goes on, what becomes of a request, who dies, when.

Every choice is one that a trace could hold, so that a seeded run is a recorded one. The plan (what
planners and people do) is put in at chosen moments; when it is used up, or after a number of
choices, faults stop and the world runs on until it is quiet. May import `world` and `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .driver import FAULTS
from .invariants import Monitors
from .process import Forest
from .random_source import RandomSource
from .records import Frozen
from .running import carry_out, next_plain_choice, unfinished
from .tool_specs import ToolSpec
from .tools import EARLY, SPOILED, STORED
from .trace import Expected, Trace
from .trace_run import Outcome, Recorder, outcome_of
from .world import Choice, World
from .world_spec import WorldSpec
from .world_values import Impossible

FATES = (*EARLY, *STORED, *SPOILED)


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the world is: the probability of each kind of fault, where it could happen."""

    crash: float = 0.02
    restart: float = 0.3
    freeze: float = 0.01
    fault: float = 0.05
    fate: float = 0.25
    cut: float = 0.1
    lose: float = 0.1
    redeliver: float = 0.05
    wait: float = 0.1
    plan: float = 0.15
    choices: int = 400
    """Choices with faults; then the world runs on without."""


CALM = Weather(0, 0, 0, 0, 0, 0, 0, 0, 0.02, 0.3)


class SeededRun:
    """One run of a world under a seed. `plan` holds choices of planners and people, in order."""

    def __init__(
        self,
        spec: WorldSpec,
        seed: int,
        plan: Sequence[Choice],
        weather: Weather | None = None,
        make: Callable[[WorldSpec, Callable[[], float]], World] | None = None,
    ) -> None:
        self._source = RandomSource(seed)
        self._weather = weather or Weather()
        self._plan = list(plan)
        self._seed = seed
        # A trace holds no random shares: it draws the same bound again as a recorded run.
        self.world = (make or _one_run)(spec, lambda: 1.0)
        self.monitors = Monitors(self.world)
        self.recorder = Recorder(self.world)

    def run(self) -> Outcome:
        """Run to the end and return what came of it."""
        for _ in range(self._weather.choices):
            choice = self._next()
            if choice is None:
                break
            self._try(choice)
        for choice in self._plan:
            self._try(choice)
        carry_out(self.world, {"do": "settle"}, self.recorder.apply)
        for text in unfinished(self.world):
            self.monitors.stuck(self.world, text)
        return outcome_of(f"seed_{self._seed}", self.world, self.monitors, self.recorder)

    def trace(self, outcome: Outcome, about: str) -> Trace:
        """Return the run as a trace that pins its outcome."""
        expected = outcome.expected()
        pinned = Expected(expected.counters, expected.states, expected.told, expected.violations)
        return Trace(outcome.name, about, self.world.spec, self.recorder.events(), pinned)

    def _try(self, choice: Choice) -> None:
        try:
            self.recorder.apply(choice)
        except Impossible:
            # A plan does not know what has become of its steps: what is refused is no event.
            return

    # -- what comes next -------------------------------------------------------------------------

    def _next(self) -> Choice | None:
        source, weather, world = self._source, self._weather, self.world
        if self._plan and source.chance(weather.plan):
            return self._plan.pop(0)
        drawn = source.share()
        if drawn < weather.crash + weather.freeze:
            return self._life("crash" if drawn < weather.crash else "freeze")
        if world.tasks and source.chance(0.85):
            return self._go_on()
        if world.flights and source.chance(0.5):
            return self._travel(source.one_of(list(world.flights)))
        if source.chance(weather.redeliver):
            return self._redeliver()
        if source.chance(weather.restart):
            back = [p for p in world.processes.values() if not p.runs]
            if back:
                chosen = source.one_of(back)
                return ("thaw" if chosen.alive else "restart", chosen.name)
        plain = next_plain_choice(world)
        if plain is None:
            return self._plan.pop(0) if self._plan else None
        return plain

    def _life(self, verb: str) -> Choice:
        names = [p.name for p in self.world.processes.values() if p.owner is not None and p.runs]
        return (verb, self._source.one_of(names)) if names else ("wait", 1.0)

    def _go_on(self) -> Choice:
        world, source = self.world, self._source
        task = world.tasks[source.one_of(list(world.tasks))]
        if task.flight is not None:
            return self._travel(task.flight)
        if not world.processes[task.process].runs:
            return ("wait", 1.0 + source.below(30))
        faults = FAULTS.get(type(task.node.command), ())
        if faults and not task.lost and source.chance(self._weather.fault):
            return ("step", task.name, source.one_of(faults))
        return ("step", task.name)

    def _travel(self, name: str) -> Choice:
        world, source, weather = self.world, self._source, self._weather
        flight = world.flights[name]
        if flight.answer is None:
            if source.chance(weather.lose):
                return ("lose", name)
            if flight.awaited and source.chance(weather.cut):
                return ("cut", name)
            if source.chance(weather.wait):
                return ("wait", 1.0 + source.below(40))
            if source.chance(weather.fate):
                return ("arrive", name, source.one_of(FATES))
            return ("arrive", name)
        runs = world.processes[world.tasks[flight.task].process].runs
        if not runs or source.chance(weather.cut):
            return ("cut", name)
        return ("answer", name)

    def _redeliver(self) -> Choice:
        names = [name for name in self.world.spec.workers if self.world.processes[name].runs]
        steps = [name for _, name in self.world.store.tables.names]
        if not names or not steps:
            return ("wait", 1.0)
        return ("claim", self._source.one_of(names), self._source.one_of(steps))


def _one_run(spec: WorldSpec, draw: Callable[[], float]) -> World:
    return World(spec, draw=draw, forest=Forest(remember=False))


KINDS: dict[str, dict[str, Any]] = {
    "keyless": {},
    "keyed": {"key": "idempotent", "undo": "undo"},
    "windowed": {"key": "idempotent", "key_window_seconds": 600.0},
    "probed": {"probe": "strong", "undo": "undo"},
    "lagging": {"probe": "weak", "lag_seconds": 120.0},
    "client_id": {"key": "client_id", "probe": "strong"},
}
"""Tools of a seeded world, by what they promise."""


def seeded_spec(kind: str, workers: int) -> WorldSpec:
    """Return a world with one tool of a kind, and the tool that undoes it where there is one."""
    options = KINDS[kind]
    tools = [ToolSpec("tool", **options)]
    if options.get("undo"):
        by = "marker" if options.get("probe") == "strong" else "ref"
        tools.append(ToolSpec("undo", service="tool", undoes=by))
    return WorldSpec(tuple(tools), workers=tuple(f"w{n + 1}" for n in range(workers)))


def seeded_plan(seed: int, steps: int) -> list[Choice]:
    """Return what planners do in a seeded world: put every step, ask again, replace, call off."""
    source, plan = RandomSource(seed ^ 0x5EED), list[Choice]()
    names = [f"s{number + 1}" for number in range(steps)]
    for name in names:
        plan.append(("put", name, "tool", Frozen(title=name)))
        plan += _afterwards(source, source.one_of(names))
    return plan


def _afterwards(source: RandomSource, name: str) -> list[Choice]:
    other = Frozen(title=f"{name} in other words")
    acts: list[list[Choice]] = [
        [], [], [("ask_again", name)], [("supersede", name)], [("supersede", name, other)],
        [("cancel", name)], [("compensate", name)],
    ]  # fmt: skip
    return source.one_of(acts)
