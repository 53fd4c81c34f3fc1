"""What a test may have the tools of a bus in memory do, and what becomes of it with time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import ackbox
import ackbox.tool_adapters.contract as ackbox_contract
from ackbox import (
    Committed,
    CommittedNoResult,
    ConfigError,
    Failed,
    InFlight,
    NotApplied,
    UnknownOutcome,
)
from ackbox.outbox.contract import ToolContract
from ackbox.testing import HttpAnswer, MemoryBus
from ackbox.tool_adapters.http_json import HttpJsonTool

from ..support.memory_tools import (
    NOON,
    charge,
    create_ticket,
    place_order,
    put_charge,
    put_order,
)


@pytest.fixture
def bus() -> Iterator[MemoryBus]:
    """A bus with the three tools."""
    with MemoryBus([create_ticket, charge, place_order], now=NOON) as bus:
        yield bus


# -- answers ---------------------------------------------------------------------------------------


def test_an_unknown_of_a_keyed_tool_is_sent_again_under_its_key(bus: MemoryBus) -> None:
    """One effect, whichever of the two it was: the tool keeps the key that it declares."""
    for took_effect in (True, False, None):
        bus.answer(charge, ConnectionResetError(), took_effect=took_effect)
        intent = put_charge(bus, f"charge-{took_effect}")
        told = bus.planner.wait(intent, timeout_seconds=300)
        assert isinstance(told, Committed)
        assert "resend" in bus.history(intent)
    assert len(bus.effects(charge)) == 3


def test_a_probe_finds_what_the_answer_said_took_effect(bus: MemoryBus) -> None:
    """Found commits, Absent sends again, and where nobody knows a person is asked."""
    bus.answer(place_order, TimeoutError(), took_effect=True)
    assert bus.planner.wait(put_order(bus, "a"), timeout_seconds=900).word == "committed"
    assert len(bus.effects(place_order)) == 1
    bus.answer(place_order, TimeoutError(), took_effect=False)
    assert bus.planner.wait(put_order(bus, "b"), timeout_seconds=900).word == "committed"
    assert len(bus.effects(place_order)) == 2
    bus.answer(place_order, TimeoutError())
    told = bus.planner.wait(put_order(bus, "c"), timeout_seconds=86_400)
    assert isinstance(told, UnknownOutcome)
    assert len(bus.effects(place_order)) == 2


@pytest.mark.parametrize(
    ("answer", "word", "effects"),
    [
        (NotApplied("out of stock"), "failed", 0),
        (NotApplied("come again", transient=True), "committed", 1),
        (ackbox.Applied(ref="O-1", result="desk"), "committed", 1),
        (ackbox.Unknown("who knows"), "unknown", 0),
        ("desk", "committed", 1),
        (lambda call, *, item: item.upper(), "committed", 1),
        (ValueError, "unknown", 0),
    ],
)
def test_what_an_answer_may_be(bus: MemoryBus, answer: Any, word: str, effects: int) -> None:
    """Errors, outcomes, values and functions, each of them classified as a real tool's end is."""
    bus.answer(place_order, answer)
    told = bus.planner.wait(put_order(bus), timeout_seconds=86_400)
    assert (told.word, len(bus.effects())) == (word, effects)


def test_answers_are_taken_in_order_and_the_rest_always() -> None:
    """times counts sends; None answers whatever has no other answer."""
    with MemoryBus(place_order) as bus:
        bus.answer(place_order, "always", times=None)
        bus.answer("orders.place", "first", times=2)
        intents = [put_order(bus, f"s{n}") for n in range(4)]
        bus.drain()
        told = [bus.told(intent) for intent in intents]
        assert [getattr(one, "result", None) for one in told] == [
            "first", "first", "always", "always",
        ]  # fmt: skip


def test_answers_that_cannot_be_are_refused(bus: MemoryBus) -> None:
    """An outcome speaks for itself, a tool must be there, and once is the least."""
    with pytest.raises(ConfigError, match="says by itself"):
        bus.answer(place_order, ackbox.Applied(), took_effect=False)
    with pytest.raises(ConfigError, match="no tool nobody"):
        bus.answer("nobody.has", 1)
    with pytest.raises(ConfigError, match="1 or more"):
        bus.answer(place_order, 1, times=0)
    with pytest.raises(ConfigError, match="before_send, after_mark"):
        bus.crash("at_noon")


def test_a_tool_that_speaks_http_has_to_be_answered_for() -> None:
    """No request leaves a bus in memory; answers pass through the tool's own adapter."""
    tool = HttpJsonTool(tool="helpdesk.open", url="https://helpdesk.invalid/tickets")
    with MemoryBus(tool) as bus:
        intents = [bus.planner.put("helpdesk.open", {}, intent_id=f"i{n}") for n in range(4)]
        with pytest.raises(ConfigError, match="has no network"):
            bus.drain()
        bus.answer(tool, HttpAnswer(201, {"id": "H-1"}))
        bus.answer(tool, HttpAnswer(422, {"code": "invalid"}))
        bus.answer(tool, TimeoutError())
        bus.answer(tool, lambda request: HttpAnswer(201, {"id": request.method}))
        bus.drain()
        bus.advance(120)
        told = [bus.told(intent) for intent in intents]
        assert [one.word for one in told if one] == ["committed", "failed", "unknown", "committed"]
        assert len(bus.effects()) == 2


class Drafting(ackbox_contract.BaseAdapter):
    """An adapter that opens a draft before it sends it off."""

    contract = ToolContract("letters.send")

    def prepare(self, call: Any, answers: Any) -> Any:
        """Ask for a draft, and keep its number."""
        if not answers:
            return ackbox_contract.HttpRequest("POST", "https://letters.invalid/drafts")
        return ackbox_contract.Prepared(answers[0].body.decode())

    def encode(self, call: Any, handle: Any) -> ackbox_contract.HttpRequest:
        """Send the draft off."""
        return ackbox_contract.HttpRequest("PUT", f"https://letters.invalid/drafts/{handle}")

    def classify(self, call: Any, evidence: Any, follow_ups: Any) -> Any:
        """Take any answer for a success."""
        return ackbox.Applied(ref=evidence.body.decode())


def test_what_stands_answers_reads_as_well() -> None:
    """A tool that prepares its effect by harmless requests of its own."""
    with MemoryBus(Drafting()) as bus:
        bus.answer(
            "letters.send", lambda request: HttpAnswer(200, 7 if request.method == "POST" else 8),
            times=None,
        )  # fmt: skip
        intent = bus.planner.put("letters.send", {}, intent_id="letter-1")
        told = bus.planner.wait(intent, timeout_seconds=30)
        assert isinstance(told, CommittedNoResult | Committed)
        assert told.ref == "8"
        assert len(bus.effects()) == 1


# -- crashes and time ------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before_send", "after_mark", "after_effect", "before_settle"])
def test_a_worker_that_dies_has_one_effect_at_a_keyed_tool(bus: MemoryBus, point: str) -> None:
    """Its lease lapses, and what it left behind is settled by the key."""
    bus.crash(point, charge)
    intent = put_charge(bus)
    bus.drain()
    assert isinstance(bus.told(intent), InFlight)
    bus.advance(600)
    assert isinstance(bus.told(intent), Committed)
    assert len(bus.effects(charge)) == 1


def test_a_worker_that_dies_after_the_mark_leaves_an_unknown_to_a_person(bus: MemoryBus) -> None:
    """A tool without key and probe has nobody else who could tell; a person can."""
    bus.answer(create_ticket, NotApplied("never asked for this one"))
    bus.crash("after_effect", "tickets.create")
    intent = bus.planner.put(create_ticket.intent(title="vpn", due=NOON), run_id="r1", step="open")
    bus.advance(3600)
    assert isinstance(bus.told(intent), UnknownOutcome)
    bus.people.not_landed(intent)
    bus.drain()
    assert isinstance(bus.told(intent), Failed)
    assert bus.history(intent)[-3:] == ["expire", "parked", "refuse.person"]


def test_deadlines_and_gates_wait_for_the_virtual_clock(bus: MemoryBus) -> None:
    """Nothing is sent before it is approved, and what is late is called off."""
    held = bus.planner.put(
        place_order.intent(item="lamp"), run_id="r1", step="held", held_for="large_orders"
    )
    late = bus.planner.put(
        place_order.intent(item="lamp"), run_id="r1", step="late",
        not_before=NOON + timedelta(hours=2), deadline=NOON + timedelta(hours=1),
    )  # fmt: skip
    bus.advance(4000)
    assert [one.word for one in map(bus.told, (held, late)) if one] == [
        "awaiting_approval", "cancelled",
    ]  # fmt: skip
    bus.people.approve(held)
    assert isinstance(bus.planner.wait(held, timeout_seconds=60), Committed)


def test_a_word_that_comes_too_early_says_how_far_to_advance(bus: MemoryBus) -> None:
    """In a test there is no command line to look at: virtual time has to pass."""
    bus.answer(place_order, TimeoutError())
    unknown = put_order(bus)
    bus.drain()
    with pytest.raises(ackbox.Refused, match="not_quiet") as refused:
        bus.people.landed(unknown, "O-1")
    step = refused.value.next_step or ""
    assert step.startswith("bus.advance(")
    bus.advance(float(step.removeprefix("bus.advance(").rstrip(")")))
    bus.people.landed(unknown, "O-1")
    assert isinstance(bus.told(unknown), CommittedNoResult)


def test_what_people_say_is_judged_by_the_shipped_rules(bus: MemoryBus) -> None:
    """What settles an unknown, what a gate keeps back, and what nobody may say."""
    bus.answer(place_order, TimeoutError())
    unknown = put_order(bus)
    with pytest.raises(ackbox.Refused, match="not_found"):
        bus.people.landed(("r1", "nobody"), "O-1")
    bus.advance(86_400)
    bus.people.landed(unknown, "O-1")
    told = bus.told(unknown)
    assert told is not None
    assert (told.word, told.as_dict()["ref"]) == ("committed", "O-1")
    with pytest.raises(ackbox.Refused):
        bus.people.not_landed(unknown)
    draft = place_order.intent(item="desk")
    held = bus.planner.put(draft, run_id="r1", step="held", held_for="large_orders")
    bus.people.reject(held)
    with pytest.raises(ackbox.Refused):
        bus.people.approve(held)
    bus.drain()
    told = bus.told(held)
    assert told is not None
    assert told.word == "cancelled"
    assert bus.effects() == []


def test_a_release_over_an_effect_must_say_that_it_may_duplicate(bus: MemoryBus) -> None:
    """Then there are two effects, and both are told."""
    put_order(bus)
    bus.drain()
    later = bus.planner.supersede(("r1", "order"), 0, place_order.intent(item="desk"))
    bus.advance(3600)
    with pytest.raises(ackbox.Refused, match="earlier_generation"):
        bus.people.release(later)
    bus.people.release(later, may_duplicate=True)
    bus.drain()
    told = bus.told(later)
    assert isinstance(told, Committed)
    assert len(told.also_happened) == 1
    assert [effect.generation for effect in bus.effects()] == [0, 1]


def test_time_does_not_run_backwards(bus: MemoryBus) -> None:
    """Neither by a negative number nor by one that is none."""
    for seconds in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="backwards"):
            bus.advance(seconds)


def test_one_seed_gives_one_run() -> None:
    """Two buses with one seed do the same things at the same times."""

    def run(seed: int) -> list[Any]:
        with MemoryBus(place_order, seed=seed, now=NOON) as bus:
            bus.answer(place_order, NotApplied("later", transient=True), times=3)
            intent = put_order(bus)
            told = bus.planner.wait(intent, timeout_seconds=9000)
            return [told.word, bus.now, bus.history(intent)]

    assert run(7) == run(7)
    assert run(7) != run(8)
