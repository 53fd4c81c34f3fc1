"""PostgreSQL restarted in the middle of calls: everything resumes by itself, nothing runs twice."""

import signal

import pytest

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.server import EmbeddedServer
from ackbox.outbox.intent import Intent

from ..support.waiting import wait_until
from .support import Bus
from .support_children import Child

pytestmark = pytest.mark.acceptance

LANES = ("left", "right")
SHORT_LEASE = {"claim_lease_seconds": 4.0, "prepare_limit_seconds": 3.0}
"""A claim whose commit was lost is nobody's until its lease ends."""


def _immediate_shutdown(server: EmbeddedServer) -> None:
    """End PostgreSQL as after a power cut; every session breaks at once."""
    server.record.process.send(signal.SIGQUIT)
    server.stop()  # It is ending already; this waits until it is gone.


def _put(bus: Bus) -> list[Intent]:
    return [one for lane in LANES for one in bus.put_many("keyless", lane, 30)]


def test_postgres_may_be_restarted_in_the_middle_of_calls(
    fragile_bus: Bus, private_services: EmbeddedServices
) -> None:
    """Cases 121, 125, 127: answers that came meanwhile are kept in memory and recorded after."""
    bus, server = fragile_bus, private_services.postgres
    bus.set_limits(**SHORT_LEASE)
    children = [bus.roles(), *bus.workers([LANES, LANES])]
    opened = [bus.open_calls(lane, 5) for lane in LANES]
    slow = [one for intents, _ in opened for one in intents]
    quick = _put(bus)
    _immediate_shutdown(server)
    for _, gate in opened:
        gate.touch()
    wait_until(lambda: _kept_answers(children), message="an answer could not be recorded")
    server.start()
    bus.wait_states(slow, "committed")
    bus.wait_states(quick, "committed", "indeterminate")
    more = _put(bus)
    bus.wait_states(more, "committed")
    assert [child.code for child in children] == [None] * 3
    _check_no_doubt(bus, slow, quick)
    assert bus.effects(*more) == [1] * 60


def _kept_answers(children: list[Child]) -> bool:
    """Return whether a worker has had an answer that it could not record."""
    return any("records_failed" in child.output() for child in children)


def _check_no_doubt(bus: Bus, slow: list[Intent], quick: list[Intent]) -> None:
    """Nothing ran twice; what was answered is known; a row in doubt may be one never sent."""
    assert bus.effects(*slow) == [1] * len(slow)
    assert {row["sends"] for row in bus.rows(slow)} == {1}
    counts = bus.effects(*quick)
    for intent, state, effects in zip(quick, bus.states(quick), counts, strict=True):
        assert effects == 1 or (effects, state) == (0, "indeterminate"), intent.intent_id


def test_a_worker_outlives_many_broken_sessions(
    fragile_bus: Bus, private_services: EmbeddedServices
) -> None:
    """Case 121: three restarts in a row while rows are put; 90 intents, 90 effects."""
    bus, server = fragile_bus, private_services.postgres
    bus.set_limits(**SHORT_LEASE)
    bus.roles()
    bus.workers([LANES, LANES])
    intents: list[Intent] = []
    for _ in range(3):
        intents += bus.put_many("keyed", LANES[0], 30)
        _immediate_shutdown(server)
        server.start()
    bus.wait_states(intents, "committed")
    assert bus.effects(*intents) == [1] * len(intents)
