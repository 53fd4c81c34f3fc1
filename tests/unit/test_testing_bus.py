"""The bus in memory, used as a test of an application uses it. Needs no server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import ackbox
from ackbox import Committed, ConfigError, InFlight, Tools
from ackbox.testing import MemoryBus

from ..support.memory_tools import (
    NOON,
    Ticket,
    charge,
    create_ticket,
    place_order,
    put_order,
)


@pytest.fixture
def bus() -> Iterator[MemoryBus]:
    """A bus with the three tools."""
    with MemoryBus([create_ticket, charge, place_order], now=NOON) as bus:
        yield bus


# -- the yardstick ---------------------------------------------------------------------------------


@ackbox.tool("mail.send")
def send_mail(call: ackbox.ToolCall, *, to: str) -> str:
    """Send a mail that nobody can look up."""
    return "250 queued"


def agent_step(planner: ackbox.Planner) -> str:
    """Do what an agent does with one call, and return what its model is told."""
    intent = planner.put(send_mail.intent(to="ops"), run_id="r9", step="mail")
    match planner.wait(intent, timeout_seconds=30):
        case Committed(result=answer):
            return answer
        case told:
            return told.for_model()


def test_an_agent_does_not_retry_an_unknown() -> None:
    """Ten lines without a server say what an agent does on an unknown, in 50 ms."""
    began = time.process_time()
    with MemoryBus(send_mail) as bus:
        bus.answer(send_mail, TimeoutError(), took_effect=True)
        said = agent_step(bus.planner)
        assert "Do not submit it again" in said
        assert agent_step(bus.planner) == said
        assert len(bus.effects(send_mail)) == 1
    assert time.process_time() - began < 0.05


# -- tools run, through the codec and the classify path --------------------------------------------


def test_a_tool_runs_and_its_result_is_read_as_annotated(bus: MemoryBus) -> None:
    """Arguments and results pass through the codec: a time comes back in UTC, a class as itself."""
    due = NOON.astimezone(tz=None)
    intent = bus.planner.put(create_ticket.intent(title="vpn", due=due), run_id="r1", step="open")
    told = bus.planner.wait(intent, timeout_seconds=30)
    assert isinstance(told, Committed)
    assert told.result == Ticket("T-vpn", NOON)
    (effect,) = bus.effects(create_ticket)
    assert (effect.args, effect.intent_id) == ({"title": "vpn", "due": NOON}, intent.intent_id)
    assert effect.wire_key == intent.wire_key


def test_what_a_caller_changes_after_the_put_is_not_sent(bus: MemoryBus) -> None:
    """Stored arguments are a copy, also where a tool is named by text."""
    sent: list[Any] = []
    bus.answer(place_order, lambda call, **args: sent.append(args))
    args = {"item": "lamp"}
    bus.planner.put("orders.place", args, intent_id="order-1")
    args["item"] = "desk"
    bus.drain()
    assert sent == [{"item": "lamp"}]


def test_nothing_happens_before_it_is_asked_for(bus: MemoryBus) -> None:
    """A put sends nothing; drain does, and no time passes with it."""
    intent = put_order(bus)
    assert isinstance(bus.told(intent), InFlight)
    assert bus.effects() == []
    bus.drain()
    assert isinstance(bus.told(intent), Committed)
    assert bus.now == NOON


def test_a_tool_that_nobody_has_is_told_of(bus: MemoryBus) -> None:
    """A wait ends with its time, in virtual time, and says why."""
    bus.planner.put("nobody.has", {}, run_id="r1", step="a")
    told = bus.planner.wait(("r1", "a"), timeout_seconds=3600)
    assert isinstance(told, InFlight)
    assert told.reason == "no live worker has nobody.has"
    assert bus.now >= NOON + timedelta(hours=1)


def test_lifespans_open_at_the_first_call_and_close_with_the_bus() -> None:
    """Resources are opened by what a worker process opens them with."""
    events: list[str] = []

    class Client:
        """A client that a lifespan opens."""

    def lifespan() -> Iterator[Client]:
        events.append("opened")
        yield Client()
        events.append("closed")

    @ackbox.tool("with.client")
    def use(call: ackbox.ToolCall) -> str:
        return type(call.resource(Client)).__name__

    with MemoryBus(Tools(use, lifespan=lifespan)) as bus:
        assert events == []
        intent = bus.planner.put(use.intent(), run_id="r1", step="a")
        told = bus.planner.wait(intent, timeout_seconds=1)
        assert isinstance(told, Committed)
        assert (told.result, events) == ("Client", ["opened"])
    assert events == ["opened", "closed"]


# -- planners --------------------------------------------------------------------------------------


def test_the_planners_are_the_shipped_ones(bus: MemoryBus) -> None:
    """An application sees no other class."""
    assert type(bus.planner) is ackbox.Planner
    assert type(bus.async_planner) is ackbox.AsyncPlanner


def test_an_async_planner_waits_without_blocking_its_loop(bus: MemoryBus) -> None:
    """Several waits at once share the bus, and each of them is told."""

    async def plan() -> list[str]:
        planner = bus.async_planner
        drafts = [planner.draft(charge.intent(cents=n), run_id="r1", step=f"s{n}") for n in (1, 2)]
        intents = await planner.put_many(drafts)
        told = await asyncio.gather(*(planner.wait(one, timeout_seconds=30) for one in intents))
        assert await planner.get(("r1", "nobody")) is None
        return [one.word for one in told]

    assert asyncio.run(plan()) == ["committed", "committed"]


def test_the_planners_other_calls_stand_on_the_same_rows(bus: MemoryBus) -> None:
    """Conflicts, cancels, later generations and time-outs, decided by the shipped rules."""
    intent = put_order(bus)
    with pytest.raises(ackbox.Refused, match="args_conflict"):
        bus.planner.put(place_order.intent(item="desk"), run_id="r1", step="order")
    assert not put_order(bus).created
    bus.planner.note_timeout(intent)
    later = bus.planner.supersede(("r1", "order"), 0, place_order.intent(item="desk"))
    assert (later.generation, later.created) == (1, True)
    assert bus.planner.cancel(("r1", "order")).word == "cancelled"
    assert bus.history(intent) == [
        "put", "planner_timeout", "withdraw.cancel", "supersede",
    ]  # fmt: skip
    bus.advance(60)
    assert bus.effects() == []


def test_a_refused_batch_leaves_nothing_behind(bus: MemoryBus) -> None:
    """All of put_many, or none of it."""
    put_order(bus, "a")
    drafts = [
        bus.planner.draft(place_order.intent(item="desk"), run_id="r1", step=step)
        for step in ("b", "a")
    ]
    with pytest.raises(ackbox.Refused):
        bus.planner.put_many(drafts)
    assert bus.planner.get(("r1", "b")) is None


def test_an_effect_is_undone_by_its_compensation() -> None:
    """A compensation is a call like any other, and its effect undoes the first one's."""

    @ackbox.tool("rooms.cancel")
    def cancel_room(call: ackbox.ToolCall, *, room: str) -> None:
        assert call.compensates is not None

    def undo(target: Any) -> Any:
        return cancel_room.intent(room=target.args["room"])

    @ackbox.tool("rooms.book", compensation=undo)
    def book_room(call: ackbox.ToolCall, *, room: str) -> ackbox.Applied[None]:
        return ackbox.Applied(ref=room)

    tools = Tools(cancel_room, book_room)
    with MemoryBus(tools) as bus:
        booked = bus.planner.put(book_room.intent(room="12"), run_id="r1", step="book")
        bus.planner.wait(booked, timeout_seconds=30)
        undone = bus.planner.compensate(booked, tools=tools)
        assert isinstance(undone, ackbox.Intent)
        bus.planner.wait(undone, timeout_seconds=60)
        bus.advance(60)
        told = bus.told(booked)
        assert told is not None
        assert told.word == "compensated"
        assert [one.undone for one in bus.effects()] == [True, False]


def test_draining_inside_a_tool_is_refused(bus: MemoryBus) -> None:
    """The bus is what called it: it would wait for itself."""
    raised: list[BaseException] = []

    def nested(call: ackbox.ToolCall, *, item: str) -> str:
        try:
            bus.drain()
        except ConfigError as error:
            raised.append(error)
        return str(bus.planner.get(("r1", "order")))

    bus.answer(place_order, nested)
    assert isinstance(bus.planner.wait(put_order(bus), timeout_seconds=30), Committed)
    assert "at work" in str(raised[0])


def test_tenants_stay_apart() -> None:
    """A bus of a namespace, and a put into another one, under one step name."""
    with MemoryBus(place_order, namespace="acme") as bus:
        own = put_order(bus)
        draft = place_order.intent(item="desk")
        theirs = bus.planner.put(draft, run_id="r1", step="order", namespace="globex")
        bus.drain()
        told = [bus.planner.get(one) for one in (own, theirs)]
        assert [getattr(one, "result", None) for one in told] == ["lamp", "desk"]
        assert [one.namespace for one in bus.effects()] == ["acme", "globex"]
        assert bus.history(("r1", "order"))[-1] == "acknowledge"


def test_tools_that_no_worker_would_start_with_are_refused() -> None:
    """A declaration that contradicts itself fails in the test already."""
    wrong = ackbox.tool("wrong", ensure_absent=True)(lambda call: None)
    with pytest.raises(ConfigError, match="wrong"):
        MemoryBus(wrong)


# -- importing -------------------------------------------------------------------------------------


def test_importing_starts_nothing() -> None:
    """No thread, no process, no socket and no fixture comes with the import."""
    script = """
import socket, subprocess, sys, threading
def no(*_, **__): raise AssertionError("started")
socket.socket.connect = socket.socket.bind = subprocess.Popen.__init__ = no
threading.Thread.start = no
import ackbox.testing
assert "pytest" not in sys.modules and "ackbox.app.embedded" not in sys.modules
assert set(ackbox.testing.__all__) <= set(dir(ackbox.testing))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
