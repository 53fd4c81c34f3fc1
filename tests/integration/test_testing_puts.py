"""puts() on Postgres: what the asking transaction has put, on every driver, and nothing else."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from ackbox import AsyncPlanner, ConfigError, Planner
from ackbox.outbox.shell.database import Database
from ackbox.testing import puts

from ..support.callers import with_driver
from ..support.memory_tools import NOON, create_ticket


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_puts_sees_its_own_transaction_only(database_url: str, driver: str) -> None:
    """Those of savepoints too, in order; not what was rolled back, committed, or put by others."""
    engine = create_engine(with_driver(database_url, driver))
    planner = Planner(Database(database_url))
    draft = create_ticket.intent(title="vpn", due=NOON)
    with Session(engine) as session, Session(engine) as other:
        assert puts(session) == []
        session.execute(text("SELECT 1"))
        assert puts(session) == []
        planner.put(draft, run_id="r1", step="before")
        planner.put(draft, run_id="r1", step="a", on=session)
        nested = session.begin_nested()
        planner.put(draft, run_id="r1", step="undone", on=session)
        nested.rollback()
        with session.begin_nested():
            planner.put(draft, run_id="r1", step="b", on=session)
        planner.put(draft, run_id="r1", step="other", on=other)
        planner.put(draft, run_id="r1", step="meanwhile")
        assert [one.intent.step for one in puts(session)] == ["a", "b"]
        assert [one.intent.step for one in puts(other.connection())] == ["other"]
        assert puts(session, create_ticket)[0].args == {"title": "vpn", "due": NOON}
        session.commit()
        assert puts(session) == []
    planner.close()
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_async_session_is_asked_by_run_sync(database_url: str, driver: str) -> None:
    """Without awaiting it cannot be asked, which is said."""

    async def plan() -> None:
        engine = create_async_engine(with_driver(database_url, driver))
        draft = create_ticket.intent(title="vpn", due=NOON)
        async with AsyncPlanner.connect(database_url) as planner, AsyncSession(engine) as session:
            await planner.put(draft, run_id="r1", step="a", on=session)
            (one,) = await session.run_sync(puts, create_ticket)
            assert one.args == {"title": "vpn", "due": NOON}
            with pytest.raises(ConfigError, match=r"run_sync\(puts\)"):
                puts(session)
            await session.rollback()
        await engine.dispose()

    asyncio.run(plan())
