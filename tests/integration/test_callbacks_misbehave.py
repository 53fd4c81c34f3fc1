"""Callbacks that exit, commit, roll back, take too long or return the wrong thing."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from ackbox.outbox.defaults import Limits
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.shell.database import Database
from ackbox.planner.bound import Bound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.planner.shell.hand_over import Leases

from ..support.waiting import wait_until
from .planner_support import TOOL, World

AT_ONCE = Limits(backoff_base_seconds=0.0)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner, and a table of the plan's own."""
    world = World(database_url)
    world.rows("CREATE TABLE step (name text)")
    yield world
    world.close()


def consumer(world: World, plan: Plan, **options: Any) -> ResultConsumer:
    """Return a consumer of the world that tries again at once."""
    return ResultConsumer(world.database, plan, limits=AT_ONCE, **options)


def settled(world: World, step: str = "open") -> Intent:
    """Put a step and settle it."""
    return world.to(State.COMMITTED, world.put(step))


def steps(world: World) -> int:
    """Count what callbacks have written for good."""
    return int(world.one("SELECT count(*) FROM step"))


def reasons(world: World, intent: Intent) -> list[str]:
    """Return the reasons for which binds of a row were undone."""
    found = world.rows(
        "SELECT reason FROM {s}.event WHERE seq = :seq AND name = 'bind_failed'", seq=intent.seq
    )
    return [row["reason"] for row in found]


def in_thread(work: Callable[[], object]) -> None:
    """Run something where the consumer role runs it: not in the main thread."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_exiting_is_a_failure_in_a_consumers_thread(
    error: type[BaseException], world: World
) -> None:
    """sys.exit() in a callback ends neither the thread nor the bus; the bind is undone."""
    plan = Plan()

    @plan.on_bound(TOOL)
    def leave(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        raise error

    intent = settled(world)
    in_thread(consumer(world, plan).run_once)
    assert (world.row(intent)["bound_at"], steps(world)) == (None, 0)
    assert reasons(world, intent) == [error.__name__]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_exiting_is_meant_for_the_process_in_its_main_thread(
    error: type[BaseException], world: World
) -> None:
    """Ctrl-C in a consumer of one's own goes up; nothing is bound, and the row comes again."""
    plan = Plan()

    @plan.on_bound(TOOL)
    def leave(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        raise error

    intent = settled(world)
    with pytest.raises(error):
        consumer(world, plan, leases=Leases(bind_seconds=0.05)).run_once()
    assert (world.row(intent)["bound_at"], steps(world)) == (None, 0)
    calm = consumer(world, Plan())
    wait_until(lambda: calm.run_once().bound == 1, message="it is bound later")


def commits_connection(bound: Bound) -> None:
    """Commit what is not the callback's to commit."""
    bound.connection.execute(text("INSERT INTO step VALUES ('x')"))
    bound.connection.commit()


def rolls_session_back(bound: Bound) -> None:
    """Undo the bind by the session, and go on as if nothing were."""
    bound.session.execute(text("INSERT INTO step VALUES ('x')"))
    bound.session.rollback()
    bound.session.execute(text("INSERT INTO step VALUES ('y')"))


def closes_connection(bound: Bound) -> None:
    """Give the connection back."""
    bound.connection.close()


def returns_a_coroutine(bound: Bound) -> object:
    """Be an async function that does not look like one."""

    async def later() -> None:
        raise AssertionError("nobody awaits this")

    return later()


@pytest.mark.parametrize(
    "callback", [commits_connection, rolls_session_back, closes_connection, returns_a_coroutine]
)
def test_a_callback_that_ends_the_transaction_binds_nothing(
    world: World, callback: Callable[[Any], Any]
) -> None:
    """The bind and what it wrote are undone, said on record, and a better callback binds later."""
    plan = Plan()
    plan.on_bound(TOOL)(callback)
    intent = settled(world)
    assert consumer(world, plan).run_once().bound == 0
    assert (world.row(intent)["bound_at"], steps(world)) == (None, 0)
    assert len(reasons(world, intent)) == 1
    assert consumer(world, Plan()).run_once().bound == 1
    # Nothing was left in a connection for the next transaction to commit.
    assert steps(world) == 0


def test_a_callback_that_commits_by_sql_is_found_out(world: World) -> None:
    """Nothing can take that COMMIT back, but it is said on record and not passed over."""
    plan = Plan()

    @plan.on_bound(TOOL)
    def commits(bound: Bound) -> None:
        bound.connection.execute(text("COMMIT"))

    intent = settled(world)
    assert consumer(world, plan).run_once().bound == 0
    assert reasons(world, intent) == ["TransactionEnded"]


def test_a_session_commit_only_flushes(world: World) -> None:
    """Code that is shared with handlers may call commit on its session; nothing is early."""
    plan = Plan()
    early: list[int] = []

    @plan.on_bound(TOOL)
    def next_step(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        bound.session.commit()
        early.append(steps(world))

    settled(world)
    assert consumer(world, plan).run_once().bound == 1
    assert (early, steps(world)) == ([0], 1)


def test_a_callback_that_outlives_its_session_says_so(world: World) -> None:
    """Postgres ends a transaction that is idle for too long: undone, recorded by that name."""
    plan = Plan()
    slow = True

    @plan.on_bound(TOOL)
    def next_step(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        if slow:
            wait_until(lambda: no_idle_transaction(world), message="the session is ended")

    database = Database(world.url, idle_in_transaction_seconds=0.2)
    results = ResultConsumer(database, plan, limits=AT_ONCE)
    intent = settled(world)
    assert results.run_once().bound == 0
    assert reasons(world, intent) == ["IdleInTransactionSessionTimeout"]
    slow = False
    assert results.run_once().bound == 1
    assert steps(world) == 1
    database.dispose()


def no_idle_transaction(world: World) -> bool:
    """Say whether no session sits in a transaction without working."""
    idle = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%'"
    )
    return bool(world.one(idle) == 0)


def test_a_row_that_another_consumer_is_binding_holds_nobody_up(world: World) -> None:
    """The lease of a batch has passed in a slow on_bound: the next row binds all the same."""
    plan = Plan()
    inside, go_on = threading.Event(), threading.Event()

    @plan.on_bound(TOOL)
    def next_step(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('x')"))
        if bound.intent.step == "slow":
            inside.set()
            assert go_on.wait(60)

    slow, quick = settled(world, "slow"), settled(world, "quick")
    patient = Database(world.url, idle_in_transaction_seconds=60)
    leases = Leases(bind_seconds=0.05)
    first = ResultConsumer(patient, plan, limits=AT_ONCE, leases=leases)
    thread = threading.Thread(target=first.run_once)
    thread.start()
    assert inside.wait(60)
    hasty = Database(world.url, lock_timeout_seconds=0.1)
    second = ResultConsumer(hasty, plan, limits=AT_ONCE, leases=leases)
    wait_until(lambda: second.run_once().bound == 1, message="the quick row is bound")
    assert world.row(quick)["bound_at"] is not None
    assert world.row(slow)["bound_at"] is None
    go_on.set()
    thread.join(60)
    assert world.row(slow)["bound_at"] is not None
    assert (steps(world), reasons(world, slow)) == (2, [])
    patient.dispose()
    hasty.dispose()


def raises(bound: Bound) -> None:
    """Fail."""
    raise LookupError


def test_a_bound_row_whose_tool_lost_its_callback_is_not_called_and_not_kept(world: World) -> None:
    """A plan that has other callbacks takes such a row off the list of what waits."""
    before, after = Plan(), Plan()
    before.after_bound(TOOL)(raises)
    after.after_bound("mail.send")(raises)
    intent = settled(world)
    consumer(world, before).run_once()
    assert world.events(intent).count("hand_over_failed") == 1
    consumer(world, after, leases=Leases(kept_seconds=0.0)).run_once()
    assert world.one("SELECT count(*) FROM {s}.settled_batch") == 0


def test_an_older_plan_hands_nothing_over_for_a_newer_one(world: World) -> None:
    """While a plan is rolled out, its at-least-once holds beside consumers without the function."""
    old, new = Plan(), Plan()
    old.after_bound("mail.send")(raises)
    calls: list[Bound] = []
    new.after_bound(TOOL)(raises)
    intent = settled(world)
    consumer(world, new).run_once()
    new = Plan()
    new.after_bound(TOOL)(calls.append)
    consumer(world, old).run_once()
    assert world.row(intent)["handed_at"] is None
    consumer(world, new).run_once()
    assert [bound.intent.seq for bound in calls] == [intent.seq]
    assert world.one("SELECT count(*) FROM {s}.settled_batch") == 0
