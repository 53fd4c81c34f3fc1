"""Binding and handing over, on real Postgres, with consumers that race, fail and are killed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import DBAPIError

from ackbox.outbox.bind import BindReport
from ackbox.outbox.defaults import Limits
from ackbox.outbox.errors import ConfigError
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import Actor, State
from ackbox.outbox.shell.divergence import diverge
from ackbox.outbox.told import Committed, InFlight
from ackbox.planner.bound import Bound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import (
    ResultConsumer,
    consume_token,
    install_consumer_factory,
)

from ..support.waiting import wait_until
from .planner_support import TOOL, World, race

# Back-off would only make the tests wait; leases stay long enough to be seen.
AT_ONCE = Limits(backoff_base_seconds=0.0)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def consumer(world: World, plan: Plan, **options: Any) -> ResultConsumer:
    """Return a consumer of the world that tries again at once."""
    return ResultConsumer(world.database, plan, limits=AT_ONCE, **options)


def settled(world: World, step: str = "open", state: State = State.COMMITTED) -> Intent:
    """Put a step and settle it."""
    return world.to(state, world.put(step))


def batches(world: World) -> int:
    """Count the batches that wait."""
    return int(world.one("SELECT count(*) FROM {s}.settled_batch"))


@pytest.mark.parametrize("state", [State.COMMITTED, State.FAILED])
def test_a_settled_row_is_bound_once(world: World, state: State) -> None:
    """Binding writes `bound_at`, forgets the batch, and has nothing to do the next time."""
    intent = settled(world, state=state)
    assert world.consumer.run_once().bound == 1
    assert world.row(intent)["bound_at"] is not None
    assert batches(world) == 0
    assert world.consumer.run_once() == BindReport()


def test_a_pass_without_callbacks_is_two_statements(world: World) -> None:
    """However many batches are due, they are found in one statement and bound in one."""
    for number in range(5):
        settled(world, f"s{number}")
    assert batches(world) == 5
    executed: list[str] = []
    here = threading.get_ident()

    def count(_c: object, _cur: object, statement: str, *_rest: object) -> None:
        # The planner's bell rings on the same engine, from a thread of its own.
        if threading.get_ident() == here:
            executed.append(statement)

    event.listen(world.database.engine, "before_cursor_execute", count)
    assert world.consumer.run_once().bound == 5
    assert len(executed) == 2


def test_a_redelivered_batch_is_a_duplicate(world: World) -> None:
    """The same settled row in a second batch binds nothing and calls nothing again."""
    calls: list[int] = []
    plan = Plan()
    plan.on_bound(TOOL)(lambda bound: calls.append(bound.intent.seq))
    intent = settled(world)
    again = (
        "INSERT INTO {s}.settled_batch (stage, seqs, due_at) VALUES ('settled', ARRAY[:q], now())"
    )
    world.rows(again, q=intent.seq)
    report = consumer(world, plan).run_once()
    assert (report.bound, report.duplicate, calls) == (1, 1, [intent.seq])


def test_two_consumers_bind_each_row_once(world: World) -> None:
    """Case 159: four consumers at once, twenty rows: each on_bound commits once."""
    world.rows("CREATE TABLE {s}.advance (seq bigint)")
    plan = Plan()

    @plan.on_bound(TOOL)
    def advance(bound: Bound) -> None:
        bound.connection.execute(
            text("INSERT INTO ackbox.advance VALUES (:seq)"), {"seq": bound.intent.seq}
        )

    intents = [settled(world, f"s{number}") for number in range(20)]
    race(*[lambda: consumer(world, plan).drain()] * 4)
    seqs = [row["seq"] for row in world.rows("SELECT seq FROM {s}.advance ORDER BY seq")]
    assert seqs == sorted(intent.seq for intent in intents)


def test_on_bound_puts_the_next_step_with_the_bind(world: World) -> None:
    """The bind, the planner's own row and the next step are one transaction, rung afterwards."""
    world.rows("CREATE TABLE step (name text)")
    rung: list[set[str]] = []
    plan = Plan()

    @plan.on_bound(TOOL)
    def next_step(bound: Bound) -> None:
        assert isinstance(bound.told, Committed)
        assert bound.told.result == {"id": bound.intent.seq}
        bound.session.execute(text("INSERT INTO step VALUES ('second')"))
        world.planner.put("mail.send", {}, run_id="r1", step="second", on=bound.session)

    intent = settled(world)
    consumer(world, plan, rung=lambda lanes: rung.append(set(lanes))).run_once()
    assert world.row(intent)["bound_at"] is not None
    assert world.one("SELECT count(*) FROM step") == 1
    told = world.planner.get(("r1", "second"))
    assert isinstance(told, InFlight)
    assert rung == [{"default"}]


def test_raising_undoes_the_bind_and_others_go_on(world: World) -> None:
    """What the callback wrote is gone, an event says so, the next row is bound; later it binds."""
    world.rows("CREATE TABLE step (name text)")
    plan = Plan()
    failing = True

    @plan.on_bound(TOOL)
    def next_step(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        if failing and bound.intent.step == "bad":
            raise LookupError("holds a secret")

    bad, good = settled(world, "bad"), settled(world, "good")
    results = consumer(world, plan)
    assert results.run_once().bound == 1
    assert world.row(bad)["bound_at"] is None
    assert world.row(good)["bound_at"] is not None
    assert world.one("SELECT count(*) FROM step") == 1
    noted = "SELECT reason FROM {s}.event WHERE seq = :seq AND name = 'bind_failed'"
    assert world.one(noted, seq=bad.seq) == "LookupError"
    failing = False
    assert results.run_once().bound == 1
    assert world.row(bad)["bound_at"] is not None
    assert batches(world) == 0


def swallows(bound: Bound) -> None:
    """Let a statement fail and go on as if nothing were."""
    with suppress(DBAPIError):
        bound.connection.execute(text("SELECT 1 / 0"))


def rolls_back(bound: Bound) -> None:
    """End the transaction that is not the callback's to end."""
    bound.connection.rollback()


def leaves_garbage(bound: Bound) -> None:
    """Leave something in the session that cannot be flushed."""
    bound.session.add(object())


@pytest.mark.parametrize("callback", [swallows, rolls_back, leaves_garbage])
def test_a_callback_that_spoils_the_transaction_loses_no_bind(
    world: World, callback: Callable[[Bound], None]
) -> None:
    """COMMIT of a failed transaction is a silent rollback: it counts as a failed callback."""
    plan = Plan()
    plan.on_bound(TOOL)(callback)
    intent = settled(world)
    assert consumer(world, plan).run_once().bound == 0
    assert world.row(intent)["bound_at"] is None
    assert batches(world) == 1
    assert "bind_failed" in world.events(intent)
    assert consumer(world, Plan()).run_once().bound == 1


def test_a_failing_row_backs_off(world: World) -> None:
    """The second try is not at once: with the default limits nothing is due right afterwards."""
    plan = Plan()
    calls: list[int] = []

    @plan.on_bound(TOOL)
    def fail(bound: Bound) -> None:
        calls.append(bound.intent.seq)
        raise LookupError

    settled(world)
    results = ResultConsumer(world.database, plan)
    results.run_once()
    results.run_once()
    assert len(calls) == 1
    assert batches(world) == 1


def test_what_must_wait_is_not_bound(world: World) -> None:
    """Rows with an open undo or divergence are dropped from the batch; a later batch binds them."""
    undone, diverged = settled(world, "undone"), settled(world, "diverged")
    world.rows("UPDATE {s}.intent_state SET undo = 99 WHERE seq = :seq", seq=undone.seq)
    world.database.run(
        lambda c: diverge(c, world.statements, diverged.seq, actor=Actor.WORKER, reason="test")
    )
    assert world.consumer.run_once() == BindReport()
    assert batches(world) == 0
    world.rows("UPDATE {s}.intent_state SET undo = NULL, diverged_at = NULL")
    world.rows(
        "INSERT INTO {s}.settled_batch (stage, seqs, due_at)"
        " SELECT 'settled', array_agg(seq), now() FROM {s}.intent_state"
    )
    assert world.consumer.run_once().bound == 2


def test_the_loop_binds_by_itself_and_stops(world: World) -> None:
    """A wake ends its wait early; a stop ends it."""
    stop = threading.Event()
    results = ResultConsumer(world.database, poll_seconds=30)
    thread = threading.Thread(target=results.run, args=(stop,))
    thread.start()
    intent = settled(world)
    results.wake()
    wait_until(lambda: world.row(intent)["bound_at"])
    stop.set()
    results.wake()
    thread.join(20)
    assert not thread.is_alive()


def test_a_token_binds_what_is_due(world: World) -> None:
    """What the result queue's token runs: the process's consumer drains."""
    intent = settled(world)
    install_consumer_factory(lambda: world.consumer)
    try:
        consume_token("default")
    finally:
        install_consumer_factory(None)
    assert world.row(intent)["bound_at"] is not None


def test_one_plan_has_one_function_of_a_kind_for_a_tool() -> None:
    """Two would leave open which of them runs first in one transaction."""
    plan = Plan()
    plan.on_bound(TOOL)(lambda bound: None)
    plan.after_bound(TOOL)(lambda bound: None)
    with pytest.raises(ConfigError, match="already"):
        plan.on_bound(TOOL)(lambda bound: None)
    with pytest.raises(ConfigError, match="names no tool"):
        plan.on_bound(3)
    assert repr(plan) == f"Plan({TOOL})"


def test_a_bind_waits_for_a_supersede_and_is_then_stale(world: World) -> None:
    """The row is superseded while the bind waits for its lock: what binds is what is live then."""
    intent = settled(world)
    done = threading.Event()

    def supersede(connection: Connection) -> None:
        world.planner.supersede(intent, 0, {"title": "x"}, on=connection)
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: world.one(waiting) > 0)
        done.set()

    reports = race(lambda: world.database.run(supersede), lambda: bind_once_locked(world, intent))
    assert done.is_set()
    assert (reports[1].bound, reports[1].stale) == (0, 1)
    assert world.row(intent)["bound_at"] is None


def bind_once_locked(world: World, intent: Intent) -> BindReport:
    """Run a pass once another transaction holds the row."""
    probe = "SELECT seq FROM {s}.intent_state WHERE seq = :q FOR UPDATE SKIP LOCKED"
    wait_until(lambda: world.one(probe, q=intent.seq) is None)
    return world.consumer.run_once()
