"""A run as a scene: who stands in it, what goes from whom to whom, and how many effects there are.

Decides what a picture of a trace shows; `show_html` draws it. May import `trace_run`, `show` and
`world`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .lives import PASS_ARGUMENTS
from .show import LIVES, PEOPLE, PLANNERS, actor, words
from .trace import Trace
from .trace_run import Moment, Outcome, new_world, run_trace
from .world import Choice, World

PERSON, PLANNER, QUEUE, OUTBOX, PASSES, TOOL = (
    "person", "planner", "queue", "outbox", "passes", "tool",
)  # fmt: skip
_FIRST = (PERSON, PLANNER, QUEUE, OUTBOX, PASSES)
_AT_THE_TOOL = {"Exchange": "request", "Fetch": "read"}
_TO_THE_QUEUE = ("Ring", "RingResults")


@dataclass(frozen=True, slots=True)
class Arrow:
    """Something goes from one to another; `lost`: it does not get there."""

    source: str
    target: str
    label: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """Something happens at one place: an effect, a crash, a pass that begins."""

    place: str
    kind: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event of the trace as it is drawn."""

    seconds: float
    words: str
    shown: tuple[Arrow | Mark, ...]
    logged: tuple[str, ...]
    effects: Mapping[str, int]
    """Effects that stand, by intent."""
    happened: int
    """All effects so far, undone ones included."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole run. `too_many` by event: intents whose step of the plan has more than one effect."""

    trace: Trace
    outcome: Outcome
    places: tuple[str, ...]
    intents: tuple[str, ...]
    happenings: tuple[Happening, ...]
    too_many: tuple[frozenset[str], ...] = field(default=(), repr=False)


@dataclass(slots=True)
class _Books:
    """What the tools' own books said after each choice."""

    effects: list[Mapping[str, int]] = field(default_factory=list)
    happened: list[int] = field(default_factory=list)
    too_many: list[frozenset[str]] = field(default_factory=list)

    def note(self, world: World, choice: Choice) -> None:
        """Note the counts, by intent and by the step that each intent stands for."""
        intents, tools = world.store.tables.intents, world.tools
        standing = {seq: n for seq, n in tools.standing.items() if seq in intents}
        effects: dict[str, int] = {}
        steps: dict[str, int] = {}
        for seq, number in standing.items():
            name, step = intents[seq].intent_id, world.plan_step(seq)
            effects[name] = effects.get(name, 0) + number
            steps[step] = steps.get(step, 0) + number
        doubled = {step for step, number in steps.items() if number > 1}
        self.effects.append(effects)
        self.happened.append(tools.happened)
        self.too_many.append(
            frozenset(n for n in effects if effects[n] and world.plan.get(n, n) in doubled)
        )


def scene_of(trace: Trace) -> Scene:
    """Run a trace and return it as a scene. Raises TraceError for an event that cannot happen."""
    books = _Books()

    def watched(trace: Trace) -> World:
        world = new_world(trace)
        world.observers.append(books.note)
        return world

    outcome = run_trace(trace, watched)
    moments = enumerate(outcome.moments)
    happenings = tuple(_happening(trace, moment, books, number) for number, moment in moments)
    return Scene(
        trace, outcome, _places(trace, happenings), tuple(outcome.states), happenings,
        tuple(books.too_many),
    )  # fmt: skip


def _happening(trace: Trace, moment: Moment, books: _Books, number: int) -> Happening:
    logged = [
        f"row {seq} {name}" + (f": {state}" if state else "") for seq, name, state in moment.logged
    ]
    logged += [f"effect {ref}" for ref in moment.arrived]
    return Happening(
        moment.seconds, words(moment), tuple(_shown(trace, moment)), tuple(logged),
        books.effects[number], books.happened[number],
    )  # fmt: skip


def _places(trace: Trace, happenings: tuple[Happening, ...]) -> tuple[str, ...]:
    used = {OUTBOX, TOOL}
    for happening in happenings:
        for one in happening.shown:
            used |= {one.source, one.target} if isinstance(one, Arrow) else {one.place}
    processes = (*trace.world.workers, *trace.world.reconcilers)
    return tuple(place for place in (*_FIRST, *processes, TOOL) if place in used)


def _place(name: str) -> str:
    """Return where a process stands: the roles that hold no rows share one place."""
    found = actor(name)
    return PASSES if found in PASS_ARGUMENTS or found == "message" else found


def _shown(trace: Trace, moment: Moment) -> Iterator[Arrow | Mark]:
    verb, fields = moment.choice[0], moment.choice[1:]
    if verb in PLANNERS:
        yield Arrow(PLANNER, OUTBOX, verb.replace("_", " "))
    elif verb in PEOPLE:
        yield Arrow(PERSON, TOOL if verb == "undo_by_hand" else OUTBOX, _said(verb, fields))
    elif verb == "claim":
        yield from _claimed(_place(fields[0]), moment)
    elif verb == "step":
        yield from _stepped(_place(fields[0]), moment)
    elif verb == "start":
        usual = trace.world.reconcilers[0] if fields[0] == "reconcile" else fields[0]
        who = fields[1] if len(fields) > 1 and fields[1] else usual
        yield Mark(_place(who), "begins", fields[0])
    elif verb in LIVES:
        yield Mark(_place(fields[0]), verb, verb)
    else:
        yield from _travelled(verb, fields, moment)


def _said(verb: str, fields: tuple[object, ...]) -> str:
    return f"{verb.replace('_', ' ')} {fields[1]}" if verb in ("decide", "says") else "undoes"


def _claimed(worker: str, moment: Moment) -> Iterator[Arrow]:
    yield Arrow(QUEUE, worker, "token")
    yield Arrow(worker, OUTBOX, "claim", lost=not moment.logged)


def _stepped(place: str, moment: Moment) -> Iterator[Arrow | Mark]:
    command, fault = moment.command, moment.choice[2] if len(moment.choice) > 2 else ""
    label = f"{command} ({fault})" if fault else command
    if command in _AT_THE_TOOL:
        yield Arrow(place, TOOL, label, lost=bool(fault))
    elif command in _TO_THE_QUEUE:
        yield Arrow(place, QUEUE, label)
    elif command == "HandOverBatch":
        yield Arrow(place, PLANNER, label, lost=bool(fault))
    else:
        yield Arrow(place, OUTBOX, label)


def _travelled(verb: str, fields: tuple[object, ...], moment: Moment) -> Iterator[Arrow | Mark]:
    who = str(fields[0]) if fields else ""
    if verb == "arrive":
        yield Mark(TOOL, "effect" if moment.arrived else "arrives", _fate(fields, moment))
    elif verb == "answer":
        yield Arrow(TOOL, _place(who), "answer")
    elif verb == "cut":
        yield Arrow(TOOL, _place(who), "connection cut", lost=True)
    elif verb == "lose":
        yield Arrow(_place(who), TOOL, "request lost", lost=True)
    elif verb == "late":
        yield Arrow(TOOL, OUTBOX, "late answer")
    elif verb == "refused":
        yield Arrow(PERSON if who in PEOPLE else PLANNER, OUTBOX, f"{who}: {fields[1]}", lost=True)
    elif verb == "break":
        yield Mark(OUTBOX, "note", f"adapter {fields[0]}: {fields[1]} breaks or is mended")
    elif verb == "wait":
        yield Mark(OUTBOX, "wait", f"{fields[0]:g} s pass")
    else:
        yield Mark(OUTBOX, "note", words(moment))


def _fate(fields: tuple[object, ...], moment: Moment) -> str:
    fate = str(fields[1]) if len(fields) > 1 and fields[1] else "arrives"
    return ", ".join([fate, *moment.arrived]) if moment.arrived else fate
