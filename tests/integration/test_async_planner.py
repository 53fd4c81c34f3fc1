"""A planner on an event loop: the calls of its own transactions, waits, loops one after another."""

import asyncio
import gc
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

import ackbox
from ackbox.outbox.errors import ConfigError, Refused, StoreUnavailable
from ackbox.outbox.model import State
from ackbox.outbox.shell.database import Database
from ackbox.outbox.told import Cancelled, Committed, InFlight
from ackbox.planner.shell.async_planner import AsyncPlanner
from ackbox.planner.shell.planner import Planner

from ..support.callers import with_driver
from ..support.waiting import wait_until
from .planner_support import TOOL, World

ARGS = {"title": "VPN"}


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a worker made of single statements."""
    world = World(database_url)
    yield world
    world.close()


@asynccontextmanager
async def planner_of(world: World, **options: Any) -> AsyncIterator[AsyncPlanner]:
    """Give a planner of the world's outbox on the running loop."""
    async with AsyncPlanner.connect(world.url, **options) as planner:
        yield planner


def test_both_planners_have_the_same_calls() -> None:
    """What one is asked, the other can be asked under the same name; both are public."""
    names = {name for name in vars(Planner) if not name.startswith("_")}
    assert names == {name for name in vars(AsyncPlanner) if not name.startswith("_")}
    assert ackbox.AsyncPlanner is AsyncPlanner


def test_a_step_from_put_to_its_result(world: World) -> None:
    """Put, ask, wait and what is told in the end are those of the other planner."""

    async def plan() -> None:
        async with planner_of(world) as planner:
            intent = await planner.put(TOOL, ARGS, run_id="r1", step="open")
            assert intent.created
            again = await planner.put(TOOL, ARGS, run_id="r1", step="open")
            assert (again.seq, again.created) == (intent.seq, False)
            told = await planner.get(("r1", "open"))
            assert isinstance(told, InFlight)
            assert await planner.get(("r1", "nowhere")) is None
            waiting = asyncio.create_task(planner.wait(intent, timeout_seconds=60))
            await asyncio.to_thread(world.to, State.COMMITTED, intent)
            told = await waiting
            assert isinstance(told, Committed)
            assert told.result == {"id": intent.seq}
            with pytest.raises(Refused, match="args_conflict"):
                await planner.put(TOOL, {"title": "other"}, run_id="r1", step="open")

    asyncio.run(plan())
    assert world.one("SELECT count(*) FROM {s}.event WHERE name = 'args_conflict'") == 1


def test_a_step_is_replaced_called_off_and_given_up(world: World) -> None:
    """Supersede, cancel and note_timeout end in the same rows and events."""

    async def plan() -> None:
        async with planner_of(world) as planner:
            drafts = [planner.draft(TOOL, ARGS, run_id="r1", step=step) for step in ("a", "b")]
            first, second = await planner.put_many(drafts)
            later = await planner.supersede(first, 0, {"title": "LAN"})
            assert later.generation == 1
            with pytest.raises(Refused, match="stale_generation"):
                await planner.supersede(("r1", "a"), 5)
            assert isinstance(await planner.cancel(second), Cancelled)
            await planner.note_timeout(("r1", "a"))
            with pytest.raises(Refused, match="not_found"):
                await planner.note_timeout(("r1", "nowhere"))

    asyncio.run(plan())
    assert world.one("SELECT count(*) FROM {s}.event WHERE name = 'planner_timeout'") == 1


def test_a_wait_leaves_the_loop_free_and_never_raises_for_time(world: World) -> None:
    """Other tasks run meanwhile; at the end the newest word is told."""

    async def plan() -> int:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        async with planner_of(world) as planner:
            intent = await planner.put(TOOL, ARGS, run_id="r1", step="open")
            turning = asyncio.create_task(turn())
            assert isinstance(await planner.wait(intent, timeout_seconds=1.0), InFlight)
            turning.cancel()
            missing = await planner.wait(("r1", "nowhere"), timeout_seconds=0)
            assert "nothing is stored" in missing.reason
        return turns

    assert asyncio.run(plan()) > 5


def test_many_waits_share_their_queries_with_those_of_other_tasks(world: World) -> None:
    """Two hundred waits of one loop ask about as often as one does."""
    count = 200

    async def plan() -> None:
        async with planner_of(world) as planner:
            drafts = [
                planner.draft(TOOL, {"n": n}, run_id="r1", step=f"s{n}") for n in range(count)
            ]
            intents = await planner.put_many(drafts)
            waits = [asyncio.create_task(planner.wait(i, timeout_seconds=90)) for i in intents]
            waiters: Any = planner._parts.waiters
            await asyncio.to_thread(wait_until, lambda: len(waiters._waiting) == count)
            before = waiters.queries
            await asyncio.sleep(1.0)
            assert waiters.queries - before < 60
            await asyncio.to_thread(settle, intents)
            assert {type(told) for told in await asyncio.gather(*waits)} == {Committed}

    def settle(intents: Any) -> None:
        world.claim(intents[0].seq)
        for intent in intents:
            world.mark(intent.seq)
            world.acknowledge(intent.seq)

    asyncio.run(plan())


def test_cancelling_a_wait_changes_nothing(world: World) -> None:
    """The row and its events stay as they were, and the wait is no longer asked for."""

    async def plan() -> None:
        async with planner_of(world) as planner:
            intent = await planner.put(TOOL, ARGS, run_id="r1", step="open")
            before = world.row(intent), world.events(intent)
            waiting = asyncio.create_task(planner.wait(intent, timeout_seconds=60))
            waiters: Any = planner._parts.waiters
            await asyncio.to_thread(wait_until, lambda: bool(waiters._waiting))
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
            assert waiting.cancelled()
            assert not waiters._waiting
            assert (world.row(intent), world.events(intent)) == before

    asyncio.run(plan())


def test_closing_ends_the_waits_with_the_newest_word(world: World) -> None:
    """Nobody is left waiting for a planner that is gone."""

    async def plan() -> None:
        async with planner_of(world) as planner:
            intent = await planner.put(TOOL, ARGS, run_id="r1", step="open")
            waiting = asyncio.create_task(planner.wait(intent, timeout_seconds=600))
            waiters: Any = planner._parts.waiters
            await asyncio.to_thread(wait_until, lambda: bool(waiters._waiting))
        began = time.monotonic()
        assert isinstance(await waiting, InFlight)
        assert time.monotonic() - began < 60

    asyncio.run(plan())


def test_one_planner_serves_loops_one_after_another(world: World) -> None:
    """As tests with a loop each need it: the ended loops' connections are closed, silently."""
    planner = AsyncPlanner.connect(world.url)
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ackbox planner'"

    async def put(number: int) -> bool:
        intent = await planner.put(TOOL, ARGS, run_id="r1", step=f"s{number}")
        await planner.wait(intent, timeout_seconds=0)
        return intent.created

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(asyncio.run(put(number)) for number in range(5))
        asyncio.run(planner.close())
        gc.collect()
    wait_until(lambda: world.one(count) == 0, message="every connection is closed")


def test_a_transaction_of_the_planners_rings_after_its_commit(world: World) -> None:
    """On our engine or on the application's; what raises is not stored and rings nothing."""
    rung: list[str] = []

    class Ringer:
        def ring(self, lane: str, limit: int) -> bool:
            rung.append(lane)
            return True

    async def plan() -> None:
        planner = AsyncPlanner(Database(world.url), bus=Ringer())
        engine = create_async_engine(with_driver(world.url, "asyncpg"))
        async with planner:
            for lane, target in (("mine", None), ("theirs", engine)):
                async with planner.transaction(target) as connection:
                    put = planner.put(TOOL, ARGS, run_id="r1", step=lane, lane=lane, on=connection)
                    assert (await put).created
                    assert lane not in rung
                await asyncio.to_thread(wait_until, lambda lane=lane: lane in rung)
            with suppress(LookupError):
                async with planner.transaction() as connection:
                    await planner.put(TOOL, ARGS, run_id="r1", step="x", lane="x", on=connection)
                    raise LookupError
            assert await planner.get(("r1", "x")) is None
        await engine.dispose()

    asyncio.run(plan())
    assert sorted(rung) == ["mine", "theirs"]


def test_waiting_on_an_open_transaction_of_this_process_is_refused(world: World) -> None:
    """By every name; after its commit it can be waited for, whatever began on it since."""

    async def plan() -> None:
        engine = create_async_engine(with_driver(world.url, "psycopg"))
        async with planner_of(world) as planner, AsyncSession(engine) as session:
            intent = await planner.put(TOOL, ARGS, run_id="r1", step="open", on=session)
            for name in (intent, ("r1", "open"), intent.intent_id):
                with pytest.raises(Refused, match="not_committed"):
                    await planner.wait(name, timeout_seconds=60)
            await session.commit()
            await session.execute(text("SELECT 1"))
            assert isinstance(await planner.wait(intent, timeout_seconds=0), InFlight)
        await engine.dispose()

    asyncio.run(plan())


def test_the_wrong_kind_of_transaction_names_the_other_planner(world: World) -> None:
    """Whoever mixes both worlds is told which class takes what was given."""
    engine = create_engine(world.url)

    async def plan() -> None:
        loop_engine = create_async_engine(with_driver(world.url, "psycopg"))
        async with planner_of(world) as planner:
            with engine.connect() as connection, pytest.raises(ConfigError) as refused:
                await planner.get("x", on=connection)  # type: ignore[arg-type]
            assert "ackbox.Planner" in refused.value.next_step
            with pytest.raises(ConfigError, match="Engine"):
                async with planner.transaction(engine):  # type: ignore[arg-type]
                    pass
        async with AsyncSession(loop_engine) as session:
            with pytest.raises(ConfigError) as refused:
                world.planner.get("x", on=session)  # type: ignore[arg-type]
            assert "ackbox.AsyncPlanner" in refused.value.next_step
        wrong: Any = loop_engine
        with pytest.raises(ConfigError, match="AsyncEngine"), world.planner.transaction(wrong):
            pass
        await loop_engine.dispose()

    asyncio.run(plan())
    engine.dispose()


def test_a_database_that_does_not_answer_is_told_without_its_password() -> None:
    """From a put and from a wait alike."""

    async def plan() -> None:
        url = "postgresql://nobody:secret-word@127.0.0.1:1/nothing"
        async with AsyncPlanner.connect(url) as planner:
            for asked in (
                planner.put(TOOL, ARGS, run_id="r1", step="s"),
                planner.wait("x", timeout_seconds=0.1),
            ):
                with pytest.raises(StoreUnavailable) as told:
                    await asked
                assert "secret-word" not in f"{told.value}{planner!r}"

    asyncio.run(plan())
