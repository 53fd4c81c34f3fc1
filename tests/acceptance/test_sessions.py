"""What twenty workers hold in PostgreSQL while their calls run: few sessions, no transaction."""

import pytest
from sqlalchemy import RowMapping

from ..support.waiting import wait_until
from .support import Bus

pytestmark = pytest.mark.acceptance

WORKERS = 20
POOL_SIZE = 6


def test_no_transaction_is_open_during_calls(own_bus: Bus) -> None:
    """Case 131: claim and mark are committed before the call; sessions are few and idle."""
    bus = own_bus
    bus.roles()
    bus.workers([["main"]] * WORKERS, ACKBOX_IN_FLIGHT_MAX="2")
    intents, gate = bus.open_calls("main", 2 * WORKERS)
    held = _transactions(_sessions(bus))
    wait_until(lambda: not held & _transactions(_sessions(bus)), message="those have ended")
    wait_until(lambda: _hearts(bus) == WORKERS, message="each process has a heart of its own")
    assert WORKERS <= len(_sessions(bus)) <= WORKERS * (POOL_SIZE + 1)
    assert set(bus.states(intents)) == {"awaiting_ack"}
    gate.touch()
    bus.wait_states(intents, "committed")
    assert bus.effects(*intents) == [1] * len(intents)


def _sessions(bus: Bus) -> list[RowMapping]:
    """Look at the workers' sessions."""
    return bus.sql(
        "SELECT pid, xact_start, application_name AS name FROM pg_stat_activity"
        " WHERE datname = current_database()"
        " AND application_name IN ('ackbox worker', 'ackbox heartbeat')"
    )


def _transactions(sessions: list[RowMapping]) -> set[tuple[object, object]]:
    """Name the transactions that are open; one that a call kept would stay until the call ends."""
    return {(row["pid"], row["xact_start"]) for row in sessions if row["xact_start"]}


def _hearts(bus: Bus) -> int:
    return len([row for row in _sessions(bus) if "heartbeat" in row["name"]])
