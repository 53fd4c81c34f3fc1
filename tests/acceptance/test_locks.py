"""A planner that keeps a transaction open: the row that it has locked waits, nothing else does."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine

from ackbox.outbox.intent import Intent

from ..support.waiting import wait_until
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


def _waits_for_a_lock(bus: Bus) -> bool:
    """Return whether a worker's statement is stopped by another transaction right now."""
    return bool(bus.sql(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database() AND application_name = 'ackbox worker'"
    ))  # fmt: skip


def test_a_locked_row_holds_up_no_other_outcome_of_its_worker(bus: Bus) -> None:
    """Hole 33 in a real worker: its answer waits for the lock, those behind it are recorded."""
    lane = new_lane("locked")
    bus.worker(lane)
    (locked,), gate = bus.open_calls(lane, 1)
    with _open_cancel(bus, locked):
        gate.touch()
        wait_until(lambda: _waits_for_a_lock(bus), message="its answer waits for the lock")
        others = bus.put_many("keyless", lane, 10)
        bus.wait_states(others, "committed")
        more = bus.put_many("keyless", lane, 5)
        bus.wait_states(more, "committed")
        assert bus.states([locked]) == ["awaiting_ack"]
    bus.wait_state(locked, "committed")
    assert bus.effects(locked, *others, *more) == [1] * 16


def test_a_locked_step_holds_up_no_other_release(bus: Bus) -> None:
    """A held row whose step is locked by a planner waits alone; the others are adopted."""
    lane = new_lane("release")
    bus.worker(lane)
    firsts, gate = bus.open_calls(lane, 4)
    seconds = [bus.planner.supersede(first, 0) for first in firsts]
    with _open_cancel(bus, seconds[0]):
        gate.touch()
        bus.wait_states(firsts[1:], "committed")
        bus.wait_states(seconds[1:], "committed")
        assert bus.states([firsts[0], seconds[0]]) == ["awaiting_ack", "held"]
    bus.wait_states(seconds, "committed")


def _wait_for_beats(bus: Bus, worker_id: object, count: int) -> None:
    """Wait until a worker has beaten that often."""
    beat = "SELECT beat_at FROM {s}.worker WHERE worker_id = :worker_id"
    seen = {bus.sql(beat, worker_id=worker_id)[0]["beat_at"]}

    def beaten() -> bool:
        seen.add(bus.sql(beat, worker_id=worker_id)[0]["beat_at"])
        return len(seen) > count

    wait_until(beaten, message="the worker beats on")


def test_a_locked_row_whose_call_overruns_stops_no_other_send(bus: Bus) -> None:
    """The heartbeat cannot move that row's `quiet_at` on; its process is no less alive for it."""
    lane = new_lane("overrun")
    gate = bus.folder / f"gate-{lane}"
    known = bus.worker_ids()
    bus.worker(lane)
    (worker_id,) = bus.worker_ids() - known
    overrun = bus.put("blocking", lane, gate=str(gate))
    bus.wait_state(overrun, "indeterminate")
    with _open_cancel(bus, overrun):
        for _ in range(4):
            _wait_for_beats(bus, worker_id, 2)
            others = bus.put_many("keyless", lane, 3)
            bus.wait_states(others, "committed")
            assert not any(bus.events(other, "give_back") for other in others)
    gate.touch()
    bus.wait_state(overrun, "committed")
