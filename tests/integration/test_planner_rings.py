"""Rings: after the commit, merged, with the lane and nothing else, and never in the way."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from ackbox.outbox.defaults import Limits
from ackbox.outbox.model import State
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.notify import channel_name
from ackbox.outbox.shell.redis_bus import TokenBus
from ackbox.outbox.shell.statements import Statements
from ackbox.outbox.told import InFlight
from ackbox.planner.shell.bell import PlannerBell
from ackbox.planner.shell.planner import Planner

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .planner_support import TOOL, World, caller

ARGS = {"title": "VPN"}


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


class Ears:
    """Hears the rings of a schema on a connection of its own."""

    def __init__(self, world: World) -> None:
        self._connection = world.database.listen_connection()
        self._connection.execute(f'LISTEN "{channel_name("ackbox")}"'.encode())

    def heard(self, seconds: float = DEADLINE_SECONDS) -> list[str]:
        """Return what came first, each payload once; nothing when the time is over."""
        found = self._connection.notifies(timeout=seconds, stop_after=1)
        return sorted({one.payload for one in found})

    def close(self) -> None:
        """Stop listening."""
        self._connection.close()


@pytest.fixture
def ears(world: World) -> Iterator[Ears]:
    """Give a listener."""
    ears = Ears(world)
    yield ears
    ears.close()


def test_note_timeout_mints_and_deletes_nothing(world: World, ears: Ears) -> None:
    """It writes one event and rings the lane; the row stays as it was."""
    intent = world.to(State.AWAITING_ACK, world.put())
    ears.heard()
    before = world.row(intent)
    world.planner.note_timeout(intent)
    world.planner.note_timeout(("r1", "open"))
    assert world.row(intent) == before
    assert world.events(intent).count("planner_timeout") == 2
    assert world.one("SELECT count(*) FROM {s}.intent") == 1
    assert ears.heard() == ["default"]


def test_a_put_of_our_own_rings_its_lane(world: World, ears: Ears) -> None:
    """The payload is the lane and nothing else."""
    world.put(lane="slow")
    assert ears.heard() == ["slow"]


def test_a_session_rings_after_its_commit_only(world: World, ears: Ears) -> None:
    """Nothing is rung before, nor at the end of a savepoint, nor for a rollback."""
    engine = create_engine(world.url)
    with Session(engine) as session:
        with session.begin_nested():
            world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=session)
        assert ears.heard(0.3) == []
        session.rollback()
        assert ears.heard(0.3) == []
        world.planner.put(TOOL, ARGS, run_id="r1", step="b", on=session)
        session.commit()
        assert ears.heard() == ["default"]
    engine.dispose()


def test_a_planners_transaction_rings_after_its_commit(world: World, ears: Ears) -> None:
    """A bare connection has no event after COMMIT: the context manager rings."""
    engine = create_engine(world.url)
    with world.planner.transaction(engine) as connection:
        world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=connection)
        assert ears.heard(0.3) == []
    assert ears.heard() == ["default"]
    with suppress(LookupError), world.planner.transaction() as connection:
        world.planner.put(TOOL, ARGS, run_id="r1", step="b", on=connection)
        raise LookupError
    assert ears.heard(0.3) == []
    assert world.planner.get(("r1", "b")) is None
    engine.dispose()


def test_ring_rings_what_was_put_on_bare_connections(world: World, ears: Ears) -> None:
    """Without the context manager the caller rings after COMMIT, or the relay's poll does it."""
    with caller(world.url) as connection:
        world.planner.put(TOOL, ARGS, run_id="r1", step="a", on=connection)
        connection.commit()
    assert ears.heard(0.3) == []
    world.planner.ring()
    assert ears.heard() == ["default"]
    world.planner.ring()
    assert ears.heard(0.3) == []


def test_rings_are_merged(world: World) -> None:
    """A thousand rings in one debounce time are a handful of notifications."""
    bell = PlannerBell(world.database, Statements("ackbox", Limits()), debounce_seconds=0.2)
    ears = Ears(world)
    began = time.monotonic()
    for _ in range(1000):
        bell.ring(["a"])
    assert bell.wait_silent(DEADLINE_SECONDS)
    turns = (time.monotonic() - began) / 0.2
    count = 0
    while ears.heard(0.3):
        count += 1
    assert 1 <= count <= turns + 2
    bell.close()
    ears.close()


def test_a_ring_never_fails_a_put(world: World) -> None:
    """The bell's connection is gone; the intent is stored all the same."""
    nowhere = Database("postgresql://nobody@127.0.0.1:1/nothing")
    planner = Planner(world.database)
    bell = PlannerBell(nowhere, Statements("ackbox", Limits()))
    parts: Any = planner._parts
    parts.passage.bell = bell
    assert planner.put(TOOL, ARGS, run_id="r1", step="a").created
    assert bell.wait_silent(DEADLINE_SECONDS)
    assert bell.failed == 1
    bell.close()


def test_with_redis_a_token_is_put_instead(world: World, redis_url: str, ears: Ears) -> None:
    """The bus rings; NOTIFY stands in where Redis does not answer."""
    bus = TokenBus(redis_url)
    with_redis = Planner(world.database, bus=bus)
    with_redis.put(TOOL, ARGS, run_id="r1", step="a")
    wait_until(lambda: bus.counts.get("rung", 0) == 1)
    assert ears.heard(0.3) == []
    without = Planner(world.database, bus=TokenBus("redis://127.0.0.1:1/0"))
    without.put(TOOL, ARGS, run_id="r1", step="b")
    assert ears.heard() == ["default"]
    with_redis.close()
    without.close()
    bus.close()


def test_long_schema_names_have_a_channel_of_their_own() -> None:
    """LISTEN cuts names at 63 bytes: two long schemas must not share a channel by it."""
    one, two = (channel_name("x" * 62 + end) for end in "ab")
    assert channel_name("ackbox") == "ackbox_ackbox"
    assert one != two
    assert len(one.encode()) <= 63


def test_a_forked_child_rings_and_waits_with_threads_of_its_own(world: World) -> None:
    """The parent's threads do not exist in the child; it starts its own and leaves the parent's."""
    world.put("before")
    world.planner.wait(("r1", "before"), timeout_seconds=0.05)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            intent = world.put("child")
            told = world.planner.wait(intent, timeout_seconds=0.1)
            parts: Any = world.planner._parts
            rung = parts.passage.bell.wait_silent(DEADLINE_SECONDS)
            code = 0 if isinstance(told, InFlight) and rung else 2
        finally:
            os.write(write, bytes([code]))
            os._exit(code)
    os.waitpid(pid, 0)
    assert os.read(read, 1) == b"\x00"
    os.close(read)
    os.close(write)
    assert world.planner.get(("r1", "child")) is not None
    assert world.planner.get(("r1", "before")) is not None
