"""Workers of different deploys in one lane: each row is run by code that knows it, or is told why.

Two real processes at a time; effects are counted at the tool.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.intent import Intent
from ackbox.outbox.told import InFlight

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane, unique
from .support_versions import first, neighbour, second

pytestmark = pytest.mark.acceptance
PATIENT = {"unready_limit_seconds": 600.0}


@pytest.fixture
def deployed(own_bus: Bus) -> Callable[..., Any]:
    """Give a function that starts a worker of a lane with a deploy's tools."""
    own_bus.set_limits(**PATIENT)
    own_bus.roles("relay", "reaper", "consumer")
    return lambda lane, name: own_bus.worker(lane, ACKBOX_TOOLS=f"support_versions:{name}")


def put(bus: Bus, tool: Any, lane: str, **args: Any) -> Intent:
    """Put a call of one version of a tool."""
    draft = replace(tool.intent(**args), lane=lane)
    return bus.planner.put(draft, intent_id=unique(lane))


def result(bus: Bus, intent: Intent) -> Any:
    """Return the result of a committed row."""
    bus.wait_state(intent, "committed")
    return getattr(bus.planner.get(intent), "result", None)


def reason(bus: Bus, intent: Intent) -> str:
    """Return why a row is still under way."""
    told = bus.planner.get(intent)
    assert isinstance(told, InFlight), told
    return str(told.reason)


def wait_reason(bus: Bus, intent: Intent, words: str) -> None:
    """Wait until it is told so."""
    wait_until(lambda: words in reason(bus, intent), DEADLINE_SECONDS, words)


def test_a_new_row_waits_for_a_new_worker_and_says_so(own_bus: Bus, deployed: Any) -> None:
    """The old worker gives it back, never sends it, and never ends it by a count."""
    lane = new_lane("newer")
    worker = deployed(lane, "old")
    row = put(own_bus, second, lane, cents=700)
    wait_until(lambda: len(own_bus.events(row, "give_back")) >= 3, DEADLINE_SECONDS, "given back")
    wait_reason(own_bus, row, "no live worker has versioned version 2")
    assert {event["reason"] for event in own_bus.events(row, "give_back")} == {"no_worker_for_tool"}
    assert "tool_missing" in worker.output()
    old = put(own_bus, first, lane, euro=3)
    assert result(own_bus, old) == {"version": 1, "cents": 300}
    deployed(lane, "new")
    assert result(own_bus, row) == {"version": 2, "cents": 700}
    assert own_bus.effects(row, old) == [1, 1]


def test_a_new_worker_upgrades_old_rows(own_bus: Bus, deployed: Any) -> None:
    """Their stored arguments stay as they are; one effect each."""
    lane = new_lane("older")
    rows = [put(own_bus, first, lane, euro=n) for n in range(5)]
    deployed(lane, "new")
    results = [result(own_bus, row) for row in rows]
    assert results == [{"version": 2, "cents": 100 * n} for n in range(5)]
    assert own_bus.effects(*rows) == [1] * 5


def test_both_versions_in_one_process_serve_each_its_own(own_bus: Bus, deployed: Any) -> None:
    """No upgrade is asked where the row's own code is at hand."""
    lane = new_lane("both")
    rows = [put(own_bus, first, lane, euro=1), put(own_bus, second, lane, cents=1)]
    deployed(lane, "both")
    assert [result(own_bus, row)["version"] for row in rows] == [1, 2]
    assert own_bus.effects(*rows) == [1, 1]


def test_workers_of_one_lane_that_know_different_tools(own_bus: Bus, deployed: Any) -> None:
    """A row is given back once at most, then it is left to the worker that has its tool."""
    lane = new_lane("mixed")
    deployed(lane, "old")
    deployed(lane, "blunt")
    rows = [put(own_bus, first, lane, euro=n) for n in range(10)]
    rows += [put(own_bus, second, lane, cents=n) for n in range(10)]
    rows += [put(own_bus, neighbour, lane) for _ in range(10)]
    own_bus.wait_states(rows, "committed")
    assert own_bus.effects(*rows) == [1] * 30
    assert max(len(own_bus.events(row, "give_back")) for row in rows) <= 1


def test_a_worker_that_lacks_the_tool_leaves_it_alone(own_bus: Bus, deployed: Any) -> None:
    """The only worker of the lane has another tool: its own rows go on."""
    lane = new_lane("lacking")
    deployed(lane, "other")
    row = put(own_bus, first, lane, euro=1)
    wait_reason(own_bus, row, "no live worker has versioned")
    mine = put(own_bus, neighbour, lane)
    own_bus.wait_state(mine, "committed")
    assert own_bus.effects(row, mine) == [0, 1]
    deployed(lane, "old")
    assert result(own_bus, row) == {"version": 1, "cents": 100}


def test_a_failing_upgrade_ends_by_time_as_a_failing_build(own_bus: Bus, deployed: Any) -> None:
    """It is told meanwhile; nothing is sent; rows of the new version are no worse for it."""
    lane = new_lane("failing")
    own_bus.set_limits(unready_limit_seconds=4.0)
    deployed(lane, "broken")
    row = put(own_bus, first, lane, euro=1)
    fine = put(own_bus, second, lane, cents=5)
    own_bus.wait_state(fine, "committed")
    own_bus.wait_state(row, "failed")
    assert own_bus.events(row)[-1]["reason"] == "build_failed"
    assert len(own_bus.events(row, "give_back")) >= 2
    assert own_bus.effects(row, fine) == [0, 1]


def test_what_one_version_sent_no_other_version_sends_again(own_bus: Bus, deployed: Any) -> None:
    """Killed between effect and acknowledgement: parked, until its own version is back."""
    lane = new_lane("resent")
    worker = deployed(lane, "old")
    name = unique(lane)
    own_bus.plan("after_effect", name)
    draft = replace(first.intent(euro=2), lane=lane)
    row = own_bus.planner.put(draft, intent_id=name)
    worker.wait()
    deployed(lane, "new")
    newer = own_bus.start("roles", "reconciler", ACKBOX_TOOLS="support_versions:new")
    own_bus.wait_parked(row)
    assert (own_bus.row(row)["resends"], own_bus.row(row)["sends"]) == (0, 1)
    assert own_bus.effects(row) == [1]
    newer.end()
    own_bus.start("roles", "reconciler", ACKBOX_TOOLS="support_versions:both")
    own_bus.wait_state(row, "committed")
    assert own_bus.row(row)["resends"] == 1
    assert own_bus.effects(row) == [1]
