"""A planner that keeps a transaction open: the row that it has locked waits, nothing else does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine

from ackbox.outbox.intent import Intent

from .support import Bus, new_lane

pytestmark = pytest.mark.acceptance


@contextmanager
def _open_cancel(bus: Bus, intent: Intent) -> Iterator[None]:
    """Call a step off in a transaction that stays open, then roll it back."""
    engine = create_engine(bus.database.engine.url)
    try:
        with engine.connect() as connection:
            bus.planner.cancel(intent, on=connection)
            yield
            connection.rollback()
    finally:
        engine.dispose()


def test_a_locked_row_holds_up_no_other_outcome_of_its_worker(bus: Bus) -> None:
    """Hole 33 in a real worker: its answer waits for the lock, those behind it are recorded."""
    lane = new_lane("locked")
    bus.worker(lane)
    (locked,) = bus.put_many("keyless", lane, 1, slow_seconds=1.0)
    bus.wait_state(locked, "awaiting_ack")
    with _open_cancel(bus, locked):
        others = bus.put_many("keyless", lane, 10, slow_seconds=1.5)
        bus.wait_states(others, "committed", seconds=8)
        more = bus.put_many("keyless", lane, 5)
        bus.wait_states(more, "committed", seconds=8)
        assert bus.states([locked]) != ["committed"]
    bus.wait_state(locked, "committed")
    assert bus.effects(locked, *others, *more) == [1] * 16


def test_a_locked_step_holds_up_no_other_release(bus: Bus) -> None:
    """A held row whose step is locked by a planner waits alone; the others are adopted."""
    lane = new_lane("release")
    bus.worker(lane)
    firsts = bus.put_many("keyless", lane, 4, slow_seconds=1.5)
    bus.wait_states(firsts, "awaiting_ack")
    seconds = [bus.planner.supersede(first, 0) for first in firsts]
    with _open_cancel(bus, seconds[0]):
        bus.wait_states(firsts[1:], "committed", seconds=8)
        bus.wait_states(seconds[1:], "committed", seconds=8)
        assert bus.states([firsts[0], seconds[0]]) == ["awaiting_ack", "held"]
    bus.wait_states(seconds, "committed")


def test_a_locked_row_whose_call_overruns_stops_no_other_send(bus: Bus) -> None:
    """The heartbeat cannot move that row's `quiet_at` on; its process is no less alive for it."""
    lane = new_lane("overrun")
    gate = bus.folder / f"gate-{lane}"
    bus.worker(lane)
    overrun = bus.put("blocking", lane, gate=str(gate))
    bus.wait_state(overrun, "indeterminate")
    with _open_cancel(bus, overrun):
        for _ in range(4):
            others = bus.put_many("keyless", lane, 3, slow_seconds=0.5)
            bus.wait_states(others, "committed", seconds=8)
            assert not any(bus.events(other, "give_back") for other in others)
    gate.touch()
    bus.wait_state(overrun, "committed")
