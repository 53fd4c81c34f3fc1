"""A store that waits: locked tables, large rows, a process in doubt about its own heartbeat."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import create_engine, text

from ackbox.outbox.shell.notify import channel_name

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import DEAD_AFTER_SECONDS, Bus, new_lane

pytestmark = pytest.mark.acceptance


@contextmanager
def _locked(bus: Bus, table: str, mode: str) -> Iterator[None]:
    """Keep a table locked in a transaction of the test's own."""
    engine = create_engine(bus.database.engine.url)
    try:
        with engine.connect() as connection:
            name = f"{bus.database.quoted_schema}.{table}"
            connection.execute(text(f"LOCK TABLE {name} IN {mode} MODE"))
            yield
            connection.rollback()
    finally:
        engine.dispose()


def _silence_seconds(bus: Bus, worker_id: object) -> float:
    """Return how old the newest beat of a worker is."""
    statement = (
        "SELECT extract(epoch FROM {s}.clock_now() - beat_at) AS age FROM {s}.worker"
        " WHERE worker_id = :worker_id"
    )
    return float(bus.sql(statement, worker_id=worker_id)[0]["age"])


def test_a_worker_whose_statements_all_wait_beats_on(own_bus: Bus) -> None:
    """Case 21: the heart has a session of its own, and what waited is recorded afterwards."""
    bus = own_bus
    bus.roles()
    bus.worker("main")
    (worker_id,) = bus.worker_ids()
    called, gate = bus.open_calls("main", 5)
    with _locked(bus, "intent_state", "ACCESS EXCLUSIVE"):
        gate.touch()
        seen: set[object] = set()

        def beaten() -> bool:
            found = bus.sql("SELECT beat_at FROM {s}.worker WHERE worker_id = :w", w=worker_id)
            seen.add(found[0]["beat_at"])
            return len(seen) > 10

        wait_until(beaten, message="the worker beats on")
    bus.wait_states(called, "committed")
    assert all(bus.events(one, "expire") == [] for one in called)
    assert bus.effects(*called) == [1] * 5


def test_a_worker_that_cannot_beat_sends_nothing(own_bus: Bus) -> None:
    """Case 21: silent for most of its life, it gives the unmarked row back instead of sending."""
    bus = own_bus
    bus.roles("relay")
    bus.worker("main")
    (worker_id,) = bus.worker_ids()
    gate = bus.folder / "gate"
    held = bus.put("gated", "main", gate=str(gate))
    bus.wait_state(held, "executing")
    with _locked(bus, "worker", "EXCLUSIVE"):
        silent = 0.75 * DEAD_AFTER_SECONDS
        wait_until(lambda: _silence_seconds(bus, worker_id) > silent, message="it is in doubt")
        gate.touch()
        wait_until(lambda: bus.events(held, "give_back"), message="the row is given back")
        assert (bus.row(held)["sends"], bus.effects(held)) == (0, [0])
    bus.wait_state(held, "committed")
    assert (bus.row(held)["sends"], bus.effects(held)) == (1, [1])


def test_large_rows_are_put_and_their_notification_is_the_lane(bus: Bus) -> None:
    """Case 45: arguments of 7,999, 8,000 and 9,000 bytes; a ring carries the lane and no more."""
    lane = new_lane("large")
    bus.worker(lane)
    empty = len(json.dumps({"body": ""}, separators=(",", ":")))
    with bus.database.listen_connection() as listener:
        listener.execute(f'LISTEN "{channel_name(bus.database.schema)}"'.encode())
        intents = [
            bus.put("keyless", lane, body="x" * (size - empty)) for size in (7_999, 8_000, 9_000)
        ]
        heard = next(
            one.payload
            for one in listener.notifies(timeout=DEADLINE_SECONDS)
            if lane in one.payload
        )
    assert heard == lane
    bus.wait_states(intents, "committed")
    assert bus.effects(*intents) == [1, 1, 1]
