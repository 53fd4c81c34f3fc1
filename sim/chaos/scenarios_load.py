"""Scenarios of a tool that is out for five minutes, without and with retry budget and breaker.

May import `scenario` and `scenarios_delivery`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .case import Case
from .figures import Figures
from .scenario import COMMITTED, KEYED, KEYLESS, PROBED, Scenario
from .scenarios_delivery import nothing_failed
from .schedule import Schedule

OUTAGE_SECONDS = (60.0, 360.0)
EVERY_SECONDS = 10.0
INTENTS = 36
"""Six before the outage, thirty in it."""
OUTAGE_AMPLIFICATION = 1.5
NO_BREAKER = {"breaker_outcomes": 10_000}
Script = Callable[[Case], None]


def steady(case: Case) -> None:
    """One intent every ten seconds; while the tool is out it refuses with proof."""
    for intent in range(case.planned):
        case.deliver("w1", case.put(intent))
        case.run_for(EVERY_SECONDS)


def steady_without_proof(case: Case) -> None:
    """The same, and the errors of the tool do not say that nothing happened."""
    case.refusal = "error_before_effect"
    steady(case)


def outage_is_spared(figures: Figures) -> Iterator[str]:
    """Check over ten seeds that the tool that is out gets few requests more than it would."""
    if figures.amplification > OUTAGE_AMPLIFICATION:
        yield f"{figures.amplification} requests per intent"


def _outage(
    name: str, about: str, script: Script, kinds: tuple[str, ...], throttled: bool = False,
    limits: Mapping[str, Any] | None = None,
) -> Scenario:  # fmt: skip
    spared = throttled and not limits
    return Scenario(
        name, ("F7",), about, script, dict.fromkeys(kinds, COMMITTED), INTENTS,
        Schedule(outage_range=OUTAGE_SECONDS), throttled=throttled, limits=limits or {},
        loose=True, check=nothing_failed, check_total=outage_is_spared if spared else None,
    )  # fmt: skip


_ALL = (KEYED, PROBED, KEYLESS)
SCENARIOS = (
    _outage("outage", "The tool refuses everything for five minutes.", steady, (KEYED,)),
    _outage(
        "outage-budget", "The same outage, with a retry budget and no breaker.", steady, (KEYED,),
        throttled=True, limits=NO_BREAKER,
    ),
    _outage(
        "outage-throttled", "The same outage, with retry budget and breaker.", steady, (KEYED,),
        throttled=True,
    ),
    _outage(
        "outage-unproven", "The tool answers a bare error for five minutes.",
        steady_without_proof, _ALL,
    ),
    _outage(
        "outage-unproven-throttled", "The same errors, with retry budget and breaker.",
        steady_without_proof, _ALL, throttled=True,
    ),
)  # fmt: skip
"""`nothing_failed` stands for the end of each: a keyless row of which nobody knows is parked."""
