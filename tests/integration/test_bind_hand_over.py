"""Handing bound rows over, at least once: callbacks that raise, race and are killed."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ackbox.outbox.bind import BindReport
from ackbox.outbox.defaults import Limits
from ackbox.outbox.errors import ConfigError
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.planner.bound import Bound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import (
    ResultConsumer,
)
from ackbox.planner.shell.hand_over import Leases

from ..support.waiting import wait_until
from .planner_support import TOOL, World

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


def test_after_bound_runs_after_the_bind_is_durable(world: World) -> None:
    """It sees its own bind from another connection, has no transaction, and runs once."""
    plan = Plan()
    seen: list[Any] = []

    @plan.after_bound(TOOL)
    def hand_over(bound: Bound) -> None:
        seen.append(world.row(bound.intent)["bound_at"])
        with pytest.raises(ConfigError):
            _ = bound.session

    intent = settled(world)
    results = consumer(world, plan)
    report = results.run_once()
    assert (report.bound, report.handed) == (1, 1)
    assert len(seen) == 1
    assert seen[0] is not None
    assert world.row(intent)["handed_at"] is not None
    assert batches(world) == 0
    assert results.run_once() == BindReport()


def test_after_bound_that_raises_is_called_again(world: World) -> None:
    """The bind stays; the hand-over is tried until it returns."""
    plan = Plan()
    calls: list[int] = []

    @plan.after_bound(TOOL)
    def hand_over(bound: Bound) -> None:
        calls.append(bound.intent.seq)
        if len(calls) < 3:
            raise LookupError

    intent = settled(world)
    results = consumer(world, plan)
    for _ in range(4):
        results.run_once()
    assert len(calls) == 3
    assert world.row(intent)["handed_at"] is not None
    assert world.events(intent).count("hand_over_failed") == 2


def test_a_hand_over_lease_keeps_two_consumers_apart(world: World) -> None:
    """While one consumer is in its callback, another finds nothing to hand over."""
    plan = Plan()
    inside, go_on = threading.Event(), threading.Event()
    calls: list[int] = []

    @plan.after_bound(TOOL)
    def hand_over(bound: Bound) -> None:
        calls.append(bound.intent.seq)
        inside.set()
        assert go_on.wait(20)

    settled(world)
    first = threading.Thread(target=consumer(world, plan).run_once)
    first.start()
    assert inside.wait(20)
    # Even a second batch with the same row, as after an expired lease of the batch.
    world.rows("UPDATE {s}.settled_batch SET due_at = now()")
    assert consumer(world, plan).run_once().handed == 0
    go_on.set()
    first.join(20)
    assert len(calls) == 1


KILLED = """
import os, signal, sys
from sqlalchemy import text
from ackbox.outbox.shell.database import Database
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.planner.shell.hand_over import Leases

plan = Plan()
database = Database(sys.argv[1])

def die(bound):
    os.kill(os.getpid(), signal.SIGKILL)

def on_bound(bound):
    bound.session.execute(text("INSERT INTO step VALUES ('x')"))
    if sys.argv[2] == "inside":
        die(bound)

plan.on_bound("tickets.create")(on_bound)
plan.after_bound("tickets.create")(die)
ResultConsumer(database, plan, leases=Leases(0.05, 0.05)).run_once()
"""


@pytest.mark.parametrize("where", ["inside", "after"])
def test_a_consumer_killed_in_a_callback_loses_nothing(
    world: World, tmp_path: Path, where: str
) -> None:
    """Killed inside on_bound: nothing is bound, and it is done anew. Killed between bind and
    hand-over: the bind stands, on_bound is not called again, after_bound is.
    """
    world.rows("CREATE TABLE step (name text)")
    intent = settled(world)
    script = tmp_path / "consumer.py"
    script.write_text(KILLED)
    process = subprocess.run(
        [sys.executable, str(script), world.url, where],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        timeout=60,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: no_other_session(world), message="the dead consumer's session")
    assert (world.row(intent)["bound_at"] is not None) == (where == "after")
    handed: list[int] = []
    plan = Plan()

    @plan.on_bound(TOOL)
    def advance(bound: Bound) -> None:
        bound.session.execute(text("INSERT INTO step VALUES ('y')"))

    plan.after_bound(TOOL)(lambda bound: handed.append(bound.intent.seq))
    results = consumer(world, plan, leases=Leases(0.05, 0.05))
    wait_until(lambda: results.run_once().handed, message="handed over again")
    assert handed == [intent.seq]
    steps = [row["name"] for row in world.rows("SELECT name FROM step")]
    assert steps == (["y"] if where == "inside" else ["x"])
    assert batches(world) == 0


def no_other_session(world: World) -> bool:
    """Say whether only this process is connected."""
    statement = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%'"
    )
    return bool(world.one(statement) == 0)
