"""Asking and waiting: a planner against real Postgres."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from ackbox.app.embedded import EmbeddedServices
from ackbox.outbox.errors import ConfigError, InvalidIntent, Refused, StoreUnavailable
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Accepted
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.migrate import upgrade
from ackbox.outbox.told import Committed, InFlight, UnknownOutcome
from ackbox.planner.shell.planner import Planner

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .planner_support import TOOL, World, race

ARGS = {"title": "VPN"}


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def test_get_by_every_name(world: World) -> None:
    """The intent, (run_id, step) and the id name the same step; a stranger is None."""
    intent = world.put()
    told = world.planner.get(intent)
    assert told is not None
    assert told == world.planner.get(("r1", "open")) == world.planner.get(intent.intent_id)
    assert told.as_dict()["word"] == "in_flight"
    assert world.planner.get(("r1", "nowhere")) is None
    assert world.planner.get(intent, namespace="other") is not None
    assert world.planner.get(("r1", "open"), namespace="other") is None


def test_namespaces_are_apart(world: World) -> None:
    """The same step of two tenants is two intents with keys that never meet."""
    mine = world.put()
    theirs = world.planner.put(TOOL, ARGS, run_id="r1", step="open", namespace="acme")
    assert theirs.seq != mine.seq
    assert theirs.wire_key == f"~acme~{theirs.intent_id}"
    acme = Planner(world.database, namespace="acme")
    assert acme.put(TOOL, ARGS, run_id="r1", step="open").seq == theirs.seq


def test_wait_returns_when_it_is_settled(world: World) -> None:
    """A committed row is told with its result soon after it settled."""
    intent = world.put()
    world.to(State.AWAITING_ACK, intent)
    told, _ = race(
        lambda: world.planner.wait(intent, timeout_seconds=DEADLINE_SECONDS),
        lambda: world.acknowledge(intent.seq, Accepted(ref="T-1", result={"id": 1})),
    )
    assert isinstance(told, Committed)
    assert (told.ref, told.result, told.accepted) == ("T-1", {"id": 1}, True)


def test_wait_never_raises_for_time(world: World) -> None:
    """At the time-out the newest word is told with its reason; nothing is changed by waiting."""
    world.rows("UPDATE {s}.worker SET stopped_at = now()")
    intent = world.put()
    began = time.monotonic()
    told = world.planner.wait(intent, timeout_seconds=0.3)
    assert time.monotonic() - began < 30
    assert isinstance(told, InFlight)
    assert told.reason == f"no live worker has {TOOL}"
    assert world.events(intent) == ["put"]
    unknown = world.planner.wait(("r1", "nowhere"), timeout_seconds=0.1)
    assert isinstance(unknown, InFlight)
    assert "nothing is stored" in unknown.reason


def test_wait_ends_in_front_of_a_person(world: World) -> None:
    """A parked unknown is told at once; one that is being reconciled is waited for."""
    intent = world.to(State.INDETERMINATE, world.put())
    told = world.planner.wait(intent, timeout_seconds=0.2)
    assert isinstance(told, UnknownOutcome)
    assert told.reason == "being reconciled"
    world.rows(
        "INSERT INTO {s}.observation (seq, fence, kind, number, outcome, document, actor,"
        " created_at) SELECT :seq, n, 'attempt', 0, 'unknown',"
        " CAST(:said AS jsonb) || jsonb_build_object('reason', 'word ' || n), 'worker', now()"
        " FROM generate_series(1, 2) AS n",
        seq=intent.seq, said='{"kind": "unknown"}',
    )  # fmt: skip
    world.rows("UPDATE {s}.intent_state SET parked_at = now()")
    began = time.monotonic()
    told = world.planner.wait(intent, timeout_seconds=DEADLINE_SECONDS)
    assert time.monotonic() - began < DEADLINE_SECONDS / 2
    assert told.next_step.startswith("ackbox resolve")
    assert told.reason == "a person must decide; last: word 2"


def test_waiting_until_bound(world: World) -> None:
    """Settled is not enough: the plan has seen it when it is bound."""
    intent = world.to(State.COMMITTED, world.put())
    began = time.monotonic()
    assert world.planner.wait(intent, timeout_seconds=0.3, until="bound").word == "committed"
    assert time.monotonic() - began >= 0.3
    world.consumer.run_once()
    assert (
        world.planner.wait(intent, timeout_seconds=DEADLINE_SECONDS, until="bound").word
        == "committed"
    )
    assert time.monotonic() - began < DEADLINE_SECONDS / 2


def test_all_waiters_of_a_process_share_their_queries(world: World) -> None:
    """Fifty waits ask about as often as one does, and end when their own step is settled."""
    intents = [world.to(State.AWAITING_ACK, world.put(f"s{n}")) for n in range(50)]
    waiters: Any = world.planner._parts.waiters
    told: list[Any] = []

    def wait(intent: Intent) -> None:
        told.append(world.planner.wait(intent, timeout_seconds=DEADLINE_SECONDS))

    threads = [threading.Thread(target=wait, args=(intent,)) for intent in intents]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(waiters._waiting) == 50)
    before, began = waiters.queries, time.monotonic()
    wait_until(lambda: time.monotonic() - began > 1.0)
    elapsed = time.monotonic() - began
    assert waiters.queries - before < 40 * elapsed
    for intent in intents:
        world.acknowledge(intent.seq)
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert len(told) == 50
    assert {type(one) for one in told} == {Committed}
    wait_until(lambda: not waiters._running, message="the reader ends with the last waiter")


def test_waiting_on_an_uncommitted_intent_is_refused_at_once(world: World) -> None:
    """Here it can be known: this process holds the transaction open."""
    engine = create_engine(world.url)
    with Session(engine) as session:
        intent = world.planner.put(TOOL, ARGS, run_id="r1", step="open", on=session)
        with pytest.raises(Refused, match="not_committed"):
            world.planner.wait(intent, timeout_seconds=30)
        assert world.planner.get(intent) is None
        assert world.planner.get(intent, on=session) is not None
        session.commit()
        assert isinstance(world.planner.wait(intent, timeout_seconds=0.05), InFlight)
    engine.dispose()


def test_waiting_without_a_database_raises_for_the_environment() -> None:
    """No answer at all is not a time-out."""
    nowhere = Planner(Database("postgresql://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(StoreUnavailable):
        nowhere.wait("x", timeout_seconds=0.2)


def test_a_planner_without_a_url_attaches_to_a_running_bus_and_starts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one it is an error with both ways out, and there is still no server."""
    monkeypatch.delenv("ACKBOX_DATABASE_URL", raising=False)
    monkeypatch.setenv("ACKBOX_DATA_DIR", str(tmp_path / "data"))
    with pytest.raises(ConfigError, match="ackbox up"):
        Planner.connect()
    assert not (tmp_path / "data").exists()
    with EmbeddedServices.start_or_attach(tmp_path / "data") as services:
        upgrade(services.database_url)
        with Planner.connect() as planner:
            assert planner.put("any", {}, run_id="r1", step="s").created


def test_a_wait_of_no_time_takes_one_look(world: World) -> None:
    """Zero seconds means now, not never."""
    intent = world.put()
    assert isinstance(world.planner.wait(intent, timeout_seconds=0), InFlight)


def test_a_tool_put_without_its_arguments_is_told_how(world: World) -> None:
    """The function itself is not a call of it."""
    with pytest.raises(InvalidIntent, match=r"intent\(argument"):
        world.planner.put(lambda: None, run_id="r1", step="s")  # type: ignore[arg-type]
