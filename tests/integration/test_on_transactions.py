"""Every call of a planner in the application's own transaction, on every kind that `on=` takes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ackbox.outbox.errors import ConfigError, Refused
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.shell.connection import sqlstate_of
from ackbox.outbox.told import Cancelled, CancelRecorded, Committed, InFlight
from ackbox.tool_adapters.contract import CompensationPlan, CompensationTarget
from ackbox.tool_adapters.function import tool
from ackbox.tool_adapters.registry import Tools

from ..support.callers import (
    AUTOCOMMIT,
    KINDS,
    REPEATABLE_READ,
    Caller,
    add_own_table,
    own_rows,
)
from ..support.waiting import wait_until
from .planner_support import TOOL, World

ARGS = {"title": "VPN"}
AWKWARD = {
    "text": '50 % of :what isn\'t "quoted" \\ or ünïcode 🎫\n',
    "numbers": [0, -1, 2**53 - 1, 0.1, 1e-7],
    "nested": {"none": None, "true": True, "empty": {}, "list": []},
}
pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox beside the application's own table."""
    world = World(add_own_table(database_url))
    yield world
    world.close()


@asynccontextmanager
async def opened(
    kind: str, world: World, isolation: str | None = None, **options: Any
) -> AsyncIterator[tuple[Caller, Any]]:
    """Give a caller of the kind and a planner of the class that takes it."""
    async with Caller(kind, world.url, isolation) as caller:
        planner = caller.planner(**options)
        try:
            yield caller, planner
        finally:
            await caller.rollback()
            await caller.close_planner(planner)


def run(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test's body in a loop of its own."""
    asyncio.run(body())  # type: ignore[arg-type]


def count(world: World) -> int:
    """Return how many intents are committed."""
    return int(world.one("SELECT count(*) FROM {s}.intent"))


def test_a_put_ends_as_the_callers_own_rows_do(world: World, kind: str) -> None:
    """Both are stored by its commit, and neither by its rollback."""

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            for number, end in enumerate((caller.rollback, caller.commit)):
                await caller.insert(number)
                step = f"s{number}"
                intent = await caller.ask(planner.put, TOOL, ARGS, run_id="r", step=step)
                assert intent.created
                assert count(world) == 0
                assert await caller.ask(planner.get, intent) is not None
                await end()

    run(body)
    assert own_rows(world.url) == [1]
    assert [row["step"] for row in world.rows("SELECT step FROM {s}.intent")] == ["s1"]


def test_a_refused_put_leaves_the_transaction_usable(world: World, kind: str) -> None:
    """One intent or a batch: what the caller wrote before stays, nothing of the batch does."""
    world.put("taken")

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            await caller.insert(1)
            drafts = [
                planner.draft(TOOL, ARGS, run_id="r1", step="new"),
                planner.draft(TOOL, {"title": "other"}, run_id="r1", step="taken"),
            ]
            for batch in (drafts, drafts[1:]):
                with pytest.raises(Refused, match="args_conflict"):
                    await caller.ask(planner.put_many, batch)
            kept = await caller.ask(planner.put_many, drafts[1:], if_exists="keep")
            assert not kept[0].created
            await caller.insert(2)
            await caller.commit()

    run(body)
    assert own_rows(world.url) == [1, 2]
    assert [row["step"] for row in world.rows("SELECT step FROM {s}.intent")] == ["taken"]
    assert world.one("SELECT count(*) FROM {s}.event WHERE name = 'args_conflict'") == 2


def test_what_is_stored_is_what_was_given(world: World, kind: str) -> None:
    """Text, numbers, nulls, times and versions survive the driver; so does what is told."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    later = soon + timedelta(microseconds=1)

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            intent = await caller.ask(
                planner.put, TOOL, AWKWARD, intent_id="U:1", not_before=soon,
                deadline=later, read_set={"stock": 2**62}, traceparent="00-a%s-b",
            )  # fmt: skip
            again = await caller.ask(planner.put, TOOL, AWKWARD, intent_id="U:1")
            assert (again.seq, again.created) == (intent.seq, False)
            told = await caller.ask(planner.get, "U:1")
            assert told.reason == f"may start at {soon.isoformat()}"
            await caller.commit()

    run(body)
    (row,) = world.rows("SELECT * FROM {s}.intent")
    assert (row["intent_id"], row["args"], row["lane"]) == ("U:1", AWKWARD, "default")
    assert (row["not_before"], row["deadline"]) == (soon, later)
    assert (row["read_set"], row["traceparent"]) == ({"stock": 2**62}, "00-a%s-b")


def test_a_held_put_opens_its_gate(world: World, kind: str) -> None:
    """The policy goes into the gate in the same transaction."""

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s", held_for="two-eyes")
            told = await caller.ask(planner.get, ("r", "s"))
            assert told.word == "awaiting_approval"
            await caller.commit()

    run(body)
    assert world.rows("SELECT policy FROM {s}.gate") == [{"policy": "two-eyes"}]


def test_a_result_is_told_inside_a_transaction(world: World, kind: str) -> None:
    """A settled row's document comes back as JSON values on every driver."""
    intent = world.to(State.COMMITTED, world.put())

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            told = await caller.ask(planner.get, intent)
            assert isinstance(told, Committed)
            assert (told.result, told.ref) == ({"id": intent.seq}, f"T-{intent.seq}")

    run(body)


@pytest.mark.parametrize("state", [State.QUEUED, State.EXECUTING, State.AWAITING_ACK])
def test_superseding_ends_with_the_transaction(world: World, kind: str, state: State) -> None:
    """Rolled back, nothing of it happened; committed, the new generation stands."""
    intent = world.to(state, world.put())
    soon = datetime.now(UTC) + timedelta(hours=1)

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            for end in (caller.rollback, caller.commit):
                later = await caller.ask(planner.supersede, intent, 0, AWKWARD, deadline=soon)
                assert later.generation == 1
                await end()
            again = await caller.ask(planner.supersede, ("r1", "open"), 0, AWKWARD)
            assert (again.seq, again.created) == (later.seq, False)
            with pytest.raises(Refused, match="stale_generation"):
                await caller.ask(planner.supersede, ("r1", "open"), 0, ARGS)
            await caller.insert(1)

    run(body)
    args = "SELECT args, deadline FROM {s}.intent WHERE generation = 1"
    assert world.rows(args) == [{"args": AWKWARD, "deadline": soon}]


def test_cancelling_ends_with_the_transaction(world: World, kind: str) -> None:
    """What was not sent is cancelled, what was sent only noted; both undone by a rollback."""
    unsent = world.put("unsent")
    sent = world.to(State.AWAITING_ACK, world.put("sent", lane="other"))

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            for end in (caller.rollback, caller.commit):
                assert isinstance(await caller.ask(planner.cancel, unsent), Cancelled)
                assert isinstance(await caller.ask(planner.cancel, sent), CancelRecorded)
                await end()

    run(body)
    assert world.state(unsent) == "cancelled"
    assert not world.row(sent)["wanted"]


def close_ticket(target: CompensationTarget) -> CompensationPlan:
    """Undo a ticket by its reference."""
    return CompensationPlan("tickets.close", {"id": target.ref})


@tool(TOOL, compensation=close_ticket)
def create_ticket(call: Any, *, title: str) -> None:
    """Create a ticket."""


@tool("tickets.close", version=3, lane="slow")
def delete_ticket(call: Any, *, id: str) -> None:
    """Close a ticket."""


def test_compensating_ends_with_the_transaction(world: World, kind: str) -> None:
    """The compensation is inserted by the commit only, with the reference in its arguments."""
    done = world.to(State.COMMITTED, world.put())
    tools = Tools(create_ticket, delete_ticket)

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            for end in (caller.rollback, caller.commit):
                undo = await caller.ask(planner.compensate, done, tools=tools)
                assert isinstance(undo, Intent)
                assert undo.created
                await end()
            told = await caller.ask(planner.get, done)
            assert isinstance(told, InFlight)

    run(body)
    args = "SELECT args, tool_version FROM {s}.intent WHERE compensates IS NOT NULL"
    assert world.rows(args) == [{"args": {"id": f"T-{done.seq}"}, "tool_version": 3}]


@pytest.mark.parametrize("committed", [True, False])
def test_a_second_put_waits_for_the_first_ones_transaction(
    world: World, kind: str, committed: bool
) -> None:
    """It finds what the first one committed, or stores its own where that was rolled back."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"

    async def body() -> None:
        async with opened(kind, world) as (first, planner), Caller(kind, world.url) as second:
            mine = await first.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            put = second.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            theirs = asyncio.create_task(put)
            await asyncio.to_thread(wait_until, lambda: world.one(waiting) > 0, 60)
            await (first.commit() if committed else first.rollback())
            intent = await theirs
            assert (intent.created, intent.seq == mine.seq) == (not committed, committed)
            await second.commit()

    run(body)
    assert count(world) == 1


def test_a_serialization_error_is_passed_on(world: World, kind: str) -> None:
    """Under REPEATABLE READ the database says that the id was taken meanwhile."""

    async def body() -> None:
        async with opened(kind, world, REPEATABLE_READ) as (caller, planner):
            await caller.execute("SELECT count(*) FROM own")
            await asyncio.to_thread(world.put)
            with pytest.raises(Exception) as error:  # noqa: PT011 - each driver has its own class
                await caller.ask(planner.put, TOOL, {"title": "VPN"}, run_id="r1", step="open")
            assert sqlstate_of(error.value) == "40001"
            await caller.rollback()
            again = await caller.ask(planner.put, TOOL, ARGS, run_id="r1", step="open")
            assert not again.created

    run(body)


def test_a_connection_in_autocommit_is_refused_for_writing(world: World, kind: str) -> None:
    """There is nothing with which the intent could commit or roll back; asking is harmless."""
    world.put()

    async def body() -> None:
        async with opened(kind, world, AUTOCOMMIT) as (caller, planner):
            with pytest.raises(ConfigError, match="autocommit"):
                await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            with pytest.raises(ConfigError, match="autocommit"):
                await caller.ask(planner.cancel, ("r1", "open"))
            assert await caller.ask(planner.get, ("r1", "open")) is not None

    run(body)
    assert count(world) == 1


def test_lanes_are_rung_after_the_commit_only(world: World, kind: str) -> None:
    """By the session's own event, or by `ring` where SQLAlchemy has none or is not there."""
    rung: list[str] = []

    class Ringer:
        def ring(self, lane: str, limit: int) -> bool:
            rung.append(lane)
            return True

    async def body() -> None:
        async with opened(kind, world, bus=Ringer()) as (caller, planner):
            await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="lost", lane="lost")
            await caller.rollback()
            if not caller.rings_itself:
                planner.ring()  # Too many rings are harmless; here they clear what was noted.
            rung.clear()
            await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s", lane="slow")
            assert "slow" not in rung
            await caller.commit()
            if not caller.rings_itself:
                planner.ring()
            await asyncio.to_thread(wait_until, lambda: "slow" in rung, 60)

    run(body)
    assert "lost" not in rung or not kind.partition("+")[0].endswith("session")


def test_waiting_before_the_commit_is_refused(world: World, kind: str) -> None:
    """The wait could never end; after the commit it can, though a new transaction has begun."""

    async def body() -> None:
        async with opened(kind, world) as (caller, planner):
            intent = await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            for name in (intent, ("r", "s")):
                with pytest.raises(Refused, match="not_committed"):
                    await asked(caller, planner, name)
            await caller.commit()
            await caller.insert(1)
            assert isinstance(await asked(caller, planner, intent), InFlight)

    async def asked(caller: Caller, planner: Any, name: Any) -> Any:
        return await caller._done(lambda: planner.wait(name, timeout_seconds=0))

    run(body)
