"""Two hundred random mixtures: any script, any tool, any rates. A failing one is made small.

Each seed draws a script and its knobs; what must hold of every workload is checked, and nothing
that a script's own scenario says about its ends. May import the scenario modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

from ...outbox.defaults import DEFAULTS
from ..tool_specs import ToolSpec
from ..world_values import Impossible
from . import scenarios_crash, scenarios_delivery, scenarios_people
from .case import TOOL, Case
from .checks import broken, figures_of
from .draws import mulberry32
from .figures import Figures
from .scenario import KINDS, Script
from .schedule import Schedule
from .weather import any_weather

SEEDS = range(1, 201)
SALT = 0x5F356495
SCRIPTS: dict[str, Script] = {
    script.__name__: script
    for script in (
        scenarios_delivery.duplicate_delivery, scenarios_delivery.timeout_then_success,
        scenarios_delivery.retry_storm, scenarios_delivery.slow_downstream,
        scenarios_delivery.big_result, scenarios_delivery.queue_loss,
        scenarios_delivery.planner_asks_again, scenarios_delivery.headline_with_kills,
        scenarios_crash.crash_after_effect, scenarios_crash.crash_at_record,
        scenarios_crash.crash_before_mark, scenarios_crash.crash_after_mark,
        scenarios_crash.worker_stalls, scenarios_crash.answer_after_stall,
        scenarios_crash.store_down, scenarios_crash.crash_around_gate,
        scenarios_people.two_decisions, scenarios_people.late_approval,
        scenarios_people.key_conflict, scenarios_people.supersede_anywhere,
        scenarios_people.supersede_with_undo, scenarios_people.undo_twice,
    )
}  # fmt: skip
ANY_WEATHER = any_weather.__name__
"""Half of the mixtures: it reaches what no script thinks of."""
SCRIPTS[ANY_WEATHER] = any_weather
_NEEDS_UNDO = ("supersede_with_undo", "undo_twice")
_FATES = ("no_echo", "empty_success", "cut_success", "error_after_effect", "error_before_effect",
          "stored_error", "accepted", "garbage", "refused", "stored_refusal")  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mixture:
    """One fuzzed case: everything that is needed to run it again."""

    seed: int
    script: str
    kind: str
    intents: int = 1
    deliveries: tuple[int, int] = (1, 1)
    error_rate: float = 0.0
    timeout_rate: float = 0.0
    latency: tuple[float, float] = (0.0, 0.0)
    fate: str = ""
    """What the tool does with the first request of every second intent."""
    undo: str = ""
    """How the tool's effects are undone: by "ref", by "marker" or not at all."""


def mixture_of(seed: int) -> Mixture:
    """Return the case that a seed stands for."""
    draws = mulberry32(seed ^ SALT)
    script = ANY_WEATHER if next(draws) < 0.5 else _one(draws, tuple(SCRIPTS))
    storm = script == "retry_storm"
    faulty, slow = next(draws) < 0.5, next(draws) < 0.4
    most = 1 + int(next(draws) * 4)
    return Mixture(
        seed=seed,
        script=script,
        kind=_one(draws, tuple(KINDS)),
        intents=10 + int(next(draws) * 30) if storm else 1 + int(next(draws) * 4),
        deliveries=(1 + int(next(draws) * most), most),
        error_rate=0.3 if storm else _one(draws, (0.0, 0.1, 0.2)) if faulty else 0.0,
        timeout_rate=_one(draws, (0.1, 0.2)) if next(draws) < 0.4 else 0.0,
        latency=_latency(draws, script) if slow else (0.0, 0.0),
        fate=_one(draws, _FATES) if next(draws) < 0.3 else "",
        undo=_one(draws, ("ref", "marker"))
        if script in _NEEDS_UNDO
        else _one(draws, ("ref", "marker", "", "")),
    )


def _latency(draws: Iterator[float], script: str) -> tuple[float, float]:
    if script == "slow_downstream":
        return 1.0 + 10.0 * next(draws), 30.0 + 70.0 * next(draws)
    return 0.0, 0.5 * next(draws)


def _one(draws: Iterator[float], items: tuple[T, ...]) -> T:
    return items[int(next(draws) * len(items))]


def case_of(mixture: Mixture) -> Case:
    """Return the world of a mixture before anything has happened in it."""
    tool: dict[str, Any] = dict(KINDS[mixture.kind])
    others: tuple[ToolSpec, ...] = ()
    if mixture.undo:
        tool["undo"] = "undo"
        key = tool.get("key", "none")
        others = (ToolSpec("undo", service=TOOL, undoes=mixture.undo, key=key),)
    schedule = Schedule(
        mixture.seed, mixture.deliveries, mixture.error_rate, mixture.timeout_rate,
        mixture.latency,
    )  # fmt: skip
    limits = replace(DEFAULTS, gate_limit_seconds=scenarios_people.GATE_SECONDS)
    case = Case(tool, schedule, limits=limits, others=others, intents=mixture.intents)
    if mixture.fate:
        for intent in range(0, mixture.intents, 2):
            case.fates[f"intent-{intent}", 1] = mixture.fate
    return case


def play(mixture: Mixture, case: Case) -> None:
    """Run a mixture's script, and then the world until it is quiet."""
    try:
        SCRIPTS[mixture.script](case)
    except Impossible as impossible:
        # The faults have taken the script's next act from it; what stands must hold all the same.
        case.world.tally[f"cut short: {impossible}"] += 1
    case.settle()


def run_mixture(mixture: Mixture) -> tuple[Figures, list[str]]:
    """Run a mixture; returns its figures and everything that was broken."""
    case = case_of(mixture)
    play(mixture, case)
    return figures_of(case), list(broken(case))


def shrink(mixture: Mixture, breaks: Callable[[Mixture], bool]) -> Mixture:
    """Return the smallest mixture found that still breaks something."""
    again = True
    while again:
        again = False
        for smaller in _smaller(mixture):
            if smaller != mixture and breaks(smaller):
                mixture, again = smaller, True
                break
    return mixture


def _smaller(mixture: Mixture) -> Iterator[Mixture]:
    yield replace(mixture, intents=1)
    yield replace(mixture, intents=max(1, mixture.intents // 2))
    yield replace(mixture, intents=max(1, mixture.intents - 1))
    yield replace(mixture, deliveries=(1, 1))
    yield replace(mixture, error_rate=0.0)
    yield replace(mixture, timeout_rate=0.0)
    yield replace(mixture, latency=(0.0, 0.0))
    yield replace(mixture, fate="")
    if mixture.script not in _NEEDS_UNDO:
        yield replace(mixture, undo="")


def fuzz(seeds: range = SEEDS) -> dict[str, Any]:
    """Run the mixtures of some seeds; a failing one is shrunk to what can be pinned."""
    figures, failing = Figures(), list[dict[str, Any]]()
    for seed in seeds:
        mixture = mixture_of(seed)
        one, found = run_mixture(mixture)
        figures += one
        if found:
            small = shrink(mixture, lambda smaller: bool(run_mixture(smaller)[1]))
            failing.append({"mixture": asdict(small), "broken": run_mixture(small)[1]})
    return {
        "seeds": len(seeds), **figures.as_dict(), "violations": len(failing), "failing": failing,
    }  # fmt: skip
