"""The headline workload: naive workers as published, ackbox without a duplicate and a dead one."""

from dataclasses import asdict
from typing import Any, TypeAlias

import pytest

from ackbox.sim.chaos.case import Case
from ackbox.sim.chaos.checks import broken, figures_of
from ackbox.sim.chaos.figures import Figures, total
from ackbox.sim.chaos.headline import (
    ARMS,
    INTENTS,
    SEEDS,
    SLUICE_PUBLISHED,
    headline,
    schedule_of,
    without_proof,
)
from ackbox.sim.chaos.schedule import ERROR, OK

Found: TypeAlias = dict[str, Any]
NAIVE = [(101, 87), (117, 93), (107, 85), (113, 98), (85, 72), (117, 92), (91, 82), (96, 84),
         (104, 86), (100, 87)]  # fmt: skip
ONE_READ = [(20, 2), (27, 5), (25, 7), (23, 4), (22, 2), (28, 5), (22, 6), (25, 3), (24, 5),
            (20, 4)]  # fmt: skip
UNTIL_ANSWERED = [24, 37, 34, 27, 26, 35, 28, 28, 31, 26]


@pytest.fixture(scope="module")
def results() -> Found:
    """Give the headline, run once."""
    return headline()


def arm(results: Found, name: str) -> Found:
    """Return one arm's totals."""
    found: Found = results["arms"][name]
    return found


def by_seed(results: Found, name: str, *members: str) -> list[Any]:
    """Return members of an arm's parts, seed by seed."""
    return [tuple(one[member] for member in members) for one in results["by_seed"][name]]


def test_naive_workers_are_as_published(results: Found) -> None:
    """Property: 714 deliveries, 1,031 attempts and 666 duplicates, seed by seed."""
    naive = arm(results, "naive")
    assert (naive["deliveries"], naive["attempts"], naive["duplicates"]) == (714, 1031, 666)
    assert by_seed(results, "naive", "attempts", "effects") == NAIVE


def test_a_tool_with_keys_resolves_everything(results: Found) -> None:
    """Property: 200 of 200, no duplicate, nobody's turn, and as many calls as the wire asks for."""
    keyed = arm(results, "ackbox_keyed")
    assert (keyed["resolved"], keyed["duplicates"], keyed["parked"]) == (200, 0, 0)
    assert (keyed["effects"], keyed["attempts"], keyed["failed"]) == (200, 296, 0)
    assert by_seed(results, "ackbox_keyed", "attempts") == [(one,) for one in UNTIL_ANSWERED]


def test_a_tool_that_can_be_asked_resolves_everything(results: Found) -> None:
    """Property: one read settles each unknown; the tool gets no second request for it."""
    probe = arm(results, "ackbox_probe")
    assert (probe["resolved"], probe["duplicates"], probe["parked"]) == (200, 0, 0)
    assert (probe["effects"], probe["failed"]) == (200, 0)
    assert by_seed(results, "ackbox_probe", "attempts", "reads") == ONE_READ


def test_a_tool_with_neither_is_never_sent_twice(results: Found) -> None:
    """Property: what is unknown is a person's turn, and nothing is dead."""
    keyless = arm(results, "ackbox_keyless")
    assert (keyless["resolved"], keyless["parked"], keyless["failed"]) == (157, 43, 0)
    assert (keyless["attempts"], keyless["effects"], keyless["duplicates"]) == (236, 200, 0)
    assert by_seed(results, "ackbox_keyless", "attempts", "parked") == ONE_READ


def test_nothing_is_broken_and_every_intent_is_counted(results: Found) -> None:
    """Property: resolved, parked and failed together are all intents, in every arm."""
    assert results["broken"] == []
    assert list(results["arms"]) == list(ARMS)
    for one in results["arms"].values():
        assert one["resolved"] + one["parked"] + one["failed"] == one["intents"] == 200


def test_refusals_without_proof_cost_a_person_and_no_duplicate() -> None:
    """Property: a bare 503 makes more unknowns of a keyless tool, never a second effect."""
    found = without_proof()
    assert found["broken"] == []
    assert [one["duplicates"] for one in found["arms"].values()] == [0, 0, 0]
    assert [one["resolved"] for one in found["arms"].values()][:2] == [200, 200]
    assert found["arms"]["ackbox_keyless"]["failed"] == 0
    assert found["arms"]["ackbox_keyless"]["parked"] > 43


def test_two_runs_are_equal(results: Found) -> None:
    """Property: nothing but the seeds decides."""
    assert headline() == results


def test_a_tool_that_ignores_keys_is_found_out() -> None:
    """The checks can fail: with a key that is promised and ignored, the resends are counted."""
    case = Case({"key": "idempotent", "honours_key": False, "echoes": True}, schedule_of(1))
    for intent in range(INTENTS):
        case.deliver("w1", case.put(intent))
    case.settle()
    assert figures_of(case).duplicates > 0
    assert any("one_effect_per_step" in text for text in broken(case))
    assert any(text.endswith("has 2 effects") for text in broken(case))


# -- sluice's figures ------------------------------------------------------------------------------


def sluice(seed: int) -> Figures:
    """Return what sluice's documented rules make of a seed.

    The first delivery makes all tries: up to three on errors, each retry for one token of a budget
    that begins at 3.0 and grows by 0.1 with each call it executes; a time-out parks.
    """
    schedule, tenths, figures = schedule_of(seed), 30, Figures()
    for number in range(INTENTS):
        name, tenths = f"intent-{number}", min(100, tenths + 1)
        tries, fault = 1, schedule.fault(f"intent-{number}", 1)
        while fault == ERROR and tries < 3 and tenths >= 10:
            tenths, tries = tenths - 10, tries + 1
            fault = schedule.fault(name, tries)
        landed = fault != ERROR
        figures += Figures(
            intents=1, deliveries=schedule.deliveries(name), attempts=tries, effects=landed,
            resolved=fault == OK, parked=landed and fault != OK, failed=not landed,
        )  # fmt: skip
    return figures


def test_the_other_systems_figures_follow_from_its_rules() -> None:
    """The data beside ours is what its published rules give on this schedule, failures included."""
    assert asdict(total(sluice(seed) for seed in SEEDS)) == asdict(SLUICE_PUBLISHED)
