"""Everything at once: planners, people, processes, the wire and the store, one random act a time.

No act is planned for its effect; what cannot happen now is left out. People tell the truth, as far
as the tool's own books go. May import `sim`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..driver import FAULTS
from ..lives import PASS_ARGUMENTS
from ..records import Frozen
from ..world import Choice
from ..world_values import Impossible
from .acts import WORKERS
from .case import TOOL, Case
from .draws import stream

ACTS_PER_INTENT = 40
T = TypeVar("T")


def any_weather(case: Case) -> None:
    """Let random things happen, and the world go on in between."""
    draws = stream(case.schedule.seed, "weather")
    waiting = list(range(case.planned))
    for _ in range(ACTS_PER_INTENT * case.planned):
        if waiting and (not case.intents or next(draws) < 0.1):
            held = "ops" if next(draws) < 0.2 else None
            case.put(waiting.pop(0), held_for=held)
        elif next(draws) < 0.5:
            _go_on(case)
        else:
            _try(case, _one(draws, ACTS)(case, draws))
    for intent in waiting:
        case.put(intent)
    if case.world.store.tables.paused:
        # Somebody who pauses a tool lets it go on some day.
        case.apply(("pause", TOOL))


def _go_on(case: Case) -> None:
    choice = case.next_choice()
    if choice is not None:
        _try(case, choice)


def _try(case: Case, choice: Choice | None) -> None:
    if choice is None:
        return
    try:
        case.apply(choice)
    except Impossible:
        # A random act that the present state does not allow: nothing has happened.
        case.world.tally["left out"] += 1


def _one(draws: Iterator[float], items: Sequence[T]) -> T:
    return items[int(next(draws) * len(items))]


def _step(case: Case, draws: Iterator[float]) -> str:
    return _one(draws, case.intents)


# -- acts ------------------------------------------------------------------------------------------


def _token(case: Case, draws: Iterator[float]) -> Choice:
    return ("claim", _one(draws, WORKERS), _step(case, draws))


def _planner(case: Case, draws: Iterator[float]) -> Choice:
    step = _step(case, draws)
    other = Frozen(title=f"{step} in other words")
    acts: tuple[Choice, ...] = (
        ("ask_again", step), ("ask_again", step), ("supersede", step), ("supersede", step, other),
        ("cancel", step), ("compensate", step), ("pause", TOOL),
    )  # fmt: skip
    return _one(draws, acts)


def _life(case: Case, draws: Iterator[float]) -> Choice:
    names = [process.name for process in case.world.processes.values()]
    return (_one(draws, ("crash", "restart", "freeze", "thaw", "thaw")), _one(draws, names))


def _fault(case: Case, draws: Iterator[float]) -> Choice | None:
    tasks = [task for task in case.world.tasks.values() if task.flight is None]
    if not tasks:
        return None
    task = _one(draws, tasks)
    faults = FAULTS.get(type(task.node.command), ())
    return ("step", task.name, _one(draws, faults)) if faults else ("step", task.name)


def _wire(case: Case, draws: Iterator[float]) -> Choice | None:
    flights = list(case.world.flights)
    return (_one(draws, ("cut", "lose")), _one(draws, flights)) if flights else None


def _late(case: Case, draws: Iterator[float]) -> Choice:
    return ("late", _step(case, draws), int(next(draws) * 2))


def _gate(case: Case, draws: Iterator[float]) -> Choice:
    decision = "approved" if next(draws) < 0.7 else "rejected"
    return ("decide", _step(case, draws), decision)


def _person(case: Case, draws: Iterator[float]) -> Choice | None:
    """Say of an unknown row what the tool's books say, once nothing of it travels any more."""
    world, step = case.world, _step(case, draws)
    seq = world.row_of(step)
    if any(flight.claim.seq == seq for flight in world.flights.values()):
        return None
    if world.tools.standing.get(seq):
        return ("says", step, "landed")
    return ("says", step, _one(draws, ("not_landed", "requeue")))


def _pass(case: Case, draws: Iterator[float]) -> Choice:
    return ("start", _one(draws, tuple(PASS_ARGUMENTS)))


def _wait(case: Case, draws: Iterator[float]) -> Choice:
    return ("wait", _one(draws, (0.5, 3.0, 12.0, 31.0, 95.0)))


Act = Callable[[Case, Iterator[float]], Any]
ACTS: tuple[Act, ...] = (
    _token, _token, _planner, _life, _life, _fault, _fault, _wire, _late, _gate, _person, _pass,
    _wait, _wait,
)  # fmt: skip
