"""Scenarios of delivery and of the wire: duplicates, time-outs, storms, slowness, lost tokens.

May import `scenario` and `acts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .acts import WORKERS, deliver_all, kill
from .case import Case
from .figures import Figures
from .scenario import (
    COMMITTED,
    KEYED,
    KEYLESS,
    ONCE,
    PROBED,
    UNKNOWN,
    End,
    Scenario,
)
from .schedule import ERROR, LOST, TIMEOUT, Schedule

STORM_AMPLIFICATION = 1.5


def duplicate_delivery(case: Case) -> None:
    """Most tokens of an intent come at once, the others after everything is over."""
    late: list[tuple[str, int, int]] = []
    for intent in range(case.planned):
        step = case.put(intent)
        deliveries = case.schedule.deliveries(step)
        early = 1 + int(case.draw(f"early:{step}") * deliveries)
        deliver_all(case, step, min(early, deliveries))
        late.append((step, early, deliveries))
    case.settle()
    for step, early, deliveries in late:
        deliver_all(case, step, max(0, deliveries - early), early)


def timeout_then_success(case: Case) -> None:
    """The first answer of each intent is lost after the effect; then the token comes again."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        case.run_for(0.001)
        if case.effects_of(step) and case.told(step) in ("failed", "cancelled"):
            case.complaints.append(f"{step} is told {case.told(step)} after a lost answer")
        case.deliver("w2", step)


def lost_request(case: Case) -> None:
    """The first request of each intent is lost before it reaches the tool."""
    for intent in range(case.planned):
        step = case.put(intent)
        deliver_all(case, step, 2)


def retry_storm(case: Case) -> None:
    """Thirty in a hundred requests are refused; one intent a second."""
    for intent in range(case.planned):
        case.deliver("w1", case.put(intent))
        case.run_for(1.0)


def storm_is_bounded(figures: Figures) -> Iterator[str]:
    """Check over ten seeds that the tool gets few extra calls, none of them saved by giving up."""
    if figures.amplification > STORM_AMPLIFICATION:
        yield f"{figures.amplification} requests per intent"
    if figures.resolved != figures.intents:
        yield f"{figures.resolved} of {figures.intents} intents are completed"


def slow_downstream(case: Case) -> None:
    """Answers take up to 90 s; every token comes twice."""
    for intent in range(case.planned):
        deliver_all(case, case.put(intent), 2)


def big_result(case: Case) -> None:
    """The tool's answers are larger than what is kept of them."""
    case.over_limit = True
    for intent in range(case.planned):
        deliver_all(case, case.put(intent), 3)


def results_were_dropped(case: Case, kind: str) -> Iterator[str]:
    """Check that the effect stands on record although its result does not."""
    for step in case.intents:
        kept = case.world.store.tables.settled_by(case.world.row_of(step))
        if kept is None or kept.outcome != "applied" or kept.document.get("result") is not None:
            yield f"{step}: the dropped result is not on record as dropped"


def queue_loss(case: Case) -> None:
    """Every wake token is lost, the queue is emptied, tokens come back in the wrong order."""
    steps = [case.put(intent) for intent in range(case.planned)]
    case.world.tokens = ()
    case.carry("pass", role="relay")
    missing = {step for step in steps if step.replace("-", "_") not in _lanes(case)}
    if missing:
        case.complaints.append(f"nobody rings again for {sorted(missing)}")
    case.world.tokens = ()
    for number, step in enumerate(reversed(steps)):
        if case.draw(f"comes:{step}") < 0.5:
            case.deliver(WORKERS[number % 2], step)


def _lanes(case: Case) -> set[str]:
    return {lane.replace("-", "_") for lane in case.world.tokens}


def planner_asks_again(case: Case) -> None:
    """A planner times out again and again, before, during and after the call, under one id."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.apply(("ask_again", step))
        case.deliver("w1", step)
        for number in range(case.schedule.deliveries(step)):
            case.apply(("ask_again", step))
            case.deliver(WORKERS[number % 2], step)
        case.run_for(case.draw(f"until:{step}") * 30.0)
        case.apply(("ask_again", step))
        case.deliver("w2", step)


def headline_with_kills(case: Case) -> None:
    """The headline's faults and deliveries, and a worker is killed every few steps."""
    for intent in range(case.planned):
        step = case.put(intent)
        deliver_all(case, step, case.schedule.deliveries(step))
        for number in range(int(case.draw(f"steps:{step}") * 6)):
            choice = case.next_choice()
            if choice is not None and choice[0] != "wait":
                case.apply(choice)
            if case.draw(f"kill:{step}:{number}") < 0.25:
                kill(case, WORKERS[number % 2])


def nothing_failed(case: Case, kind: str) -> Iterator[str]:
    """Check that every intent is committed, or in front of a person for want of any proof."""
    for step in case.intents:
        right = ("committed", "indeterminate") if kind == KEYLESS else ("committed",)
        if case.state(step) not in right:
            yield f"{step} ends {case.state(step)}"


_ALL_ONCE = {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}
SCENARIOS = (
    Scenario(
        "duplicate-delivery", ("F1",), "Two to five tokens for each intent, two workers.",
        duplicate_delivery, _ALL_ONCE, schedule=Schedule(deliveries_range=(2, 5)),
    ),
    Scenario(
        "timeout-then-success", ("F2",), "The first answer is lost after the effect.",
        timeout_then_success,
        {KEYED: End("committed", 1, 2), PROBED: ONCE, KEYLESS: UNKNOWN},
        schedule=Schedule(overrides={1: TIMEOUT}),
    ),
    Scenario(
        "lost-request", ("F2",), "The first request is lost before it takes effect.",
        lost_request,
        {KEYED: End("committed", 1, 2), PROBED: End("committed", 1, 2),
         KEYLESS: End("indeterminate", 0, 1)},
        schedule=Schedule(overrides={1: LOST}),
    ),
    Scenario(
        "retry-storm", ("F7",), "Three in ten requests are refused; nothing dies of load.",
        retry_storm, {KEYED: COMMITTED, PROBED: COMMITTED, KEYLESS: COMMITTED}, intents=40,
        schedule=Schedule(error_rate=0.3), check_total=storm_is_bounded,
    ),
    Scenario(
        "slow-downstream", ("F15",), "Answers take 5 to 90 s and the call may take 120 s.",
        slow_downstream, _ALL_ONCE, intents=4, schedule=Schedule(latency_range=(5.0, 90.0)),
        tool={"call_limit_seconds": 120.0},
    ),
    Scenario(
        "late-commit", ("F15",), "The effect happens long after the caller has given up.",
        slow_downstream,
        {KEYED: End("committed", 1, 2), PROBED: ONCE, KEYLESS: UNKNOWN},
        intents=4, schedule=Schedule(latency_range=(31.0, 89.0), slow_tries=1),
    ),
    Scenario(
        "big-result", ("F10",), "The answer is larger than the transport keeps.",
        big_result, _ALL_ONCE, check=results_were_dropped,
    ),
    Scenario(
        "queue-loss", ("F17",), "All tokens are lost, some come back, in reverse order.",
        queue_loss, _ALL_ONCE,
    ),
    Scenario(
        "planner-asks-again", ("F1", "F13"), "A planner times out again and again, under one id.",
        planner_asks_again, _ALL_ONCE,
        schedule=Schedule(deliveries_range=(1, 3), latency_range=(0.0, 20.0)),
    ),
    Scenario(
        "refused-then-success", ("F7",), "The first two requests are refused with proof.",
        lost_request, {kind: End("committed", 1, 3) for kind in (KEYED, PROBED, KEYLESS)},
        schedule=Schedule(overrides={1: ERROR, 2: ERROR}),
    ),
    Scenario(
        "faults-and-kills", ("F1", "F2", "F3", "F4", "F7"),
        "The headline's faults, and workers are killed all the time.",
        headline_with_kills, {KEYED: COMMITTED, PROBED: COMMITTED, KEYLESS: COMMITTED},
        intents=10, loose=True, check=nothing_failed,
        schedule=Schedule(deliveries_range=(2, 5), error_rate=0.15, timeout_rate=0.15),
    ),
)  # fmt: skip
