"""Transactions on real Postgres: what is repeated, what is rolled back, and what is told."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from ackbox.outbox.errors import StoreUnavailable
from ackbox.outbox.shell.database import CommitUnknown, LockTimeout

from ..support.small_table import (
    CHANGE,
    PID,
    Maker,
    add_table,
    admin,
    maker_for,
    numbers,
    raising,
)
from ..support.tcp_proxy import commit_cutter
from ..support.waiting import wait_until


@pytest.fixture
def url(empty_database_url: str) -> str:
    """Give a database with a small table: id 1 and 2, n = 0."""
    return add_table(empty_database_url)


@pytest.fixture
def make(url: str) -> Iterator[Maker]:
    """Give a maker of databases that are disposed of after the test."""
    with maker_for(url) as maker:
        yield maker


def test_work_commits_and_returns(make: Maker, url: str) -> None:
    """What the work wrote is there when `run` returns."""
    assert make().run(lambda c: c.execute(CHANGE, {"id": 1}).rowcount) == 1
    assert numbers(url) == [1, 0]


def test_an_error_of_the_work_rolls_back_and_is_not_repeated(make: Maker, url: str) -> None:
    """An exception of the caller's own is raised as it is, once."""
    calls = []

    def work(connection: Connection) -> None:
        calls.append(connection.execute(CHANGE, {"id": 1}))
        raise KeyError("mine")

    with pytest.raises(KeyError):
        make().run(work)
    assert (len(calls), numbers(url)) == (1, [0, 0])


def test_a_real_serialization_failure_repeats_the_transaction(make: Maker, url: str) -> None:
    """Case 125: 40001 repeats the whole transaction, which then succeeds."""
    pids = []

    def work(connection: Connection) -> None:
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        pids.append(connection.scalar(PID))
        if len(pids) == 1:
            with admin(url) as other:
                other.execute("UPDATE t SET n = 10 WHERE id = 1")
        connection.execute(CHANGE, {"id": 1})

    make().run(work)
    assert (len(pids), numbers(url)) == (2, [11, 0])


def test_a_real_deadlock_repeats_the_victim(make: Maker, url: str) -> None:
    """Case 125: of two transactions that lock in opposite order both succeed in the end."""
    database = make(lock_timeout_seconds=10)
    both_locked, calls = threading.Barrier(2), []

    def lock(first: int, second: int) -> None:
        mine = []

        def work(connection: Connection) -> None:
            mine.append(first)
            calls.append(first)
            connection.execute(CHANGE, {"id": first})
            if len(mine) == 1:
                both_locked.wait(10)
            connection.execute(CHANGE, {"id": second})

        database.run(work)

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(lock, 1, 2), threads.submit(lock, 2, 1)]:
            one.result(30)
    assert (len(calls), numbers(url)) == (3, [2, 2])


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "25006", "57P03", "53300", "08006"])
def test_repeats_are_bounded(make: Maker, sqlstate: str) -> None:
    """After the last attempt the store is told to be unavailable."""
    calls = []

    def work(connection: Connection) -> None:
        calls.append(sqlstate)
        raising(sqlstate)(connection)

    with pytest.raises(StoreUnavailable):
        make().run(work, attempts=3)
    assert len(calls) == 3


def test_a_refused_statement_is_not_repeated(make: Maker) -> None:
    """A constraint's no stays an error of the driver's kind."""
    calls = []

    def work(connection: Connection) -> None:
        calls.append(connection.execute(text("INSERT INTO t VALUES (1, 0)")))

    with pytest.raises(DBAPIError, match="duplicate key"):
        make().run(work)
    assert calls == []


def test_a_locked_row_is_told_and_not_repeated(make: Maker, url: str) -> None:
    """A caller decides what to do about a row that another transaction holds."""
    calls = []

    def work(connection: Connection) -> None:
        calls.append(connection.scalar(PID))
        connection.execute(CHANGE, {"id": 1})

    with make().engine.begin() as holder:
        holder.execute(CHANGE, {"id": 1})
        with pytest.raises(LockTimeout):
            make(lock_timeout_seconds=0.05).run(work)
    assert len(calls) == 1


def test_a_killed_backend_repeats_the_transaction(make: Maker, url: str) -> None:
    """What the lost connection wrote is gone, and is written once by the next."""
    pids = []

    def work(connection: Connection) -> None:
        pids.append(connection.scalar(PID))
        connection.execute(CHANGE, {"id": 1})
        if len(pids) == 1:
            with admin(url) as session:
                session.execute("SELECT pg_terminate_backend(%s, 5000)", [pids[0]])
        connection.execute(CHANGE, {"id": 2})

    make().run(work)
    assert len(set(pids)) == 2
    assert numbers(url) == [1, 1]


def test_connections_that_died_in_the_pool_are_replaced(make: Maker, url: str) -> None:
    """After a restart of the server the first use of each process succeeds."""
    database = make()
    first, second = database.engine.connect(), database.engine.connect()
    dead = {first.scalar(PID), second.scalar(PID)}
    first.close()
    second.close()
    with admin(url) as session:
        for pid in dead:
            session.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert database.run(lambda connection: connection.scalar(PID)) not in dead


def test_a_lost_commit_is_told_where_the_caller_asks(make: Maker, url: str) -> None:
    """Case 127: the server committed, the answer was lost: nobody may guess."""
    with commit_cutter(url) as proxy:
        database = make(proxy.url)
        proxy.cut_next("after")
        with pytest.raises(CommitUnknown) as told:
            database.run(lambda c: c.execute(CHANGE, {"id": 1}).rowcount, commit_lost="raise")
        assert proxy.cuts == ["after"]
        assert "may have been committed" in str(told.value)
        assert numbers(url) == [1, 0]
        database.dispose()


def test_a_commit_that_never_arrived_looks_the_same(make: Maker, url: str) -> None:
    """Case 127: the same answer, though nothing was committed."""
    with commit_cutter(url) as proxy:
        database = make(proxy.url)
        proxy.cut_next("before")
        with pytest.raises(CommitUnknown):
            database.run(lambda c: c.execute(CHANGE, {"id": 1}).rowcount, commit_lost="raise")
        assert numbers(url) == [0, 0]
        database.dispose()


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_commit_is_repeated_by_default(make: Maker, url: str, cut: str) -> None:
    """Idempotent work, such as insert-or-get, ends with one row whatever the server did."""
    put = text("INSERT INTO t VALUES (3, 7) ON CONFLICT DO NOTHING")
    with commit_cutter(url) as proxy:
        database = make(proxy.url)
        proxy.cut_next(cut)  # type: ignore[arg-type]
        inserted = database.run(lambda connection: connection.execute(put).rowcount)
        assert inserted == (1 if cut == "before" else 0)
        assert numbers(url) == [0, 0, 7]
        database.dispose()


def test_commits_lost_again_and_again_end(make: Maker, url: str) -> None:
    """The last attempt's unknown is told as unknown, not as a failure."""
    with commit_cutter(url) as proxy:
        database = make(proxy.url)
        proxy.cut_next("before", "before")
        with pytest.raises(CommitUnknown):
            database.run(lambda c: c.execute(CHANGE, {"id": 1}).rowcount, attempts=2)
        database.dispose()


def test_a_demoted_server_is_left_by_the_whole_pool(make: Maker, url: str) -> None:
    """Case 121: 25006 discards every connection, and writes resume when the server does."""
    name = make_url(url).database
    flip = f'ALTER DATABASE "{name}" SET default_transaction_read_only = '
    with admin(url) as session:
        session.execute(flip + "on")
    database, pids = make(), []
    idle = database.engine.connect()
    idle_pid = idle.scalar(PID)

    def work(connection: Connection) -> None:
        pids.append(connection.scalar(PID))
        if len(pids) == 2:
            with admin(url) as session:
                session.execute("SET default_transaction_read_only = off")
                session.execute(flip + "off")
        connection.execute(CHANGE, {"id": 1})

    idle.close()
    with database.engine.connect() as busy:
        assert busy.scalar(PID) == idle_pid
        database.run(work)
    assert len(set(pids)) == 3
    assert numbers(url) == [1, 0]
    assert database.run(lambda connection: connection.scalar(PID)) != idle_pid


def test_a_plan_that_a_migration_outdated_is_planned_again(make: Maker, url: str) -> None:
    """A prepared `SELECT *` meets a new column and the caller does not notice."""
    database = make()
    question = text("SELECT * FROM t WHERE id = 1")
    for _ in range(5):
        assert len(database.run(lambda connection: connection.execute(question).one())) == 2
    with admin(url) as session:
        session.execute("ALTER TABLE t ADD COLUMN extra integer")
    assert len(database.run(lambda connection: connection.execute(question).one())) == 3


def test_a_slow_statement_is_ended(make: Maker) -> None:
    """The time-out is the session's own, and waiting as long again is not tried."""
    calls = []

    def work(connection: Connection) -> None:
        calls.append(1)
        connection.execute(text("SELECT pg_sleep(30)"))

    with pytest.raises(StoreUnavailable, match="statement timeout"):
        make(statement_timeout_seconds=0.1).run(work)
    assert calls == [1]


def test_an_idle_transaction_is_ended(make: Maker, url: str) -> None:
    """Case 131: a transaction left open cannot keep its locks for long."""
    pids = []

    def work(connection: Connection) -> None:
        pids.append(connection.scalar(PID))
        if len(pids) == 1:
            wait_until(lambda: not _is_alive(url, pids[0]), message="the session is ended")
        connection.execute(CHANGE, {"id": 1})

    make(idle_in_transaction_seconds=0.1).run(work)
    assert (len(pids), numbers(url)) == (2, [1, 0])


def _is_alive(url: str, pid: object) -> bool:
    with admin(url) as session:
        question = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        return session.execute(question, [pid]).fetchone() is not None


def test_a_full_pool_is_told(make: Maker) -> None:
    """The pool never grows beyond its size, and waiting for it is bounded."""
    database = make(pool_size=1, pool_wait_seconds=0.05)
    with (
        database.engine.connect(),
        pytest.raises(StoreUnavailable, match="every connection of the pool"),
    ):
        database.run(lambda connection: None)
