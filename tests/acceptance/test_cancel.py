"""Cancels that race with real workers: called off with no effect, or sent with one, never both."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ackbox.outbox.errors import Refused
from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS
from .support import Bus, new_lane

pytestmark = pytest.mark.acceptance

RACES = 60


def _cancel(bus: Bus, intent: Intent) -> str:
    """Cancel; returns what was told, or the code of the refusal."""
    try:
        return bus.planner.cancel(intent).word
    except Refused as refused:
        return refused.code


def test_a_cancel_wins_whole_or_not_at_all(bus: Bus) -> None:
    """Case 153: against claim and mark; a cancelled row has no effect, a marked one runs on."""
    lane = new_lane("cancel")
    bus.workers([[lane], [lane]])
    start = threading.Barrier(2)
    intents = bus.put_many("keyless", lane, RACES)

    def cancel_every_second(offset: int) -> list[str]:
        start.wait(DEADLINE_SECONDS)
        return [_cancel(bus, intent) for intent in intents[offset::2]]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(cancel_every_second, (0, 1)))
    bus.wait_states(intents, "cancelled", "committed")
    states, effects = bus.states(intents), bus.effects(*intents)
    assert effects == [int(state == "committed") for state in states]
    for offset, told in enumerate(answers):
        for answer, state in zip(told, states[offset::2], strict=True):
            assert answer == "cancelled" or state == "committed", (answer, state)
            assert answer != "cancelled" or state == "cancelled", (answer, state)


def test_a_cancel_of_an_open_call_is_recorded_and_its_outcome_binds(bus: Bus) -> None:
    """Case 153, after the mark: no state moves, nothing is sent again, and the effect is told."""
    lane = new_lane("recorded")
    bus.worker(lane)
    (intent,), gate = bus.open_calls(lane, 1)
    assert _cancel(bus, intent) != "cancelled"
    assert bus.row(intent)["wanted"] is False
    gate.touch()
    told = bus.planner.wait(intent, timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert told.word == "committed"
    assert bus.effects(intent) == [1]


def test_a_cancel_of_a_row_in_executing_stops_the_mark(bus: Bus) -> None:
    """Case 153: the worker's mark finds the row called off and sends nothing."""
    lane = new_lane("stopped")
    gate = bus.folder / f"gate-{lane}"
    worker = bus.worker(lane)
    intent = bus.put("gated", lane, gate=str(gate))
    bus.wait_state(intent, "executing")
    assert _cancel(bus, intent) == "cancelled"
    gate.touch()
    assert worker.end() == 0
    assert bus.states([intent]) == ["cancelled"]
    assert bus.effects(intent) == [0]
