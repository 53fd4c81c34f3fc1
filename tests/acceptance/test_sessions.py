"""What twenty workers hold in PostgreSQL while their calls run: few sessions, no transaction."""

import time

import pytest
from sqlalchemy import RowMapping

from ..support.waiting import wait_until
from .support import Bus
from .support_children import DEADLINE_SECONDS

pytestmark = pytest.mark.acceptance

WORKERS = 20
POOL_SIZE = 6
CALL_SECONDS = 4.0
STUCK_SECONDS = 2.0
"""Shorter than a call, longer than a busy machine keeps a client from its next statement."""


def test_no_transaction_is_open_during_calls(own_bus: Bus) -> None:
    """Case 131: claim and mark are committed before the call; sessions are few and idle."""
    bus = own_bus
    gate = bus.folder / "gate"
    bus.roles()
    bus.workers([["main"]] * WORKERS, ACKBOX_IN_FLIGHT_MAX="2")
    intents = bus.put_many("patient", "main", 2 * WORKERS, gate=str(gate))
    bus.wait_states(intents, "awaiting_ack", seconds=60)
    samples = _sample(bus)
    gate.touch()
    bus.wait_states(intents, "committed", seconds=60)
    assert _longest_idle_seconds(samples) < STUCK_SECONDS
    most = max(len(sample) for sample in samples)
    assert WORKERS <= most <= WORKERS * (POOL_SIZE + 1)
    beats = {r["pid"] for sample in samples for r in sample if "heartbeat" in r["name"]}
    assert len(beats) == WORKERS
    assert bus.effects(*intents) == [1] * len(intents)


def _sample(bus: Bus) -> list[list[RowMapping]]:
    """Look at the workers' sessions again and again for as long as a long call takes."""
    end_at = time.monotonic() + CALL_SECONDS
    samples: list[list[RowMapping]] = []

    def is_over() -> bool:
        samples.append(bus.sql(
            "SELECT pid, state, xact_start, application_name AS name, clock_timestamp() AS at"
            " FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name IN ('ackbox worker', 'ackbox heartbeat')"
        ))  # fmt: skip
        return time.monotonic() >= end_at

    wait_until(is_over, DEADLINE_SECONDS, "sampling ends", every_seconds=0.1)
    return samples


def _longest_idle_seconds(samples: list[list[RowMapping]]) -> float:
    """Return for how long one transaction was seen idle, at most."""
    ages = [
        (row["at"] - row["xact_start"]).total_seconds()
        for sample in samples
        for row in sample
        if row["state"].startswith("idle in transaction")
    ]
    return max(ages, default=0.0)
