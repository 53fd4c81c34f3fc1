"""SIGKILL of a worker at every named point, for each kind of tool: one effect, nothing lost.

All victims die at the same time, each alone on its lane, so that the waiting is done once. Beside
its target each victim holds a second row in executing, which must come back by itself.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane, unique
from .support_children import Child

pytestmark = pytest.mark.acceptance

POINTS = ("before_send", "after_mark", "after_effect", "before_settle", "after_settle")
TOOLS = ("keyless", "keyed", "probed")
CASES = [f"{point}-{tool}" for point, tool in product(POINTS, TOOLS)]
IN_DOUBT = {"after_mark", "after_effect", "before_settle"}


@dataclass
class Crime:
    """One victim, the row it died of, and the row it held in executing."""

    victim: Child
    lane: str
    point: str
    tool: str
    target: Intent
    held: Intent


@pytest.fixture(scope="module")
def crimes(shared_bus: Bus) -> Iterator[dict[str, Crime]]:
    """Kill one worker for each point and tool; then one worker serves all their lanes."""
    lanes = {f"{p}-{t}": new_lane(f"{p}-{t}") for p, t in product(POINTS, TOOLS)}
    victims = shared_bus.workers([[lane] for lane in lanes.values()])
    crimes = {
        case: _prepare(shared_bus, case, lane, victim)
        for (case, lane), victim in zip(lanes.items(), victims, strict=True)
    }
    for crime in crimes.values():
        shared_bus.wait_state(crime.held, "executing")
        shared_bus.plan(crime.point, crime.target.intent_id)
        crime.target = shared_bus.put(crime.tool, crime.lane, crime.target.intent_id)
    for crime in crimes.values():
        assert crime.victim.wait() == -signal.SIGKILL
        (shared_bus.folder / f"gate-{crime.lane}").touch()
    rescuer = shared_bus.worker(*[crime.lane for crime in crimes.values()])
    yield crimes
    rescuer.kill()


def _prepare(bus: Bus, case: str, lane: str, victim: Child) -> Crime:
    point, tool = case.split("-")
    held = bus.put("gated", lane, gate=str(bus.folder / f"gate-{lane}"))
    target = Intent(0, "default", unique(lane), 0, tool, lane)
    return Crime(victim, lane, point, tool, target, held)


@pytest.mark.parametrize("case", CASES)
def test_the_row_of_a_killed_worker_ends_with_one_effect(
    case: str, crimes: dict[str, Crime], shared_bus: Bus
) -> None:
    """Cases 9b, 9c, 11, 15, 49: at most one effect; only a keyless unknown needs a person."""
    crime = crimes[case]
    if crime.tool == "keyless" and crime.point in IN_DOUBT:
        shared_bus.wait_parked(crime.target)
        _check_parked(shared_bus, crime)
    else:
        shared_bus.wait_state(crime.target, "committed")
        assert shared_bus.effects(crime.target) == [1]


def _check_parked(bus: Bus, crime: Crime) -> None:
    """The expiry is told as unknown, once, and is never called a failure."""
    assert bus.effects(crime.target) == [0 if crime.point == "after_mark" else 1]
    assert len(bus.events(crime.target, "expire")) == 1
    told = bus.planner.get(crime.target)
    assert told is not None
    assert told.word == "unknown"


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("before_send")])
def test_a_row_without_a_mark_is_redelivered_by_itself(
    case: str, crimes: dict[str, Crime], shared_bus: Bus
) -> None:
    """Case 11a: one lapse, one send; whatever the tool declares, no person is asked."""
    target = crimes[case].target
    shared_bus.wait_state(target, "committed")
    row = shared_bus.row(target)
    assert (row["sends"], row["resends"]) == (1, 0)
    assert [event["name"] for event in shared_bus.events(target)].count("lapse") == 1
    assert shared_bus.events(target, "park") == []


@pytest.mark.parametrize("case", CASES)
def test_what_the_victim_held_in_executing_commits_elsewhere(
    case: str, crimes: dict[str, Crime], shared_bus: Bus
) -> None:
    """Case 15: the victim's unmarked row goes back to the queue and is sent once, by another."""
    held = crimes[case].held
    shared_bus.wait_state(held, "committed")
    assert shared_bus.row(held)["sends"] == 1
    assert shared_bus.effects(held) == [1]
    owners = {event["actor_name"] for event in shared_bus.events(held, "claim")}
    assert len(owners) == 2


@pytest.mark.parametrize("tool", TOOLS)
def test_a_committed_row_whose_ring_was_lost_is_bound(
    tool: str, crimes: dict[str, Crime], shared_bus: Bus
) -> None:
    """Case 137: the observation is a row, so a token that was never rung only delays the bind."""
    target = crimes[f"after_settle-{tool}"].target
    shared_bus.wait_state(target, "committed")
    told = shared_bus.planner.wait(target, timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert told.word == "committed"
    wait_until(lambda: shared_bus.row(target)["bound_at"] is not None, message="it is bound")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_worker_killed_while_the_tool_works_leaves_one_effect(tool: str, bus: Bus) -> None:
    """Case 9c: bytes are out and the effect comes after the death; still there is only one."""
    lane = new_lane("midway")
    name = unique(lane)
    bus.provider.fault("delay_before_effect", name, seconds=3.0)
    victim = bus.worker(lane)
    intent = bus.put(tool, lane, name)
    wait_until(lambda: _was_taken(bus, name), DEADLINE_SECONDS, "the tool has the request")
    assert bus.row(intent)["state"] == "awaiting_ack"
    victim.kill()
    bus.worker(lane)
    if tool == "keyless":
        bus.wait_parked(intent)
    else:
        bus.wait_state(intent, "committed")
    wait_until(lambda: bus.effects(intent) == [1], message="the effect is there")


def _was_taken(bus: Bus, name: str) -> bool:
    """Return whether the planned fault has met its request."""
    rules = bus.provider.ask("/_faults")["rules"]
    return any(rule["wire_key"] == name and rule["seen"] for rule in rules)
