"""Putting intents into the planner's own transaction, on real Postgres."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ackbox.outbox.effects import entry
from ackbox.outbox.errors import ConfigError, InvalidIntent, Refused
from ackbox.outbox.identity import mint_intent_id
from ackbox.outbox.intent import check_lane
from ackbox.outbox.model import Move, Row, State
from ackbox.outbox.model import World as GuardWorld
from ackbox.outbox.shell import planner_store
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.redis_bus import queue_name
from ackbox.planner.shell.planner import Planner
from ackbox.tool_adapters.function import tool

from ..support.waiting import wait_until
from .planner_support import TOOL, World, caller, race

ARGS = {"title": "VPN down"}


def nowhere() -> Planner:
    """Return a planner whose database cannot be reached: what it refuses, it refuses by itself."""
    return Planner(Database("postgresql://nobody@127.0.0.1:1/nothing"))


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def test_an_intent_commits_and_rolls_back_with_the_planners_rows(world: World) -> None:
    """Rolling the planner's transaction back leaves no intent; committing it leaves one."""
    with caller(world.url) as connection:
        connection.execute(text("CREATE TABLE step (name text)"))
        connection.commit()
        connection.execute(text("INSERT INTO step VALUES ('a')"))
        world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=connection)
        connection.rollback()
        assert world.one("SELECT count(*) FROM {s}.intent") == 0
        connection.execute(text("INSERT INTO step VALUES ('b')"))
        world.planner.put(TOOL, ARGS, run_id="r1", step="b", on=connection)
        connection.commit()
    assert world.one("SELECT count(*) FROM {s}.intent") == 1
    assert world.one("SELECT count(*) FROM step") == 1


def test_an_intent_rolls_back_with_a_session(world: World) -> None:
    """The same through a Session, whose rollback takes state, event and intent along."""
    engine = create_engine(world.url)
    with Session(engine) as session:
        world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=session)
        session.rollback()
    engine.dispose()
    counted = "SELECT count(*) FROM {s}."
    assert [world.one(counted + name) for name in ("intent", "intent_state", "event")] == [0, 0, 0]


def test_putting_again_returns_what_is_stored(world: World) -> None:
    """A planner that restarts gets the same intent: one row, `created` only the first time."""
    first = world.put("open")
    again = [world.put("open") for _ in range(3)]
    assert first.created
    assert not any(intent.created for intent in again)
    assert {intent.seq for intent in again} == {first.seq}
    assert first.intent_id == mint_intent_id("default", "r1", "open") == first.wire_key
    assert world.events(first) == ["put"]


def test_two_planners_at_once_store_each_step_once(world: World) -> None:
    """Two processes that start the same plan within milliseconds make five rows, not ten."""
    other = Planner(Database(world.url))

    def plan(planner: Planner) -> list[bool]:
        return [
            planner.put(TOOL, ARGS, run_id="r1", step=f"s{number}").created for number in range(5)
        ]

    answers = race(lambda: plan(world.planner), lambda: plan(other))
    other.close()
    assert world.one("SELECT count(*) FROM {s}.intent") == 5
    assert sum(map(sum, answers)) == 5


def test_an_id_with_other_arguments_is_refused(world: World) -> None:
    """The event of the refusal stays although the caller's transaction rolls back."""
    world.put("open")
    with caller(world.url) as connection:
        connection.execute(text("CREATE TABLE step (name text)"))
        with pytest.raises(Refused) as refusal:
            world.planner.put(TOOL, {"title": "other"}, run_id="r1", step="open", on=connection)
        connection.rollback()
    assert refusal.value.code == "args_conflict"
    assert "supersede" in refusal.value.next_step
    found = world.rows("SELECT subject, seq FROM {s}.event WHERE name = 'args_conflict'")
    subject = f"default/{mint_intent_id('default', 'r1', 'open')}"
    assert found == [{"subject": subject, "seq": None}]


def test_another_tool_under_the_same_id_is_refused(world: World) -> None:
    """The fingerprint covers the tool too."""
    world.put("open")
    with pytest.raises(Refused, match="args_conflict"):
        world.planner.put("mail.send", {"title": "VPN"}, run_id="r1", step="open")


def test_a_refusal_that_cannot_be_recorded_is_still_told(world: World) -> None:
    """The event's own connection fails; the caller sees the refusal, not that failure."""
    world.put("open")
    with (
        nowhere() as lost,
        caller(world.url) as connection,
        pytest.raises(Refused, match="args_conflict"),
    ):
        lost.put(TOOL, {"title": "other"}, run_id="r1", step="open", on=connection)


def test_keep_returns_what_is_stored(world: World) -> None:
    """An agent that samples other arguments after a restart gets the live stored intent."""
    first = world.put("open")
    kept = world.planner.put(TOOL, {"title": "other"}, run_id="r1", step="open", if_exists="keep")
    assert (kept.seq, kept.created) == (first.seq, False)
    second = world.planner.supersede(first, 0, {"title": "second"})
    later = world.planner.put(TOOL, {"title": "x"}, run_id="r1", step="open", if_exists="keep")
    assert later.seq == second.seq


def test_a_second_put_waits_for_the_first_ones_transaction(world: World) -> None:
    """The id of an uncommitted row is neither doubled nor refused: the second put waits."""
    engine = create_engine(world.url)
    with caller(world.url) as connection:
        first = world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=connection)
        with engine.connect() as second, second.begin():
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"

            def commit_once_waited_for() -> None:
                wait_until(lambda: world.one(waiting) > 0)
                connection.commit()

            again, _ = race(
                lambda: world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=second),
                commit_once_waited_for,
            )
    engine.dispose()
    assert (again.seq, again.created) == (first.seq, False)


def test_repeatable_read_passes_the_databases_error_on(world: World) -> None:
    """Under REPEATABLE READ a concurrent put is the database's serialisation failure."""
    engine = create_engine(world.url, isolation_level="REPEATABLE READ")
    with engine.connect() as connection:
        connection.execute(text("SELECT 1 FROM ackbox.intent"))
        world.put("open")
        with pytest.raises(DBAPIError) as error:
            world.planner.put(TOOL, {"title": "VPN"}, run_id="r1", step="open", on=connection)
    engine.dispose()
    assert getattr(error.value.orig, "sqlstate", "") == "40001"


@pytest.mark.parametrize("driver", ["postgresql+psycopg2"])
def test_put_works_on_another_driver(world: World, driver: str) -> None:
    """Named binds and CASTs only: the statement runs on drivers that are not ours."""
    pytest.importorskip(driver.partition("+")[2], reason=f"{driver} is not installed")
    engine = create_engine(world.url.replace("postgresql+psycopg", driver))
    with engine.begin() as connection:
        intent = world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=connection)
    engine.dispose()
    assert world.state(intent) == "queued"


def test_put_many_is_all_or_nothing(world: World) -> None:
    """1,000 drafts are one statement; one refused draft leaves none, even if the caller commits."""
    drafts = [
        world.planner.draft(TOOL, {"n": number}, run_id="r1", step=f"s{number}")
        for number in range(1000)
    ]
    intents = world.planner.put_many(drafts)
    assert [intent.intent_id for intent in intents] == [draft.intent_id for draft in drafts]
    assert all(intent.created for intent in intents)
    again = world.planner.put_many(drafts)
    assert [intent.seq for intent in again] == [intent.seq for intent in intents]
    mixed = [
        world.planner.draft(TOOL, ARGS, run_id="r2", step="new"),
        world.planner.draft(TOOL, {"n": "other"}, run_id="r1", step="s0"),
    ]
    with caller(world.url) as connection:
        with pytest.raises(Refused, match="args_conflict"):
            world.planner.put_many(mixed, on=connection)
        connection.commit()
    assert world.one("SELECT count(*) FROM {s}.intent") == 1000


def test_put_many_knows_an_id_that_it_holds_twice(world: World) -> None:
    """The same draft twice is one row; with other arguments it is the refusal it would be alone."""
    draft = world.planner.draft(TOOL, ARGS, run_id="r1", step="a")
    other = world.planner.draft(TOOL, {"title": "x"}, run_id="r1", step="a")
    first, second = world.planner.put_many([draft, draft])
    assert (first.created, second.created) == (True, False)
    assert first.seq == second.seq
    with pytest.raises(Refused, match="args_conflict"):
        world.planner.put_many([draft, other])


def test_batches_with_the_same_ids_in_other_orders_do_not_deadlock(world: World) -> None:
    """Rows are inserted in one order whatever order they are given in."""
    drafts = [
        world.planner.draft(TOOL, {"n": number}, run_id="r1", step=f"s{number}")
        for number in range(50)
    ]
    other = Planner(Database(world.url))
    for _ in range(10):
        race(
            lambda: world.planner.put_many(drafts),
            lambda: other.put_many(list(reversed(drafts))),
        )
        world.rows("TRUNCATE {s}.intent, {s}.intent_state")
    other.close()


def test_bodies_of_every_size_are_stored(world: World) -> None:
    """No ring carries a body: 7,999 and 8,000 bytes are as good as any (NOTIFY's own limit)."""
    frame = len('{"body":""}')
    for length in (100, 7_999, 8_000, 9_000, 1_000_000):
        args = {"body": "x" * (length - frame)}
        intent = world.planner.put(TOOL, args, run_id="r", step=f"s{length}")
        assert world.planner.get(intent) is not None
        stored = "SELECT length(args ->> 'body') FROM {s}.intent WHERE seq = :seq"
        assert world.one(stored, seq=intent.seq) == length - frame


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"a": {"b": [1, float("nan")]}}, "args.a.b[1]"),
        ({"a": float("inf")}, "args.a"),
        ({"a": 2**53}, "args.a"),
        ({"a": "x\x00"}, "args.a"),
        ({"a": "\ud800"}, "args.a"),
        ({"\ud800": 1}, "args"),
        ({"a": object()}, "args.a"),
        ({"a": "x" * 2**20}, "args"),
        ([1], "args"),
        ({"a": [[]] * 2, "b": datetime(2026, 1, 1)}, "args.b"),
    ],
)
def test_bad_arguments_are_refused_with_their_path(args: Any, path: str) -> None:
    """They are refused before the database is asked, and the message names the value's place."""
    with nowhere() as planner, pytest.raises(InvalidIntent) as error:
        planner.put(TOOL, args, run_id="r1", step="a")
    assert error.value.what.startswith(path)


@pytest.mark.parametrize(
    "names",
    [
        {"run_id": "a:b", "step": "s"},
        {"run_id": "r", "step": "s~1"},
        {"run_id": "r", "step": ""},
        {"run_id": "r"},
        {"intent_id": "x", "run_id": "r", "step": "s"},
        {"intent_id": "x~undo0"},
        {"intent_id": "x" * 195},
        {"intent_id": "x y"},
        {"intent_id": "x", "namespace": "a b"},
        {"intent_id": "x", "lane": "results"},
        {"intent_id": "x", "lane": "a.b"},
        {"intent_id": "x", "version": 0},
        {"intent_id": "x", "deadline": datetime(2026, 1, 1)},
        {"intent_id": "x", "read_set": {"stock": -1}},
        {"intent_id": "x", "held_for": "a b"},
        {"intent_id": "x", "traceparent": "\x00"},
    ],
)
def test_malformed_names_are_refused(names: dict[str, Any]) -> None:
    """Ids, lanes, versions and terms that could not be stored or served never get that far."""
    with nowhere() as planner, pytest.raises(InvalidIntent):
        planner.put(TOOL, ARGS, **names)


@pytest.mark.parametrize("lane", ["a", "A_-9", "results", "a.b", "", "x" * 64, "x" * 65, "é"])
def test_lanes_are_those_that_can_have_a_queue(lane: str) -> None:
    """What `put` takes as a lane and what a queue can be named after are the same."""
    try:
        check_lane(lane)
    except InvalidIntent:
        with pytest.raises(ValueError, match="lane"):
            queue_name(lane)
    else:
        assert queue_name(lane).endswith(lane)


def test_an_inserted_row_is_what_an_edge_into_its_state_would_write(world: World) -> None:
    """`put` writes the same columns as `entry`: none of the state's columns is forgotten."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    queued = world.planner.put(TOOL, ARGS, run_id="r", step="q", deadline=soon)
    held = world.planner.put(TOOL, ARGS, run_id="r", step="h", deadline=soon, held_for="two-eyes")
    for intent, state in ((queued, State.QUEUED), (held, State.HELD)):
        row = world.row(intent)
        expected = entry(state).change(
            Row(0, deadline=soon), Move("put", 0, state), GuardWorld(row["ready_at"] or soon)
        )
        for column, value in expected.items():
            assert (row[column] is None) == (value is None), column
        assert row["withdraw_at"] == row["deadline"] == soon
    assert world.rows("SELECT policy, decision, clock_started_at FROM {s}.gate") == [
        {"policy": "two-eyes", "decision": "open", "clock_started_at": None}
    ]


def test_not_before_delays_the_first_claim(world: World) -> None:
    """`ready_at` is the later of now and `not_before`."""
    later = datetime.now(UTC) + timedelta(hours=1)
    intent = world.planner.put(TOOL, ARGS, run_id="r", step="s", not_before=later)
    assert world.row(intent)["ready_at"] == later
    past = world.planner.put(TOOL, ARGS, run_id="r", step="t", not_before=later - timedelta(days=1))
    assert world.row(past)["ready_at"] < later


def test_defaults_of_a_signature_are_stored_and_are_no_conflict(world: World) -> None:
    """A new default changes what is stored, not what is compared."""

    @tool("notes.write", lane="slow")
    def before(call: Any, *, text: str) -> None:
        """Version before the default."""

    @tool("notes.write", lane="slow")
    def after(call: Any, *, text: str, loud: bool = False) -> None:
        """Version with the default."""

    first = world.planner.put(before.intent(text="a"), run_id="r", step="s")
    assert first.lane == "slow"
    assert world.planner.put(after.intent(text="a"), run_id="r", step="s").seq == first.seq
    second = world.planner.put(after.intent(text="a"), run_id="r", step="t")
    stored = "SELECT args, fingerprint, content FROM {s}.intent ORDER BY seq"
    rows = world.rows(stored)
    assert rows[1]["args"] == {"text": "a", "loud": False}
    assert rows[0]["fingerprint"] == rows[1]["fingerprint"]
    assert rows[0]["content"] != rows[1]["content"]
    assert second.created


def test_a_database_without_the_schema_names_the_next_command(empty_database_url: str) -> None:
    """Both on a connection of the caller and on our own."""
    planner = Planner(Database(empty_database_url))
    with caller(empty_database_url) as connection, pytest.raises(ConfigError) as error:
        planner.put(TOOL, ARGS, run_id="r", step="s", on=connection)
    assert error.value.next_step == "ackbox migrate"
    with pytest.raises(ConfigError):
        planner.put(TOOL, ARGS, run_id="r", step="s")
    planner.close()


def test_connect_without_a_url_names_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library call never starts a server; it says what to set or to run."""
    monkeypatch.delenv("ACKBOX_DATABASE_URL", raising=False)
    with pytest.raises(ConfigError) as error:
        Planner.connect()
    assert "ACKBOX_DATABASE_URL" in error.value.next_step
    assert "ackbox up" in error.value.next_step
    with Planner.connect(find_running=lambda: "postgresql://u@127.0.0.1:1/x") as planner:
        assert "127.0.0.1" not in repr(planner)


def test_something_else_as_transaction_is_refused(world: World) -> None:
    """An engine or a driver's connection is no transaction that we could join."""
    engine: Any = create_engine(world.url)
    with pytest.raises(ConfigError, match="Engine"):
        world.planner.put(TOOL, ARGS, run_id="r", step="s", on=engine)
    engine.dispose()


def test_a_batch_too_great_for_one_statement_is_split(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several statements, still all or nothing: the refusal of the last undoes the first."""
    monkeypatch.setattr(planner_store, "PUT_LIMIT_CHARACTERS", 5000)
    drafts = [
        world.planner.draft(TOOL, {"body": "x" * 1000}, run_id="r", step=f"s{number}")
        for number in range(20)
    ]
    world.put("taken")
    taken = world.planner.draft(TOOL, {"title": "other"}, run_id="r1", step="taken")
    with pytest.raises(Refused):
        world.planner.put_many([*drafts, taken])
    assert world.one("SELECT count(*) FROM {s}.intent") == 1
    assert all(intent.created for intent in world.planner.put_many(drafts))
