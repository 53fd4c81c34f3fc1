"""Wall clocks that are five minutes wrong: every lease is the database's, so nothing happens.

Processes run under Debian's `faketime`, which lies to them about the date and leaves alone the
monotonic clocks that no machine sets.
"""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ackbox.outbox.intent import Intent

from ..integration.valkey_process import ValkeyProcess
from ..support.waiting import wait_until
from .support import Bus
from .support_children import Nursery

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(
        shutil.which("faketime") is None,
        reason="the command faketime is missing (Debian: apt-get install faketime)",
    ),
]


@pytest.fixture(scope="module", params=[5, -5], ids=["ahead", "behind"])
def wrong(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    """Give a nursery whose children live five minutes ahead or behind."""
    shift = ("faketime", "-f", f"{request.param:+d}m")
    nursery = Nursery(shift, FAKETIME_DONT_FAKE_MONOTONIC="1")
    yield nursery
    nursery.close()


def test_a_worker_and_a_reaper_with_a_wrong_clock_take_nothing(
    wrong: Nursery, own_bus: Bus, tmp_path: Path
) -> None:
    """Case 17: leases of a healthy worker stay, whatever the clock of those who judge them."""
    bus, gate = own_bus, tmp_path / "gate"
    bus.set_limits(claim_lease_seconds=600.0)
    bus.roles("relay")
    bus.worker("main")
    held, called = _open_rows(bus, gate)
    bus.roles(nursery=wrong)
    shifted = bus.worker("main", nursery=wrong)
    others = bus.put_many("keyless", "main", 10)
    bus.wait_states(others, "committed")
    assert bus.states([held, called]) == ["executing", "awaiting_ack"]
    gate.touch()
    bus.wait_states([held, called], "committed")
    assert {row["attempts"] for row in bus.rows([held, called, *others])} == {1}
    assert bus.effects(held, called, *others) == [1] * 12
    assert shifted.code is None


def _open_rows(bus: Bus, gate: Path) -> tuple[Intent, Intent]:
    """Have the one worker hold one row in executing and one whose effect has happened."""
    held = bus.put("gated", "main", gate=str(gate))
    called = bus.put("patient", "main", gate=str(gate))
    bus.wait_state(held, "executing")
    # The mark is committed before the request leaves: a kill before the effect leaves none.
    bus.wait_effect(called)
    return held, called


def test_a_dead_worker_is_found_on_time_by_a_wrong_clock(
    wrong: Nursery, own_bus: Bus, tmp_path: Path
) -> None:
    """Case 17: executing goes back to the queue and awaiting_ack becomes unknown, by the beat."""
    bus, gate = own_bus, tmp_path / "gate"
    bus.set_limits(claim_lease_seconds=600.0)
    bus.roles(nursery=wrong)
    victim = bus.worker("main")
    held, called = _open_rows(bus, gate)
    assert bus.states([called]) == ["awaiting_ack"]
    victim.kill()
    # Sooner than the lease of its claim ends, which is the database's, too.
    bus.wait_state(held, "queued")
    bus.wait_parked(called)
    gate.touch()
    bus.worker("main", nursery=wrong)
    bus.wait_state(held, "committed")
    assert bus.effects(held, called) == [1, 1]


def test_the_clock_of_these_processes_is_wrong(
    wrong: Nursery, own_bus: Bus, valkey: ValkeyProcess
) -> None:
    """The tests above mean something: RQ notes a worker's birth by the worker's own clock."""
    own_bus.worker("main", nursery=wrong)
    key = wait_until(lambda: valkey.client.smembers("rq:workers"), message="it is listed").pop()
    birth = valkey.client.hget(key, "birth")
    assert isinstance(birth, bytes)
    born = datetime.fromisoformat(birth.decode())
    (row,) = own_bus.sql("SELECT {s}.clock_now() AS now")
    away = (row["now"] - born.replace(tzinfo=UTC)).total_seconds()
    assert 240 < abs(away) < 360
