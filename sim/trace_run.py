"""Runs a trace in a virtual world and compares the end with what the trace expects.

May import `trace`, `running`, `invariants` and `world`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from ..outbox.identity import DEFAULT_NAMESPACE
from .clock import BEGINNING
from .invariants import Monitors, Violation
from .process import Forest
from .records import Event
from .running import carry_out, told_word, unfinished
from .trace import Expected, Trace, TraceError
from .verbs import VERBS, choice_of, event_of
from .world import Choice, World
from .world_values import COUNTER_NAMES, Impossible


class Moment(NamedTuple):
    """One applied choice, and the events that the store logged for it."""

    at: datetime
    choice: Choice
    command: str
    """The command that a step answered, "" for other choices."""
    events: tuple[Event, ...]
    arrived: tuple[str, ...] = ()
    """References of effects that happened."""

    @property
    def seconds(self) -> float:
        """Seconds since the world began."""
        return (self.at - BEGINNING).total_seconds()

    @property
    def logged(self) -> tuple[tuple[int | None, str, str | None], ...]:
        """(seq, name, state afterwards) of each event."""
        return tuple(
            (event.seq, event.name, event.to_state.value if event.to_state else None)
            for event in self.events
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. `complaints` say where it is not as expected."""

    name: str
    counters: Mapping[str, int]
    states: Mapping[str, tuple[str, ...]]
    told: Mapping[str, str]
    violations: tuple[Violation, ...]
    complaints: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = field(default=(), repr=False)

    @property
    def passed(self) -> bool:
        """Whether everything is as the trace expects."""
        return not self.complaints

    @property
    def rules_broken(self) -> tuple[str, ...]:
        """The names of the rules that broke, each once."""
        return tuple(sorted({one.rule for one in self.violations}))

    def expected(self) -> Expected:
        """Return what a trace that pins this outcome would expect."""
        return Expected(self.counters, self.states, self.told, self.rules_broken)

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome with stable keys."""
        return {
            "name": self.name,
            "passed": self.passed,
            "counters": dict(self.counters),
            "states": {step: list(states) for step, states in self.states.items()},
            "told": dict(self.told),
            "violations": [one.as_dict() for one in self.violations],
            "complaints": list(self.complaints),
        }


class Recorder:
    """Applies choices to a world and keeps them with what they caused."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.moments: list[Moment] = []

    def apply(self, choice: Choice) -> None:
        """Apply one choice and note it."""
        world, tools = self.world, self.world.tools
        effects = tools.happened
        at, command = world.clock.now, _command(world, choice)
        world.apply(choice)
        arrived: tuple[str, ...] = ()
        if tools.happened > effects:
            numbers = range(effects + 1, tools.happened + 1)
            arrived = tuple([tools.effects[number].ref for number in numbers])
        events = tuple(world.store.tables.recent)
        self.moments.append(Moment(at, choice, command, events, arrived))

    def events(self) -> tuple[dict[str, Any], ...]:
        """Return what was applied as primitive events."""
        return tuple(event_of(moment.choice) for moment in self.moments)


def _command(world: World, choice: Choice) -> str:
    if choice[0] != "step":
        return ""
    task = world.tasks.get(choice[1])
    return "" if task is None else type(task.node.command).__name__


WorldMaker = Callable[[Trace], World]


def new_world(trace: Trace) -> World:
    """Return the world that a trace begins with: one run, no forks."""
    return World(trace.world, forest=Forest(remember=False))


def run_trace(trace: Trace, make: WorldMaker = new_world) -> Outcome:
    """Run a trace to its end. Raises TraceError for an event that cannot happen."""
    world = make(trace)
    monitors, recorder = Monitors(world), Recorder(world)
    for number, event in enumerate(trace.events):
        try:
            _happen(world, event, recorder.apply, monitors)
        except Impossible as impossible:
            member = f"events.{number}.{impossible.field}"
            raise TraceError(str(impossible), trace.line(number), member) from impossible
    outcome = outcome_of(trace.name, world, monitors, recorder)
    return replace(outcome, complaints=tuple(_complaints(trace.expected, outcome)))


def _happen(
    world: World, event: Mapping[str, Any], apply: Callable[[Choice], None], monitors: Monitors
) -> None:
    if not VERBS[event["do"]].composite:
        apply(choice_of(event))
        return
    carry_out(world, event, apply)
    if event["do"] == "settle":
        for text in unfinished(world):
            monitors.stuck(world, text)


def outcome_of(name: str, world: World, monitors: Monitors, recorder: Recorder) -> Outcome:
    """Return what stands in a world at its end."""
    tables, counters = world.store.tables, world.counters()
    counters["parked"] = sum(row.parked_at is not None for row in tables.rows.values())
    counters["divergences"] = sum(
        event.name == "divergence" for events in tables.events.values() for event in events
    )
    steps = [name for space, name in tables.names if space == DEFAULT_NAMESPACE]
    states = {
        step: tuple(tables.rows[s].state.value for s in tables.names[DEFAULT_NAMESPACE, step])
        for step in steps
    }
    return Outcome(
        name=name,
        counters={counter: counters.get(counter, 0) for counter in COUNTER_NAMES},
        states=states,
        told={step: told_word(world, step) for step in steps},
        violations=tuple(monitors.violations),
        moments=tuple(recorder.moments),
    )


def _complaints(expected: Expected, outcome: Outcome) -> list[str]:
    found = [
        f"{name} is {outcome.counters[name]}, not {value}"
        for name, value in expected.counters.items()
        if outcome.counters[name] != value
    ]
    found += [
        f"{step} stands at {list(outcome.states.get(step, ()))}, not {list(states)}"
        for step, states in expected.states.items()
        if outcome.states.get(step) != states
    ]
    found += [
        f"{step} is told {outcome.told.get(step)!r}, not {word!r}"
        for step, word in expected.told.items()
        if outcome.told.get(step) != word
    ]
    if outcome.rules_broken != expected.violations:
        texts = "; ".join(one.text for one in outcome.violations) or "none"
        found.append(f"rules broken: {texts}; expected: {list(expected.violations) or 'none'}")
    return found
