"""Rows that kill, rows that cannot be built, rows that nobody knows: their neighbours go on."""

import pytest

from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import LIMITS, Bus, new_lane, unique
from .support_children import Child

pytestmark = pytest.mark.acceptance


def _deaths(pool: Child) -> int:
    return pool.output().count("ended (-9)")


def _reason(bus: Bus, intent: Intent) -> str:
    """Return why a row was refused."""
    return str(bus.events(intent)[-1]["reason"])


def _put_together(bus: Bus, lane: str, *calls: tuple[str, dict[str, str]]) -> list[Intent]:
    """Put calls of several tools in one transaction, so that one claim takes them all."""
    drafts = [
        bus.planner.draft(tool, args, intent_id=unique(lane), lane=lane) for tool, args in calls
    ]
    return bus.planner.put_many(drafts)


def test_a_row_that_kills_its_worker_ends_and_its_neighbours_commit(bus: Bus) -> None:
    """Case 9a: a real pool loses a process for each of a few claims, then the row is refused."""
    lane = new_lane("poison")
    gate = bus.folder / f"gate-{lane}"
    # A call in flight at a later kill is in doubt for a moment; its key settles it.
    innocent = ("gated_keyed", {"gate": str(gate)})
    poison, *innocents = _put_together(bus, lane, ("poison", {}), *[innocent] * 4)
    pool = bus.start("pool", "2", lane, ACKBOX_LANES=lane)
    wait_until(lambda: bus.events(poison, "lapse"), DEADLINE_SECONDS, "the first death is seen")
    gate.touch()
    bus.wait_state(poison, "failed")
    bus.wait_states(innocents, "committed")
    assert _reason(bus, poison) == "poisoned"
    assert _deaths(pool) == LIMITS["max_claims"] + 1
    assert bus.effects(poison, *innocents) == [0, 1, 1, 1, 1]
    after = bus.put("keyless", lane)
    bus.wait_state(after, "committed")
    assert pool.end() == 0


def test_a_killed_process_of_a_pool_costs_only_what_it_held(bus: Bus) -> None:
    """Case 15: the marked row becomes unknown, the unmarked ones commit, the pool goes on."""
    lane = new_lane("pool")
    gate = bus.folder / f"gate-{lane}"
    doomed = unique(lane)
    bus.plan("after_effect", doomed)
    held = bus.put_many("gated", lane, 2, gate=str(gate))
    pool = bus.start("pool", "1", lane, ACKBOX_LANES=lane)
    bus.wait_states(held, "executing")
    marked = bus.put("keyless", lane, doomed)
    bus.wait_parked(marked)
    gate.touch()
    bus.wait_states(held, "committed")
    assert _deaths(pool) == 1
    assert bus.effects(marked, *held) == [1, 1, 1]
    assert pool.end() == 0


def test_rows_that_cannot_be_sent_do_not_block_their_lane(bus: Bus) -> None:
    """Case 47: an unknown tool and unbuildable args wait, then fail; the three behind commit."""
    lane = new_lane("stuck")
    bad, fine = ("nobody.knows", {"x": "1"}), ("keyless", {"x": "1"})
    unknown, broken, *rest = _put_together(bus, lane, bad, ("strict", {}), fine, fine, fine)
    bus.worker(lane)
    bus.wait_states(rest, "committed")
    assert not set(bus.states([unknown, broken])) & {"awaiting_ack", "committed"}
    bus.wait_states([unknown, broken], "failed")
    assert _reason(bus, unknown) == "no_worker_for_tool"
    assert _reason(bus, broken) == "build_failed"
    assert bus.effects(unknown, broken, *rest) == [0, 0, 1, 1, 1]
    for intent in (unknown, broken):
        told = bus.planner.get(intent)
        assert told is not None
        assert told.word == "failed"
