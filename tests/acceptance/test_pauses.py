"""A worker that is frozen past its lease and then goes on, as after a long garbage collection.

SIGSTOP at a named point, until the row has moved on without it; SIGCONT; then SIGTERM, so that
whatever the zombie still wanted to do is over before effects are counted.
"""

import signal
from dataclasses import dataclass

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.intent import Intent
from ackbox.outbox.people import Said, Stated
from ackbox.outbox.shell.people_store import PeopleStore
from ackbox.outbox.shell.statements import Statements

from ..support.waiting import wait_until
from .support import Bus, new_lane, unique
from .support_children import Child

pytestmark = pytest.mark.acceptance


@dataclass
class Zombie:
    """A frozen worker: the row that froze it, and a lane that it alone serves."""

    bus: Bus
    process: Child
    intent: Intent
    own_lane: str

    def wake_and_end(self) -> None:
        """Let it go on, see it do new work, which comes after all that it was at; then end it."""
        self.process.signal(signal.SIGCONT)
        self.bus.wait_state(self.bus.put("keyless", self.own_lane), "committed")
        assert self.process.end() == 0


def _freeze(bus: Bus, point: str, tool: str, lane: str) -> Zombie:
    """Freeze a worker when it reaches a point with a new intent."""
    name, own_lane = unique(lane), new_lane("own")
    bus.plan(point, name, "stop")
    process = bus.worker(lane, own_lane)
    intent = bus.put(tool, lane, name)
    bus.wait_fired(point, name)
    return Zombie(bus, process, intent, own_lane)


@pytest.mark.parametrize("tool", ["keyless", "keyed"])
def test_a_zombie_before_its_mark_sends_nothing(tool: str, bus: Bus) -> None:
    """Cases 1b, 5, 19b, 23a, 161a: another worker sends; the zombie is refused, nobody asked."""
    lane = new_lane("zombie")
    zombie = _freeze(bus, "before_send", tool, lane)
    intent = zombie.intent
    bus.worker(lane)
    bus.wait_state(intent, "committed")
    zombie.wake_and_end()
    assert bus.effects(intent) == [1]
    row = bus.row(intent)
    assert (row["state"], row["sends"], row["fence"]) == ("committed", 1, 2)
    assert [event["fence"] for event in bus.events(intent, "send")] == [2]


def test_a_zombie_whose_row_is_not_taken_yet_sends_nothing(bus: Bus) -> None:
    """Case 23a: the lapsed row is queued while the zombie wakes; only a new claim may send it."""
    lane = new_lane("lonely")
    zombie = _freeze(bus, "before_send", "keyless", lane)
    intent = zombie.intent
    bus.wait_state(intent, "queued")
    zombie.wake_and_end()
    bus.worker(lane)
    bus.wait_state(intent, "committed")
    assert bus.effects(intent) == [1]
    (mark,) = bus.events(intent, "send")
    assert mark["fence"] == 2


@pytest.mark.parametrize("point", ["after_effect", "before_settle"])
def test_the_proof_of_a_zombie_is_kept(point: str, bus: Bus) -> None:
    """Cases 5, 19a: unknown and parked while it is frozen, committed by its late answer."""
    zombie = _freeze(bus, point, "keyless", new_lane("late"))
    intent = zombie.intent
    bus.wait_parked(intent)
    assert bus.effects(intent) == [1]
    zombie.wake_and_end()
    assert bus.row(intent)["state"] == "committed"
    assert bus.effects(intent) == [1]
    assert len(bus.events(intent, "acknowledge")) == 1
    assert bus.events(intent, "divergence") == []


def test_a_zombie_past_its_send_deadline_writes_nothing(bus: Bus) -> None:
    """Case 23b: frozen between mark and socket; the deadline stops the write, and that is proof."""
    lane = new_lane("deadline")
    zombie = _freeze(bus, "after_mark", "brief", lane)
    intent = zombie.intent
    bus.wait_parked(intent)
    assert bus.effects(intent) == [0]
    zombie.wake_and_end()
    # The woken process may claim the row anew before it ends: that send has a mark of its own.
    assert bus.events(intent, "clear.worker")
    bus.worker(lane)
    bus.wait_state(intent, "committed")
    assert bus.effects(intent) == [1]
    assert bus.row(intent)["sends"] == 1 + len(bus.events(intent, "clear.worker"))


def test_the_late_proof_of_a_zombie_and_a_resend_agree(bus: Bus) -> None:
    """Cases 5, 151: the reconciler's resend meets the tool's key; the zombie's answer agrees."""
    zombie = _freeze(bus, "after_effect", "keyed", new_lane("agree"))
    intent = zombie.intent
    bus.wait_state(intent, "committed")
    assert bus.row(intent)["resends"] == 1
    zombie.wake_and_end()
    assert bus.effects(intent) == [1]
    assert bus.events(intent, "divergence") == []


def test_a_frozen_worker_delays_no_other(bus: Bus) -> None:
    """Case 15: what a frozen process holds moves on within the bound for dead owners."""
    lane = new_lane("shared")
    zombie = _freeze(bus, "before_send", "keyless", lane)
    intent = zombie.intent
    others = bus.put_many("keyless", lane, 10)
    bus.worker(lane)
    bus.wait_states(others, "committed")
    bus.wait_state(intent, "committed")
    zombie.wake_and_end()
    assert bus.effects(intent, *others) == [1] * 11


def test_the_proof_of_a_zombie_stops_the_second_send_that_a_person_ordered(bus: Bus) -> None:
    """Case 161b: cleared by a person, claimed by one who dies, then proven under the old fence."""
    lane, name = new_lane("cleared"), unique("cleared")
    bus.plan("before_settle", name, "stop")
    bus.plan("before_send", name)
    zombie = bus.worker(lane)
    # The first attempt passes `before_send` on its way: only the second claim is to die of it.
    fired = bus.folder / f"fired-before_send-{name}"
    fired.touch()
    intent = bus.put("brief", lane, name)
    bus.wait_fired("before_settle", name)
    bus.wait_parked(intent)
    fired.unlink()
    _order_another_send(bus, intent)
    assert bus.worker(lane).wait() == -signal.SIGKILL
    # Heard as soon as it runs again, so that it claims nothing any more.
    zombie.signal(signal.SIGTERM)
    zombie.signal(signal.SIGCONT)
    assert zombie.wait() == 0
    row = bus.row(intent)
    assert (row["state"], row["sends"], row["fence"]) == ("committed", 1, 2)
    assert bus.effects(intent) == [1]


def _order_another_send(bus: Bus, intent: Intent) -> None:
    """Say that it did not land, once the row is quiet."""
    store = PeopleStore(bus.database, Statements("ackbox", DEFAULTS), DEFAULTS)
    said = Said(intent.seq, "ops", "seen nothing", bus.row(intent)["fence"])

    def taken() -> bool:
        return isinstance(store.not_landed(said, requeue=True), Stated)

    wait_until(taken, message="the statement is taken")
