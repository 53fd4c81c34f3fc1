"""What a scenario is, and how it is run: a script in a world, for kinds of tools, over ten seeds.

A scenario names the failure modes it shows, states its limits, and says for each kind of tool how
every intent has to end. May import `case` and `checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ...outbox.defaults import DEFAULTS
from ..tool_specs import ToolSpec
from .case import TOOL, Case
from .checks import broken, figures_of
from .figures import Figures, total
from .schedule import Schedule

SEEDS = range(1, 11)
KEYED, PROBED, KEYLESS, BOTH = "keyed", "probed", "keyless", "keyed and probed"
KINDS: dict[str, dict[str, Any]] = {
    KEYED: {"key": "idempotent"},
    PROBED: {"probe": "strong"},
    KEYLESS: {},
    BOTH: {"key": "idempotent", "probe": "strong"},
}
"""What the tool under test promises, by the name that the results use."""


_LIMITS = ("max_sends", "max_resends", "max_probes", "park_after_seconds")
_OTHER_LIMITS = ("call_limit_seconds", "settle_seconds", "key_window_seconds")
PLAIN_LIMITS: dict[str, Any] = {name: getattr(ToolSpec(TOOL), name) for name in _LIMITS}
"""Limits of a tool that every outcome hangs on, where a scenario does not set its own."""


@dataclass(frozen=True, slots=True)
class End:
    """How an intent has to end: state of its row, standing effects, requests at the tool."""

    state: str
    effects: int
    attempts: int | None = None
    """None: more than one number is right."""


COMMITTED = End("committed", 1)
ONCE = End("committed", 1, 1)
UNKNOWN = End("indeterminate", 1, 1)
"""Parked: it happened, and nothing that this tool offers can prove it."""
NEVER_SENT = End("cancelled", 0, 0)

Script = Callable[[Case], None]
Check = Callable[[Case, str], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. `ends` by kind of tool is also the list of kinds that it runs for."""

    name: str
    faults: tuple[str, ...]
    about: str
    script: Script
    ends: Mapping[str, End]
    intents: int = 6
    schedule: Schedule = field(default_factory=Schedule)
    tool: Mapping[str, Any] = field(default_factory=dict)
    """Options of the tool beside its kind: limits that are not the default."""
    others: tuple[ToolSpec, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    check: Check | None = None
    """Beside `ends`; where an intent has several right ends, `ends` holds the usual one."""
    check_total: Callable[[Figures], Iterator[str]] | None = None
    """Looks at the sum of all seeds."""
    throttled: bool = False
    """Every send asks budget and breaker first."""
    loose: bool = False
    """`ends` names the kinds only; `check` says how intents end."""

    def case(self, kind: str, seed: int) -> Case:
        """Return the world of one seed before anything has happened in it."""
        return Case(
            {**KINDS[kind], **self.tool},
            replace(self.schedule, seed=seed),
            limits=replace(DEFAULTS, **self.limits),
            others=self.others,
            intents=self.intents,
            throttled=self.throttled,
        )

    def stated_limits(self) -> dict[str, Any]:
        """Return the limits that this scenario sets, and those that its outcome hangs on."""
        own = {k: v for k, v in self.tool.items() if k in PLAIN_LIMITS or k in _OTHER_LIMITS}
        return {**PLAIN_LIMITS, **own, **self.limits}


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario with one kind of tool, over all its seeds."""

    scenario: Scenario
    kind: str
    seeds: int
    figures: Figures
    broken: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the result with stable keys."""
        return {
            "name": self.scenario.name,
            "faults": list(self.scenario.faults),
            "about": self.scenario.about,
            "tool": self.kind,
            "seeds": self.seeds,
            "limits": self.scenario.stated_limits(),
            **self.figures.as_dict(),
            "violations": len(self.broken),
            "broken": list(self.broken),
        }


def run_case(scenario: Scenario, kind: str, seed: int) -> Case:
    """Run one seed to its end and return the world as it stands then."""
    case = scenario.case(kind, seed)
    scenario.script(case)
    case.settle()
    return case


def complaints(scenario: Scenario, kind: str, case: Case) -> list[str]:
    """Return everything about a finished world that is not as it must be."""
    found = list(broken(case))
    if not scenario.loose:
        for step in case.intents:
            found += _differs(case, step, scenario.ends[kind])
    if scenario.check is not None:
        found += scenario.check(case, kind)
    return found


def _differs(case: Case, step: str, end: End) -> Iterator[str]:
    if case.state(step) != end.state:
        yield f"{step} ends {case.state(step)}, not {end.state}"
    if case.effects_of(step) != end.effects:
        yield f"{step} has {case.effects_of(step)} effects, not {end.effects}"
    if end.attempts is not None and case.tries(step) != end.attempts:
        yield f"{step} was sent {case.tries(step)} times, not {end.attempts}"


def run_scenario(scenario: Scenario, seeds: range = SEEDS) -> list[Result]:
    """Run a scenario for each of its kinds of tools."""
    return [_run_kind(scenario, kind, seeds) for kind in scenario.ends]


def _run_kind(scenario: Scenario, kind: str, seeds: range) -> Result:
    figures, found = [], list[str]()
    for seed in seeds:
        case = run_case(scenario, kind, seed)
        figures.append(figures_of(case))
        found += [f"seed {seed}: {text}" for text in complaints(scenario, kind, case)]
    summed = total(figures)
    if scenario.check_total is not None:
        found += scenario.check_total(summed)
    return Result(scenario, kind, len(seeds), summed, tuple(found))
