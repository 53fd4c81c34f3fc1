"""The headline workload: 200 intents on one schedule, through naive workers and through ackbox.

The schedule is the one of sluice's published chaos run, drawn by the same recipe. sluice's own
figures stand beside as data: they are theirs, not measured here. May import `sim`.
"""

from __future__ import annotations

from typing import Any

from .case import REFUSAL, Case
from .checks import broken, figures_of
from .figures import Figures, total
from .naive import run_naive
from .schedule import Schedule

SEEDS = range(1, 11)
INTENTS = 20
WORKERS = ("w1", "w2")
UNPROVEN = "error_before_effect"
WITHOUT_PROOF = "headline_without_proof"
TOOLS: dict[str, dict[str, Any]] = {
    "ackbox_keyed": {"key": "idempotent"},
    "ackbox_probe": {"probe": "strong"},
    "ackbox_keyless": {},
}
SLUICE_PUBLISHED = Figures(
    intents=200, deliveries=714, attempts=228, effects=194, duplicates=0, resolved=154, parked=40,
    failed=6,
)  # fmt: skip
"""sluice 1.0.0-rc.1 on this schedule. It publishes resolved, parked and duplicates; the rest
follows from its documented rules on the same draws, which a test repeats."""
SLUICE_STORM = Figures(intents=400, deliveries=400, attempts=350, effects=237, resolved=237)
"""sluice on the retry storm's schedule; it refused the other 163 to the end."""
ARMS = ("naive", "sluice_published", *TOOLS)


def schedule_of(seed: int) -> Schedule:
    """Return the headline's schedule under one seed."""
    return Schedule(seed, deliveries_range=(2, 5), error_rate=0.15, timeout_rate=0.15)


def run_arm(arm: str, seed: int, refusal: str = REFUSAL) -> tuple[Figures, list[str]]:
    """Run one seed of an arm through ackbox; returns its figures and what was broken."""
    case = Case(TOOLS[arm], schedule_of(seed))
    case.refusal = refusal
    for intent in range(INTENTS):
        step = case.put(intent)
        for number in range(case.schedule.deliveries(step)):
            case.deliver(WORKERS[number % 2], step)
    case.settle()
    return figures_of(case), list(broken(case))


def headline() -> dict[str, Any]:
    """Run every arm; returns the totals, the parts by seed, and what was broken."""
    parts = {arm: [run_arm(arm, seed) for seed in SEEDS] for arm in TOOLS}
    figures = {arm: [one for one, _ in found] for arm, found in parts.items()}
    figures["naive"] = [run_naive(schedule_of(seed), INTENTS) for seed in SEEDS]
    sums = {arm: total(found) for arm, found in figures.items()}
    sums["sluice_published"] = SLUICE_PUBLISHED
    return {
        "arms": {arm: sums[arm].as_dict() for arm in ARMS},
        "by_seed": {arm: [one.as_dict() for one in figures[arm]] for arm in ARMS if arm in figures},
        "broken": _texts(parts),
    }


def without_proof() -> dict[str, Any]:
    """Run the same schedule with a tool whose refusals prove nothing, such as a bare 503."""
    parts = {arm: [run_arm(arm, seed, UNPROVEN) for seed in SEEDS] for arm in TOOLS}
    sums = {arm: total(one for one, _ in found) for arm, found in parts.items()}
    return {
        "arms": {arm: figures.as_dict() for arm, figures in sums.items()},
        "broken": _texts(parts),
    }


def _texts(parts: dict[str, list[tuple[Figures, list[str]]]]) -> list[str]:
    return [
        f"{arm} seed {seed}: {text}"
        for arm, found in parts.items()
        for seed, (_, texts) in zip(SEEDS, found, strict=True)
        for text in texts
    ]
