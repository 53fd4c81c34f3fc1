"""`async def` callbacks: one loop for all of them, and the bind's own transaction."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from ackbox.outbox.defaults import Limits
from ackbox.outbox.errors import ConfigError
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.told import Committed, InFlight
from ackbox.planner.bound import AsyncBound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.async_planner import AsyncPlanner
from ackbox.planner.shell.consumer import ResultConsumer

from .planner_support import TOOL, World

AT_ONCE = Limits(backoff_base_seconds=0.0)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner, and a table of the plan's own."""
    world = World(database_url)
    world.rows("CREATE TABLE step (name text)")
    yield world
    world.close()


@pytest.fixture
def plan() -> Plan:
    """Give an empty plan."""
    return Plan()


@pytest.fixture
def results(world: World, plan: Plan) -> Iterator[ResultConsumer]:
    """Give a consumer of that plan which tries again at once."""
    results = ResultConsumer(world.database, plan, limits=AT_ONCE)
    yield results
    results.close()


def settled(world: World, step: str = "open") -> Intent:
    """Put a step and settle it."""
    return world.to(State.COMMITTED, world.put(step))


def names(world: World) -> list[str]:
    """Return what callbacks have written."""
    return [row["name"] for row in world.rows("SELECT name FROM step ORDER BY name")]


def test_every_kind_runs_on_one_loop_of_its_own_thread(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """What belongs to a loop, like a client or a lock, may be kept from one call to the next."""
    loops: list[tuple[str, int, int]] = []

    def note(kind: str) -> Any:
        async def noted(bound: AsyncBound) -> None:
            await asyncio.sleep(0)
            loops.append((kind, id(asyncio.get_running_loop()), threading.get_ident()))

        return noted

    plan.on_bound(TOOL)(note("on_bound"))
    plan.after_bound(TOOL)(note("after_bound"))
    plan.on_told("unknown")(note("on_told"))
    settled(world, "first")
    results.run_once()
    settled(world, "second")
    world.to(State.INDETERMINATE, world.put("third"))
    results.run_once()
    assert sorted(kind for kind, _, _ in loops) == ["after_bound"] * 2 + ["on_bound"] * 2 + [
        "on_told"
    ]
    assert len({loop for _, loop, _ in loops}) == 1
    assert {thread for _, _, thread in loops}.isdisjoint({threading.get_ident()})


def test_on_bound_writes_in_the_binds_own_transaction(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """The AsyncSession sees the uncommitted bind; both become visible with one COMMIT."""
    seen: list[Any] = []

    @plan.on_bound(TOOL)
    async def next_step(bound: AsyncBound) -> None:
        assert isinstance(bound.told, Committed)
        assert isinstance(bound.session, AsyncSession)
        inside = "SELECT bound_at FROM ackbox.intent_state WHERE seq = :seq"
        found = await bound.session.execute(text(inside), {"seq": bound.intent.seq})
        await bound.connection.execute(text("INSERT INTO step VALUES ('x')"))
        await bound.session.commit()
        outside = world.row(bound.intent)["bound_at"]
        seen.append((found.scalar_one() is not None, outside, names(world)))

    intent = settled(world)
    assert results.run_once().bound == 1
    assert seen == [(True, None, [])]
    assert world.row(intent)["bound_at"] is not None
    assert names(world) == ["x"]


def test_raising_undoes_the_bind_and_what_was_written(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """Nothing of it is kept but the record; the next try, which returns, commits all of it."""
    failing = True

    @plan.on_bound(TOOL)
    async def next_step(bound: AsyncBound) -> None:
        await bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        await bound.session.flush()
        if failing:
            raise LookupError("holds a secret")

    intent = settled(world)
    assert results.run_once().bound == 0
    assert (world.row(intent)["bound_at"], names(world)) == (None, [])
    noted = "SELECT reason FROM {s}.event WHERE seq = :seq AND name = 'bind_failed'"
    assert world.one(noted, seq=intent.seq) == "LookupError"
    failing = False
    assert results.run_once().bound == 1
    assert names(world) == ["x"]


def test_the_next_step_is_put_once_with_the_bind(world: World, plan: Plan) -> None:
    """An AsyncPlanner joins the transaction: two failing tries leave no step, the third leaves it.

    Its lane is rung after the COMMIT, by the consumer.
    """
    planner = AsyncPlanner(world.database)
    rung: list[set[str]] = []
    calls: list[int] = []

    @plan.on_bound(TOOL)
    async def next_step(bound: AsyncBound) -> None:
        await planner.put("mail.send", {}, run_id="r1", step="mail", on=bound.session)
        calls.append(1)
        if len(calls) < 3:
            raise LookupError

    @plan.after_bound(TOOL)
    async def leave(bound: AsyncBound) -> None:
        # What the planner keeps open belongs to this loop.
        await planner.close()

    settled(world)
    results = ResultConsumer(
        world.database, plan, limits=AT_ONCE, rung=lambda lanes: rung.append(set(lanes))
    )
    for number in range(3):
        assert world.planner.get(("r1", "mail")) is None
        assert results.run_once().bound == (number == 2)
    results.close()
    assert isinstance(world.planner.get(("r1", "mail")), InFlight)
    assert world.one("SELECT count(*) FROM {s}.intent WHERE step = 'mail'") == 1
    assert rung == [{"default"}]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_nothing_that_is_raised_ends_the_consumer(
    error: type[BaseException], world: World, plan: Plan, results: ResultConsumer
) -> None:
    """Exiting and cancelling are failures like others; the loop goes on for the next call."""
    failing = True

    async def callback(bound: AsyncBound) -> None:
        if failing:
            raise error

    plan.on_bound(TOOL)(callback)
    plan.after_bound("mail.send")(callback)
    intent = settled(world)
    assert results.run_once().bound == 0
    assert "bind_failed" in world.events(intent)
    failing = False
    assert results.run_once().bound == 1


def test_a_task_of_the_plans_own_that_exits_stops_nobody(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """asyncio lets SystemExit through the loop itself; whoever waits on it must not hang."""

    async def leave() -> None:
        raise SystemExit

    tasks: list[asyncio.Task[None]] = []

    @plan.after_bound(TOOL)
    async def hand_over(bound: AsyncBound) -> None:
        tasks.append(asyncio.create_task(leave()))
        await asyncio.wait(tasks)

    settled(world, "first")
    assert results.run_once().handed == 1
    settled(world, "second")
    assert results.run_once().handed == 1


def test_committing_is_refused_and_undoes_the_bind(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """Through the connection too: a bind that is durable before its callback ended is no bind."""

    commits = True

    @plan.on_bound(TOOL)
    async def commit(bound: AsyncBound) -> None:
        await bound.connection.execute(text("INSERT INTO step VALUES ('x')"))
        if commits:
            await bound.connection.commit()

    intent = settled(world)
    assert results.run_once().bound == 0
    assert (world.row(intent)["bound_at"], names(world)) == (None, [])
    commits = False
    assert results.run_once().bound == 1
    assert names(world) == ["x"]


def test_outside_of_a_bind_there_is_no_session(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """after_bound is told which callback has one."""
    refused: list[str] = []

    @plan.after_bound(TOOL)
    async def hand_over(bound: AsyncBound) -> None:
        with pytest.raises(ConfigError) as error:
            _ = bound.session
        refused.append(error.value.next_step)

    settled(world)
    assert results.run_once().handed == 1
    assert "on_bound" in refused[0]


def test_closing_ends_what_still_runs_and_the_next_call_starts_anew(
    world: World, plan: Plan, results: ResultConsumer
) -> None:
    """A client that a callback left open is finalised; a closed consumer can be used again."""
    ended: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("generator")

    async def linger() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("task")

    kept: list[Any] = []

    @plan.on_bound(TOOL)
    async def begin(bound: AsyncBound) -> None:
        loops.append(asyncio.get_running_loop())
        kept.extend([numbers(), asyncio.create_task(linger())])
        await anext(kept[-2])
        await asyncio.sleep(0)

    settled(world, "first")
    results.run_once()
    results.close()
    assert sorted(ended) == ["generator", "task"]
    assert loops[0].is_closed()
    settled(world, "second")
    assert results.run_once().bound == 1
    assert loops[1] is not loops[0]


@pytest.mark.parametrize("lets_go", [False, True])
def test_a_callback_that_cancels_its_own_task_does_not_end_the_consumer(
    lets_go: bool, world: World, plan: Plan, results: ResultConsumer
) -> None:
    """Cancelling a task is asked for now and felt later: in the bind's own statements, say."""
    cancelling = True

    async def callback(bound: AsyncBound) -> None:
        task = asyncio.current_task()
        if cancelling and task is not None:
            task.cancel()
        if lets_go:
            await asyncio.sleep(0)

    plan.on_bound(TOOL)(callback)
    plan.on_told("unknown")(callback)
    intent = settled(world)
    unknown = world.to(State.INDETERMINATE, world.put("lost"))
    results.run_once()
    assert "bind_failed" in world.events(intent)
    assert "tell_failed" in world.events(unknown)
    cancelling = False
    assert results.run_once().bound == 1
    assert world.one("SELECT count(*) FROM {s}.to_tell") == 0
