"""A plan's callbacks on a bus in memory: in the bind, after it, and where nothing binds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import sessionmaker
from sqlalchemy.pool import StaticPool

from ackbox import AsyncBound, Bound, ConfigError, Plan, Tools
from ackbox.testing import MemoryBus

from ..support.memory_tools import charge, create_ticket, place_order, put_charge, put_order

TOOLS = Tools(create_ticket, charge, place_order)


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An application's own database, with a table of its own."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE done (step text)"))
    yield engine
    engine.dispose()


def rows(engine: Engine) -> list[str]:
    """Return what callbacks have written."""
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT step FROM done")).scalars())


def write(bound: Bound[Any]) -> None:
    """Write a row with the bind."""
    bound.session.execute(text("INSERT INTO done VALUES (:step)"), {"step": bound.intent.step})


def test_on_bound_commits_with_the_bind_and_puts_the_next_step(engine: Engine) -> None:
    """The row, the next step and the bind, all three; and the next step runs."""
    plan, results = Plan(), list[Any]()

    @plan.on_bound(place_order)
    def go_on(bound: Bound[str]) -> None:
        write(bound)
        results.append(bound.told.as_dict()["result"])
        bus.planner.put(charge.intent(cents=5), run_id="r1", step="pay", on=bound.session)

    with MemoryBus(TOOLS, plan, session_factory=sessionmaker(engine)) as bus:
        told = bus.planner.wait(put_order(bus), timeout_seconds=30, until="bound")
        assert (told.word, rows(engine), results) == ("committed", ["order"], ["lamp"])
        assert bus.planner.wait(("r1", "pay"), timeout_seconds=30).word == "committed"
        assert [effect.tool for effect in bus.effects()] == ["orders.place", "cards.charge"]


def test_an_on_bound_that_raises_undoes_the_bind_and_comes_again(engine: Engine) -> None:
    """Neither its row nor its put stays, and its error is on record by type alone."""
    plan, tries = Plan(), list[int]()

    @plan.on_bound("orders.place")
    def fail_twice(bound: Bound[Any]) -> None:
        write(bound)
        bus.planner.put(charge.intent(cents=5), run_id="r1", step="pay", on=bound.session)
        tries.append(len(tries))
        if len(tries) < 3:
            raise LookupError("secret")

    with MemoryBus(TOOLS, plan, session_factory=sessionmaker(engine)) as bus:
        intent = put_order(bus)
        bus.drain()
        assert (rows(engine), tries) == ([], [0])
        assert bus.planner.get(("r1", "pay")) is None
        assert bus.history(intent)[-1] == "bind_failed"
        bus.advance(600)
        assert (rows(engine), tries) == (["order"], [0, 1, 2])
        assert len(bus.effects(charge)) == 1


def test_on_bound_without_a_session_factory_says_what_to_give() -> None:
    """And the bind waits until there is one."""
    plan, said = Plan(), list[str]()

    @plan.on_bound(place_order)
    def ask(bound: Bound[str]) -> None:
        try:
            _ = bound.session
        except ConfigError as error:
            said.append(str(error))
            raise

    with MemoryBus(TOOLS, plan) as bus:
        intent = put_order(bus)
        bus.drain()
        assert "MemoryBus(..., session_factory=...)" in said[0]
        assert "bind_failed" in bus.history(intent)


def test_after_bound_comes_at_least_once() -> None:
    """What raised is called again; nothing is undone for it."""
    plan, seen = Plan(), list[str]()

    @plan.after_bound(charge)
    async def tell(bound: AsyncBound[int]) -> None:
        seen.append(bound.told.word)
        if len(seen) == 1:
            raise ConnectionError

    with MemoryBus(TOOLS, plan) as bus:
        intent = put_charge(bus)
        bus.drain()
        assert seen == ["committed"]
        bus.advance(120)
        assert seen == ["committed", "committed"]
        assert "hand_over_failed" in bus.history(intent)
        bus.advance(3600)
        assert len(seen) == 2


def test_on_told_hears_unknown_and_parked_and_puts_what_follows() -> None:
    """Each word once; a function for one tool comes before the one for any."""
    plan, heard = Plan(), list[tuple[str, str]]()

    @plan.on_told("unknown")
    async def unknown(bound: AsyncBound[Any]) -> None:
        heard.append(("unknown", bound.intent.tool))
        draft = charge.intent(cents=1)
        await bus.async_planner.put(draft, run_id="r1", step="fee", if_exists="keep")

    @plan.on_told("parked", tool=create_ticket)
    def not_called(bound: Bound[Any]) -> None:
        raise AssertionError("no ticket is opened here")

    @plan.on_told("parked")
    def parked(bound: Bound[Any]) -> None:
        heard.append(("parked", bound.intent.tool))

    with MemoryBus(TOOLS, plan) as bus:
        bus.answer(place_order, TimeoutError())
        put_order(bus)
        bus.advance(86_400)
        assert heard == [("unknown", "orders.place"), ("parked", "orders.place")]
        assert len(bus.effects(charge)) == 1


def test_on_told_that_raises_is_called_again() -> None:
    """As long as the word is true."""
    plan, tries = Plan(), list[int]()

    @plan.on_told("unknown")
    def fail_once(bound: Bound[Any]) -> None:
        tries.append(len(tries))
        if len(tries) == 1:
            raise LookupError

    with MemoryBus(TOOLS, plan) as bus:
        bus.answer(create_ticket, TimeoutError())
        bus.planner.put("tickets.create", {"title": "a", "due": "2027-05-01T12:00:00Z"},
                        intent_id="t1")  # fmt: skip
        bus.drain()
        assert tries == [0]
        bus.advance(600)
        assert tries == [0, 1]


def test_an_async_on_bound_gets_a_session_of_its_factory() -> None:
    """Its commit publishes what was put in it, on the callbacks' own loop."""
    plan = Plan()

    @plan.on_bound(place_order)
    async def go_on(bound: AsyncBound[str]) -> None:
        draft = charge.intent(cents=5)
        await bus.async_planner.put(draft, run_id="r1", step="pay", on=bound.session)
        assert await bus.async_planner.get(("r1", "pay")) is None

    with MemoryBus(TOOLS, plan, async_session_factory=AsyncSession) as bus:
        put_order(bus)
        bus.drain()
        assert [effect.tool for effect in bus.effects()] == ["orders.place", "cards.charge"]


def test_a_plan_hears_of_what_an_undo_has_ended() -> None:
    """compensated is told once the compensation has committed."""
    plan, heard = Plan(), list[str]()

    @plan.on_told("compensated")
    def compensated(bound: Bound[Any]) -> None:
        heard.append(str(bound.intent.step))

    with MemoryBus(TOOLS, plan) as bus:
        intent = put_order(bus)
        bus.drain()
        bus.people.undone(intent)
        bus.drain()
        assert heard == ["order"]
