"""SIGTERM in the middle of work: once for an orderly end, twice for a cold one."""

import signal
from pathlib import Path

import pytest

from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane

pytestmark = pytest.mark.acceptance


def _occupy(bus: Bus, lane: str) -> tuple[list[Intent], Intent, Path]:
    """Have the lane's worker hold two rows in executing and one call whose effect is there."""
    held = bus.put_many("gated", lane, 2, gate=str(bus.folder / f"gate-{lane}"))
    bus.wait_states(held, "executing")
    (called,), answered = bus.open_calls(lane, 1)
    return held, called, answered


def test_sigterm_finishes_what_is_sent_and_gives_back_the_rest(bus: Bus) -> None:
    """Case 11: no claim any more, the call in flight ends, unmarked rows go back, exit 0."""
    lane = new_lane("term")
    worker = bus.worker(lane)
    held, called, answered = _occupy(bus, lane)
    worker.signal(signal.SIGTERM)
    stopping = "warm shut down"
    wait_until(lambda: stopping in worker.output().lower(), DEADLINE_SECONDS, "it has heard")
    late = bus.put_many("keyless", lane, 3)
    answered.touch()
    bus.wait_state(called, "committed")
    (bus.folder / f"gate-{lane}").touch()
    assert worker.wait() == 0
    assert bus.states([*held, *late]) == ["queued"] * 5
    assert [event["reason"] for one in held for event in bus.events(one, "give_back")] == [
        "shutdown", "shutdown"
    ]  # fmt: skip
    bus.worker(lane)
    bus.wait_states([*held, *late], "committed")
    assert bus.effects(called, *held, *late) == [1] * 6
    assert bus.events(called, "expire") == []


def test_a_second_sigterm_is_a_crash_and_costs_as_little(bus: Bus) -> None:
    """Case 11: a cold end leaves no trace in RQ; unmarked rows commit, the sent one is unknown."""
    lane = new_lane("cold")
    worker = bus.worker(lane)
    held, called, answered = _occupy(bus, lane)
    worker.signal(signal.SIGTERM)

    def ended() -> bool:
        worker.signal(signal.SIGTERM)
        return worker.code is not None

    wait_until(ended, DEADLINE_SECONDS, "it ends cold", every_seconds=0.3)
    assert worker.code not in (0, None)
    (bus.folder / f"gate-{lane}").touch()
    bus.worker(lane)
    bus.wait_states(held, "committed")
    answered.touch()
    bus.wait_parked(called)
    assert bus.effects(called, *held) == [1, 1, 1]
