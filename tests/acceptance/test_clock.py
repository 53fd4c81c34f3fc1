"""Wall clocks that are five minutes wrong: every lease is the database's, so nothing happens.

Processes run under Debian's `faketime`, which lies to them about the date and leaves alone the
monotonic clocks that no machine sets.
"""

import os
import shutil
import signal
from pathlib import Path

import pytest

from ackbox.outbox.intent import Intent

from .support import Bus, unique

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("faketime") is None,
        reason="the command faketime is missing (Debian: apt-get install faketime)",
    ),
]

MONOTONIC_STAYS = {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def _shifted(minutes: int) -> tuple[str, ...]:
    return ("faketime", "-f", f"{minutes:+d}m")


def _clock_of(bus: Bus, log_of: str) -> None:
    assert log_of in bus.children[-1].output()


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_worker_and_a_reaper_with_a_wrong_clock_take_nothing(
    minutes: int, own_bus: Bus, tmp_path: Path
) -> None:
    """Case 17: leases of a healthy worker stay, whatever the clock of those who judge them."""
    bus, gate = own_bus, tmp_path / "gate"
    bus.worker("main")
    held, called = _open_rows(bus, gate)
    bus.roles(prefix=_shifted(minutes), **MONOTONIC_STAYS)
    bus.worker("main", prefix=_shifted(minutes), **MONOTONIC_STAYS)
    others = bus.put_many("keyless", "main", 10)
    bus.wait_states(others, "committed")
    assert bus.states([held, called]) == ["executing", "awaiting_ack"]
    gate.touch()
    bus.wait_states([held, called], "committed")
    for intent in (held, called, *others):
        assert [event["name"] for event in bus.events(intent)].count("claim") == 1
    assert bus.effects(held, called, *others) == [1] * 12


def _open_rows(bus: Bus, gate: Path) -> tuple[Intent, Intent]:
    """Have the first worker hold one row in executing and one in awaiting_ack."""
    name = unique("main")
    bus.provider.fault("delay_before_effect", name, seconds=1.8)
    held = bus.put("gated", "main", gate=str(gate))
    bus.wait_state(held, "executing")
    bus.start("roles", "relay")
    called = bus.put("keyless", "main", name)
    bus.wait_state(called, "awaiting_ack")
    return held, called


@pytest.mark.parametrize("minutes", [5, -5])
def test_a_dead_worker_is_found_on_time_by_a_wrong_clock(
    minutes: int, own_bus: Bus, tmp_path: Path
) -> None:
    """Case 17: executing goes back to the queue and awaiting_ack becomes unknown, in seconds."""
    bus = own_bus
    bus.roles(prefix=_shifted(minutes), **MONOTONIC_STAYS)
    known = bus.worker_ids()
    bus.worker("main", prefix=_shifted(-minutes), **MONOTONIC_STAYS)
    (victim,) = bus.worker_ids() - known
    name = unique("main")
    bus.provider.fault("delay_before_effect", name, seconds=1.8)
    held = bus.put("gated", "main", gate=str(tmp_path / "gate"))
    called = bus.put("keyless", "main", name)
    bus.wait_state(held, "executing")
    bus.wait_state(called, "awaiting_ack")
    _kill_incarnation(bus, str(victim))
    bus.wait_state(held, "queued", seconds=10)
    bus.wait_state(called, "indeterminate", seconds=10)
    (tmp_path / "gate").touch()
    bus.worker("main", prefix=_shifted(minutes), **MONOTONIC_STAYS)
    bus.wait_state(held, "committed")
    bus.wait_parked(called)
    assert bus.effects(held, called) == [1, 1]


def _kill_incarnation(bus: Bus, worker_id: str) -> None:
    """SIGKILL the process itself: the command `faketime` may stand in front of it."""
    statement = "SELECT pid FROM {s}.worker WHERE worker_id = CAST(:worker_id AS uuid)"
    (row,) = bus.sql(statement, worker_id=worker_id)
    os.kill(row["pid"], signal.SIGKILL)
