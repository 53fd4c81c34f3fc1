"""Scenarios, goldens and fuzz: they cover every failure mode, and each of them can fail."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ackbox.sim.chaos import fuzz as fuzzing
from ackbox.sim.chaos.case import Case
from ackbox.sim.chaos.catalog import FAULTS, SCENARIOS
from ackbox.sim.chaos.figures import Figures
from ackbox.sim.chaos.fuzz import Mixture, mixture_of, run_mixture, shrink
from ackbox.sim.chaos.goldens import GOLDENS, run_golden
from ackbox.sim.chaos.scenario import (
    COMMITTED,
    KEYED,
    KEYLESS,
    KINDS,
    PROBED,
    End,
    Scenario,
    complaints,
    run_case,
    run_scenario,
)
from ackbox.sim.chaos.schedule import TIMEOUT, Schedule


def test_every_failure_mode_has_a_scenario() -> None:
    """Property: F1 to F18, none left out and none unknown."""
    shown = {fault for scenario in SCENARIOS for fault in scenario.faults}
    assert shown == set(FAULTS) == {f"F{number}" for number in range(1, 19)}


def test_every_scenario_states_its_limits() -> None:
    """Property: max_sends and what else an outcome hangs on stand beside the figures."""
    for scenario in (*SCENARIOS, *GOLDENS):
        limits = scenario.stated_limits()
        assert {"max_sends", "max_resends", "max_probes", "park_after_seconds"} <= set(limits)
    storm = replace(SCENARIOS[0], tool={"max_sends": 3}, limits={"max_claims": 2})
    assert (storm.stated_limits()["max_sends"], storm.stated_limits()["max_claims"]) == (3, 2)


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: f"golden-{golden.name}")
def test_a_golden_ends_as_pinned(golden: Scenario) -> None:
    """Property: effects, requests and states, for every kind of tool."""
    for kind in (KEYED, PROBED, KEYLESS):
        assert run_golden(golden, kind).broken == ()


def test_there_are_twenty_four_goldens() -> None:
    """Property: as many as there are published, numbered alike."""
    assert [golden.name for golden in GOLDENS] == [f"{number:02}" for number in range(1, 25)]


def one_delivery(case: Case) -> None:
    """Put and deliver each intent once."""
    for intent in range(case.planned):
        case.deliver("w1", case.put(intent))


def minted_anew(case: Case) -> None:
    """Have a planner take a new id on its time-out."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.apply(("ask_again", step, True))


def found_in(scenario: Scenario, kind: str) -> list[str]:
    """Return what is said about one seed of a scenario."""
    return complaints(scenario, kind, run_case(scenario, kind, 1))


def test_a_wrong_end_is_seen() -> None:
    """Each part of an end can fail: state, effects and requests."""
    wrong = Scenario("x", (), "", one_delivery, {KEYLESS: End("failed", 0, 2)}, intents=1)
    assert found_in(wrong, KEYLESS) == [
        "intent-0 ends committed, not failed",
        "intent-0 has 1 effects, not 0",
        "intent-0 was sent 1 times, not 2",
    ]


def test_a_second_effect_is_seen() -> None:
    """A planner that mints a new id on a time-out causes a duplicate, which is named."""
    planted = Scenario("x", (), "", minted_anew, {KEYLESS: COMMITTED}, intents=1)
    found = found_in(planted, KEYLESS)
    assert any("id was minted on a time-out" in text for text in found)
    assert "intent-0 has 2 effects" in found


def test_a_check_of_the_sum_is_asked() -> None:
    """A storm that sends too much, or completes too little, is a violation."""

    def never(figures: Figures) -> Iterator[str]:
        yield f"{figures.intents} intents are too many"

    planted = Scenario(
        "x", (), "", one_delivery, {KEYLESS: COMMITTED}, intents=2, check_total=never
    )
    (result,) = run_scenario(planted, range(1, 4))
    assert result.broken == ("6 intents are too many",)
    assert result.as_dict()["violations"] == 1


def test_a_script_says_what_it_saw() -> None:
    """What a script expects on its way is a violation where it differs."""

    def script(case: Case) -> None:
        step = case.put(0)
        case.expect(step, "held", "committed")
        case.refused("args_conflict", "ask_again", step)

    found = found_in(Scenario("x", (), "", script, {KEYLESS: COMMITTED}, intents=1), KEYLESS)
    assert found[:2] == [
        "intent-0 is queued where it has to be held",
        "intent-0 is told in_flight where it has to be committed",
    ]
    assert "was not refused" in found[2]


# -- fuzz ------------------------------------------------------------------------------------------


def test_mixtures_are_many_and_depend_on_the_seed_alone() -> None:
    """Property: every script and every kind of tool comes up in 200 seeds."""
    mixtures = [mixture_of(seed) for seed in fuzzing.SEEDS]
    assert mixtures == [mixture_of(seed) for seed in fuzzing.SEEDS]
    assert {one.script for one in mixtures} == set(fuzzing.SCRIPTS)
    assert {one.kind for one in mixtures} == set(KINDS)


def test_few_mixtures_are_cut_short() -> None:
    """Property: the scripts really run: faults take the next act from few of them."""
    cut = 0
    for seed in range(1, 61):
        mixture = mixture_of(seed)
        case = fuzzing.case_of(mixture)
        fuzzing.play(mixture, case)
        cut += any(name.startswith("cut short") for name in case.world.tally)
    assert cut <= 12


def test_the_weather_reaches_every_end() -> None:
    """Property: random acts commit, park, fail, cancel and undo; none of it twice."""
    figures = Figures()
    for seed in range(1, 61):
        one, found = run_mixture(Mixture(seed, fuzzing.ANY_WEATHER, KEYED, 3, undo="ref"))
        assert found == []
        figures += one
    assert figures.duplicates == 0
    ends = (figures.resolved, figures.parked, figures.cancelled, figures.compensated)
    assert all(count > 0 for count in ends)


def test_a_failing_mixture_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that ignores its keys is caught, and the pinned case is a single intent."""
    monkeypatch.setitem(KINDS, KEYED, {"key": "idempotent", "honours_key": False})
    large = Mixture(3, "timeout_then_success", KEYED, 4, (1, 3), 0.1, 0.9, (0.0, 0.4))
    assert run_mixture(large)[1]
    small = shrink(large, lambda smaller: bool(run_mixture(smaller)[1]))
    assert (small.intents, small.deliveries, small.latency) == (1, (1, 1), (0.0, 0.0))
    assert small.timeout_rate == 0.9


def test_a_request_that_a_script_moves_meets_its_schedule() -> None:
    """Property: `run` cannot slip past a planned fault."""
    case = Case({}, Schedule(overrides={1: TIMEOUT}))
    step = case.put(0)
    case.deliver("w1", step)
    case.carry("run", who="w1")
    assert (case.state(step), case.effects_of(step)) == ("indeterminate", 1)
