"""The one reader behind all waits of a process: nothing ends it for good."""

import threading
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.intent import Address
from ackbox.outbox.model import State
from ackbox.outbox.shell.planner_store import PlannerStore
from ackbox.planner.shell.waiting import Waiters

from ..support.waiting import DEADLINE_SECONDS
from .planner_support import World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


class Reader:
    """Reads steps, and breaks at its first look where it is told to."""

    def __init__(self, world: World, breaks: bool) -> None:
        self._store = PlannerStore(world.statements, DEFAULTS)
        self._breaks = breaks

    def __call__(self, connection: Connection, names: Collection[tuple[str, str]]) -> Any:
        """Return the steps."""
        if self._breaks:
            self._breaks = False
            raise LookupError
        return self._store.steps(connection, list(names))


def settled(world: World) -> Address:
    """Settle a step and return where it stands."""
    intent = world.to(State.COMMITTED, world.put())
    return Address(intent.namespace, intent.intent_id)


def word(waiters: Waiters, address: Address) -> str | None:
    """Return the word that a wait ends with."""
    telling = waiters.wait(address, DEADLINE_SECONDS)
    return telling.told.word if telling else None


def test_a_reader_that_broke_looks_again(world: World) -> None:
    """Else this and every later wait of the process would only wait for its time to be over."""
    waiters = Waiters(world.database, Reader(world, breaks=True))
    address = settled(world)
    assert word(waiters, address) == "committed"
    waiters.close()


def test_a_process_that_could_start_no_thread_starts_it_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait that came then raises, and is not waited for by anybody."""
    waiters = Waiters(world.database, Reader(world, breaks=False))
    address = settled(world)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            word(waiters, address)
    assert word(waiters, address) == "committed"
    waiters.close()
