"""A step that was superseded while its call was open: the late result is kept and never bound."""

import signal
from pathlib import Path
from typing import Any

import pytest

from ackbox.outbox.identity import wire_key
from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane, unique

pytestmark = pytest.mark.acceptance


def _effects(bus: Bus, intent: Intent) -> int:
    """Return the effects under the wire key of that generation."""
    key = wire_key(intent.namespace, intent.intent_id, intent.generation)
    return bus.provider.effects().get(key, 0)


def _opened(bus: Bus, lane: str) -> tuple[Intent, dict[str, Any], Path]:
    """Return a call that has had its effect, its arguments, and the file that ends it."""
    (intent,), gate = bus.open_calls(lane, 1, title="first")
    return intent, {"gate": str(gate), "title": "second"}, gate


def _wait_for_a_later_bind(bus: Bus, lane: str) -> None:
    """Have the consumer bind something that was settled after everything before."""
    later = bus.put("keyless", lane)
    told = bus.planner.wait(later, timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert told.word == "committed"
    wait_until(lambda: bus.row(later)["bound_at"] is not None, message="it is bound")


def test_the_same_call_again_adopts_the_late_effect(bus: Bus) -> None:
    """Case 151a: generation 1 waits, takes over the one effect, and alone is bound."""
    lane = new_lane("adopt")
    bus.worker(lane)
    first, _, gate = _opened(bus, lane)
    second = bus.planner.supersede(first, 0)
    assert bus.states([first, second]) == ["awaiting_ack", "held"]
    gate.touch()
    bus.wait_states([first, second], "committed")
    told = bus.planner.wait(second, timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert (told.word, told.generation) == ("committed", 1)
    assert bus.row(second)["adopted_from"] == first.seq
    assert bus.row(first)["bound_at"] is None
    assert (_effects(bus, first), _effects(bus, second)) == (1, 0)


def test_another_call_stays_held_while_the_late_effect_stands(bus: Bus) -> None:
    """Case 151b: nothing can undo it, so generation 1 waits for a person; nothing binds."""
    lane = new_lane("held")
    bus.worker(lane)
    first, other, gate = _opened(bus, lane)
    second = bus.planner.supersede(first, 0, other)
    gate.touch()
    bus.wait_state(first, "committed")
    _wait_for_a_later_bind(bus, lane)
    assert bus.states([first, second]) == ["committed", "held"]
    assert [row["bound_at"] for row in bus.rows([first, second])] == [None, None]
    assert (_effects(bus, first), _effects(bus, second)) == (1, 0)
    told = bus.planner.get(second)
    assert told is not None
    assert [other.generation for other in told.also_happened] == [0]


def test_another_call_is_sent_after_the_late_effect_was_undone(bus: Bus) -> None:
    """Case 151b: the tool can undo, so generation 0 is compensated first, then 1 is sent."""
    lane = new_lane("undo")
    bus.worker(lane, "default")
    (first,) = bus.put_many("undoable", lane, 1, slow_seconds=3.0, title="first")
    bus.wait_state(first, "awaiting_ack", "committed")
    second = bus.planner.supersede(first, 0, {"title": "second"})
    bus.wait_state(first, "compensated")
    bus.wait_state(second, "committed")
    told = bus.planner.wait(second, timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert (told.word, told.generation) == ("committed", 1)
    assert bus.row(first)["bound_at"] is None
    ledger = bus.provider.ask("/_ledger")
    assert ledger["undone"].get(first.intent_id) == 1
    assert (_effects(bus, first), _effects(bus, second)) == (1, 1)
    undone, sent = bus.events(first, "compensate"), bus.events(second, "send")
    assert undone[0]["at"] < sent[0]["at"]


def test_the_result_of_a_frozen_worker_is_stale_after_a_supersede(bus: Bus) -> None:
    """Cases 5, 151b: unknown, superseded, then proven by the zombie: kept, told, not bound."""
    lane = new_lane("ghost")
    name = unique(lane)
    bus.plan("after_effect", name, "stop")
    victim = bus.worker(lane)
    first = bus.put("keyless", lane, name, title="first")
    bus.wait_parked(first)
    second = bus.planner.supersede(first, 0, {"title": "second"})
    assert bus.states([second]) == ["held"]
    victim.signal(signal.SIGCONT)
    bus.wait_state(first, "committed")
    _wait_for_a_later_bind(bus, lane)
    assert bus.states([first, second]) == ["committed", "held"]
    assert bus.row(first)["bound_at"] is None
    assert (_effects(bus, first), _effects(bus, second)) == (1, 0)


def test_a_superseded_unknown_holds_the_next_generation(bus: Bus) -> None:
    """Case 151, indeterminate: generation 1 is not sent while generation 0 may have happened."""
    lane = new_lane("doubt")
    name = unique(lane)
    bus.provider.fault("drop_after_effect", name)
    bus.worker(lane)
    first = bus.put("keyless", lane, name)
    bus.wait_parked(first)
    second = bus.planner.supersede(first, 0)
    _wait_for_a_later_bind(bus, lane)
    assert bus.states([first, second]) == ["indeterminate", "held"]
    assert (_effects(bus, first), _effects(bus, second)) == (1, 0)
