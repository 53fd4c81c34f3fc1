"""Calls that take longer than they may: unknown at the limit, and nobody else waits for them."""

from pathlib import Path

import pytest

from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import DEAD_AFTER_SECONDS, Bus, new_lane, unique
from .support_tools import BRIEF, NEAR

pytestmark = pytest.mark.acceptance
WRONG_SECONDS = 40.0


def _open(gate: Path) -> None:
    gate.touch()


def _call(bus: Bus, tool: str, fault: str) -> Intent:
    """Have a worker call the tool, which goes wrong for ten times the limit."""
    lane = new_lane(fault.replace("_", "-"))
    name = unique(lane)
    bus.provider.fault(fault, name, seconds=WRONG_SECONDS)
    bus.worker(lane)
    return bus.put(tool, lane, name)


def _check_ended_at_the_limit(bus: Bus, intent: Intent, event: str) -> None:
    limit = (NEAR if intent.tool == "keyed" else BRIEF)["call_limit_seconds"]
    wait_until(lambda: bus.events(intent, event), DEADLINE_SECONDS, "the answer is given up")
    (first, *_), (ended, *_) = bus.events(intent, "send"), bus.events(intent, event)
    seconds = (ended["at"] - first["at"]).total_seconds()
    assert limit - 0.1 < seconds < WRONG_SECONDS / 2


def test_a_dripped_answer_is_cut_off_at_the_call_limit(bus: Bus) -> None:
    """The limit is total, not per read; the cut answer is Unknown, and the key settles it."""
    intent = _call(bus, "keyed", "drip")
    _check_ended_at_the_limit(bus, intent, "lose")
    bus.wait_state(intent, "committed")
    assert bus.effects(intent) == [1]
    assert bus.row(intent)["resends"] == 1


def test_a_dripped_success_of_a_tool_without_echo_is_a_success(bus: Bus) -> None:
    """Such a tool's 2xx status is the proof: cut off at the limit, and no person is asked."""
    intent = _call(bus, "brief", "drip")
    _check_ended_at_the_limit(bus, intent, "acknowledge")
    assert bus.effects(intent) == [1]


def test_an_answer_that_does_not_come_is_unknown_at_the_limit(bus: Bus) -> None:
    """Effect, then silence: unknown when the limit passes, parked, never called a failure."""
    intent = _call(bus, "brief", "delay_after_effect")
    _check_ended_at_the_limit(bus, intent, "lose")
    bus.wait_parked(intent)
    assert bus.effects(intent) == [1]


def test_a_function_that_overruns_keeps_its_slot_and_its_evidence(bus: Bus, tmp_path: Path) -> None:
    """Unknown at the limit; not quiet while it runs; its slot stays taken; its return commits."""
    lane, gate = new_lane("overrun"), tmp_path / "gate"
    bus.worker(lane, ACKBOX_IN_FLIGHT_MAX="1")
    intent = bus.put("blocking", lane, gate=str(gate))
    bus.wait_state(intent, "indeterminate")
    waiting = bus.put("keyless", lane)
    _wait_pushed(bus, intent, times=3)
    assert bus.states([intent, waiting]) == ["indeterminate", "queued"]
    _open(gate)
    bus.wait_states([intent, waiting], "committed")
    assert bus.effects(intent, waiting) == [1, 1]
    assert bus.events(intent, "divergence") == []


def _wait_pushed(bus: Bus, intent: Intent, times: int) -> None:
    """Wait until the heartbeat has moved `quiet_at` on that often."""
    seen = {bus.row(intent)["quiet_at"]}

    def pushed() -> bool:
        seen.add(bus.row(intent)["quiet_at"])
        return len(seen) > times

    wait_until(pushed, DEADLINE_SECONDS, "quiet_at moves on")


def test_one_slow_lane_holds_up_no_other(bus: Bus, tmp_path: Path) -> None:
    """A lane whose slots are all taken by calls that do not end leaves every other lane alone."""
    slow, quick, gate = new_lane("slow"), new_lane("quick"), tmp_path / "gate"
    bus.worker(slow, quick, ACKBOX_IN_FLIGHT_MAX="2")
    stuck = bus.put_many("blocking", slow, 4, gate=str(gate))
    two_and_two = ["indeterminate"] * 2 + ["queued"] * 2
    wait_until(lambda: sorted(bus.states(stuck)) == two_and_two, message="the lane is full")
    intents = bus.put_many("keyless", quick, 20)
    bus.wait_states(intents, "committed")
    assert sorted(bus.states(stuck)) == two_and_two
    _open(gate)
    bus.wait_states(stuck, "committed")
    assert bus.effects(*stuck, *intents) == [1] * 24


def test_a_tool_that_hogs_the_interpreter_starves_no_heartbeat(bus: Bus) -> None:
    """Case 19: busy Python for twice the life of a silent process; its row is not taken."""
    lane = new_lane("hog")
    known = bus.worker_ids()
    bus.worker(lane)
    (owner,) = bus.worker_ids() - known
    intent = bus.put("hogging", lane, seconds=2 * DEAD_AFTER_SECONDS)
    bus.wait_state(intent, "awaiting_ack")
    ages: list[float] = []

    def is_over() -> bool:
        ages.append(_age_seconds(bus, str(owner)))
        return bus.states([intent]) != ["awaiting_ack"]

    wait_until(is_over, DEADLINE_SECONDS, "the function returns", every_seconds=0.1)
    assert max(ages) < DEAD_AFTER_SECONDS
    assert bus.states([intent]) == ["committed"]
    assert bus.events(intent, "expire") == []
    assert bus.effects(intent) == [1]


def _age_seconds(bus: Bus, worker_id: str) -> float:
    statement = (
        "SELECT extract(epoch FROM {s}.clock_now() - beat_at) AS age FROM {s}.worker"
        " WHERE worker_id = CAST(:worker_id AS uuid)"
    )
    (row,) = bus.sql(statement, worker_id=worker_id)
    return float(row["age"])
