"""Puts on a bus in memory inside the application's own transactions, on SQLite and on none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import StaticPool

import ackbox
from ackbox import Committed, ConfigError, Intent, Refused
from ackbox.testing import MemoryBus, puts

from ..support.memory_tools import NOON, charge, create_ticket, place_order


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An application's own database, with a table of its own."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE steps (name text)"))
    yield engine
    engine.dispose()


@pytest.fixture
def bus() -> Iterator[MemoryBus]:
    """A bus with a few tools."""
    with MemoryBus([create_ticket, charge, place_order], now=NOON) as bus:
        yield bus


def put(bus: MemoryBus, on: Any, step: str = "a", item: str = "lamp") -> Intent[str]:
    """Put an order in a transaction."""
    return bus.planner.put(place_order.intent(item=item), run_id="r1", step=step, on=on)


def visible(bus: MemoryBus, *steps: str) -> list[bool]:
    """Return which of the steps others can see."""
    return [bus.planner.get(("r1", step)) is not None for step in steps]


def test_a_put_is_there_at_the_commit(bus: MemoryBus, engine: Engine) -> None:
    """With the application's rows, and not before."""
    with Session(engine) as session, session.begin():
        session.execute(text("INSERT INTO steps VALUES ('a')"))
        intent = put(bus, session)
        assert intent.created
        assert visible(bus, "a") == [False]
        assert bus.planner.get(intent, on=session) is not None
        bus.drain()
        assert bus.effects() == []
        with pytest.raises(Refused, match="not_committed"):
            bus.planner.wait(intent, timeout_seconds=1)
    assert bus.planner.get(intent) is not None
    assert isinstance(bus.planner.wait(intent, timeout_seconds=1), Committed)
    stored = bus.planner.put(place_order.intent(item="lamp"), run_id="r1", step="a")
    assert (stored.seq, stored.created) == (intent.seq, False)


def test_a_put_is_gone_with_the_rollback(bus: MemoryBus, engine: Engine) -> None:
    """By an error, by rollback, and by a session that is closed without a word."""
    with Session(engine) as session, suppress(ZeroDivisionError), session.begin():
        put(bus, session)
        raise ZeroDivisionError
    session = Session(engine)
    put(bus, session, "b")
    session.rollback()
    put(bus, session, "c")
    session.close()
    session.commit()
    bus.drain()
    assert visible(bus, "a", "b", "c") == [False, False, False]
    put(bus, session, "d")
    session.commit()
    assert visible(bus, "a", "b", "c", "d") == [False, False, False, True]


def test_a_savepoint_takes_only_its_own_puts_along(bus: MemoryBus, engine: Engine) -> None:
    """Released inside one that is rolled back, a put is gone too."""
    with Session(engine) as session, session.begin():
        put(bus, session, "outer")
        with session.begin_nested():
            put(bus, session, "released")
        nested = session.begin_nested()
        with session.begin_nested():
            put(bus, session, "inner")
        put(bus, session, "nested")
        nested.rollback()
        assert [one.intent.step for one in puts(session)] == ["outer", "released"]
        assert visible(bus, "outer", "released") == [False, False]
    assert visible(bus, "outer", "released", "inner", "nested") == [True, True, False, False]


def test_a_bare_connection_is_heard_as_well(bus: MemoryBus, engine: Engine) -> None:
    """Commit, rollback, savepoint and close of a Connection."""
    with engine.connect() as connection:
        with connection.begin():
            put(bus, connection, "a")
            assert visible(bus, "a") == [False]
            nested = connection.begin_nested()
            with connection.begin_nested():
                put(bus, connection, "inner")
            nested.rollback()
        assert visible(bus, "a", "inner") == [True, False]
        put(bus, connection, "b")
        connection.rollback()
        put(bus, connection, "c")
        connection.commit()
        put(bus, connection, "d")
    assert visible(bus, "a", "b", "c", "d") == [True, False, True, False]


def test_planner_transaction_takes_the_application_s_engine(bus: MemoryBus, engine: Engine) -> None:
    """There is no other engine, and that is said."""
    with bus.planner.transaction(engine) as connection:
        put(bus, connection)
    assert visible(bus, "a") == [True]
    with pytest.raises(ConfigError, match="no database of its own"), bus.planner.transaction():
        pass


def test_what_on_takes(bus: MemoryBus, engine: Engine) -> None:
    """Sessions by way of their registry too; a driver's own connection says nothing of its end."""
    registry = scoped_session(sessionmaker(engine))
    put(bus, registry, "a")
    registry.commit()
    registry.remove()
    assert visible(bus, "a") == [True]
    for no in (psycopg.Connection.__new__(psycopg.Connection), engine, object()):
        with pytest.raises(ConfigError, match=r"on= of a memory bus takes"):
            put(bus, no, "b")


def test_two_transactions_may_not_want_one_step(bus: MemoryBus, engine: Engine) -> None:
    """On Postgres the second would wait; here it is told, and nothing of it is kept."""
    with Session(engine) as first, Session(engine) as second:
        put(bus, first)
        for on in (second, None):
            with pytest.raises(ConfigError, match="another open transaction"):
                put(bus, on)
        first.rollback()
        assert put(bus, second).created
        second.commit()
    assert visible(bus, "a") == [True]


def test_puts_of_two_transactions_keep_their_numbers(bus: MemoryBus, engine: Engine) -> None:
    """What another transaction commits in between moves no intent to another number."""
    with Session(engine) as first, Session(engine) as second:
        early = put(bus, first, "early")
        late = put(bus, second, "late")
        alone = put(bus, None, "alone")
        second.commit()
        first.commit()
    again = [put(bus, None, step) for step in ("early", "late", "alone")]
    assert [one.seq for one in again] == [early.seq, late.seq, alone.seq]
    assert len({one.seq for one in again}) == 3


def test_a_conflict_is_raised_at_the_put(bus: MemoryBus, engine: Engine) -> None:
    """Against what is stored and against the transaction's own; keep answers with it."""
    put(bus, None)
    with Session(engine) as session:
        with pytest.raises(Refused, match="args_conflict"):
            put(bus, session, item="desk")
        put(bus, session, "own")
        with pytest.raises(Refused, match="args_conflict"):
            put(bus, session, "own", item="desk")
        kept = bus.planner.put(
            place_order.intent(item="desk"), run_id="r1", step="own", on=session, if_exists="keep"
        )
        assert not kept.created
        session.commit()
    assert visible(bus, "own") == [True]


def test_changes_of_a_stored_step_must_be_ended_before_work_goes_on(
    bus: MemoryBus, engine: Engine
) -> None:
    """On Postgres the row's lock would hold the worker back; a cancel is seen at its commit."""
    intent = put(bus, None)
    with Session(engine) as session:
        assert bus.planner.cancel(intent, on=session).word == "cancelled"
        with pytest.raises(ConfigError, match="open transaction changes"):
            bus.drain()
        session.rollback()
        bus.planner.cancel(intent, on=session)
        session.commit()
    bus.drain()
    assert bus.effects() == []
    told = bus.told(intent)
    assert told is not None
    assert told.word == "cancelled"


def test_puts_shows_what_a_transaction_has_put(bus: MemoryBus, engine: Engine) -> None:
    """By tool, in order, with the arguments as the tool will get them."""
    with Session(engine) as session:
        assert puts(session) == []
        draft = create_ticket.intent(title="vpn", due=NOON)
        bus.planner.put(draft, run_id="r1", step="open", on=session)
        put(bus, session)
        (one,) = puts(session, create_ticket)
        assert (one.intent.step, one.args) == ("open", {"title": "vpn", "due": NOON})
        assert [one.intent.tool for one in puts(session)] == ["tickets.create", "orders.place"]
        assert puts(session, "tickets.create")[0].args["due"] == "2027-05-01T12:00:00Z"
        session.commit()
        assert puts(session) == []
    with pytest.raises(ConfigError, match="session or connection"):
        puts("r1")  # type: ignore[arg-type]


def test_an_async_session_is_joined(bus: MemoryBus) -> None:
    """The put is there at its commit and gone with its rollback."""

    async def plan() -> None:
        planner, draft = bus.async_planner, place_order.intent(item="lamp")
        async with AsyncSession() as session:
            async with session.begin():
                intent = await planner.put(draft, run_id="r1", step="a", on=session)
                assert [one.intent.intent_id for one in puts(session)] == [intent.intent_id]
                assert await planner.get(intent) is None
            assert await planner.get(intent) is not None
            await planner.put(draft, run_id="r1", step="b", on=session)
            await session.rollback()
            assert await planner.get(("r1", "b")) is None
        with pytest.raises(ConfigError, match="on= of a memory bus takes"):
            await planner.put(draft, run_id="r1", step="c", on=Session())  # type: ignore[arg-type]

    asyncio.run(plan())


def test_a_session_inside_a_test_s_own_transaction(bus: MemoryBus, engine: Engine) -> None:
    """A suite that rolls everything back still sees the session's commit as one."""
    with engine.connect() as connection:
        outer = connection.begin()
        with Session(connection, join_transaction_mode="create_savepoint") as session:
            put(bus, session)
            session.commit()
        assert visible(bus, "a") == [True]
        assert isinstance(connection, Connection)
        outer.rollback()
    assert visible(bus, "a") == [True]
    assert isinstance(bus.planner, ackbox.Planner)
