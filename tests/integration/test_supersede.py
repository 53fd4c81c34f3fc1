"""Generations: one update of the live row, and the next one by what that update found."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, text

from ackbox.outbox.errors import InvalidIntent, Refused
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import Actor, State
from ackbox.outbox.outcome import Unknown
from ackbox.outbox.shell.divergence import diverge
from ackbox.outbox.shell.moves import observation_of, observe
from ackbox.outbox.told import Failed, InFlight, Superseded, UnknownOutcome
from ackbox.tool_adapters.contract import IntentDraft

from ..support.waiting import wait_until
from .planner_support import TOOL, World, caller, race, race_often

NEXT = {
    State.QUEUED: ("cancelled", "queued"),
    State.EXECUTING: ("cancelled", "queued"),
    State.AWAITING_ACK: ("awaiting_ack", "held"),
    State.INDETERMINATE: ("indeterminate", "held"),
    State.COMMITTED: ("committed", "held"),
    State.FAILED: ("failed", "queued"),
}
RACES = 100


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


@pytest.mark.parametrize("state", list(NEXT))
def test_the_next_generation_waits_for_what_was_sent(world: World, state: State) -> None:
    """It is queued where nothing of the old one can happen (any more), held otherwise."""
    old = world.to(state, world.put())
    new = world.planner.supersede(old, 0, {"title": "other"})
    assert (world.state(old), world.state(new)) == NEXT[state]
    assert (new.generation, new.created, new.wire_key) == (1, True, f"{old.wire_key}~g1")
    row = world.row(old)
    assert (row["live"], row["wanted"]) == (False, False)
    assert "supersede" in world.events(old)
    assert world.events(new)[0] == "put.held"


def test_repeating_returns_the_same_generation(world: World) -> None:
    """A lost answer is repeated without a third generation; other arguments are stale."""
    old = world.put()
    new = world.planner.supersede(old, 0, {"title": "other"})
    again = world.planner.supersede(old, 0, {"title": "other"})
    assert (again.seq, again.created) == (new.seq, False)
    with pytest.raises(Refused, match="stale_generation"):
        world.planner.supersede(old, 0, {"title": "a third"})
    with pytest.raises(Refused, match="stale_generation"):
        world.planner.supersede(old, 0)
    same = world.planner.supersede(new, 1)
    assert world.planner.supersede(new, 1).seq == same.seq
    assert world.one("SELECT count(*) FROM {s}.intent") == 3
    with pytest.raises(Refused, match="not_found"):
        world.planner.supersede(("r1", "nowhere"), 0)
    with pytest.raises(Refused, match="stale_generation"):
        world.planner.supersede(new, 7)


def test_two_planners_supersede_at_once(world: World) -> None:
    """One new generation, whoever wins; with other arguments the loser is told so."""
    old = world.put()
    seqs = race(*[lambda: world.planner.supersede(old, 0, {"title": "x"}).seq] * 4)
    assert len(set(seqs)) == 1
    assert world.one("SELECT count(*) FROM {s}.intent_state WHERE live") == 1


@pytest.mark.timeout(300)
def test_supersede_against_claim_and_mark(world: World) -> None:
    """Never is the new generation queued while a send of the old one is marked."""
    intents = world.put_lanes(RACES)
    race_often(
        intents,
        lambda intent: world.planner.supersede(intent, 0, {"title": "other"}),
        lambda intent: world.claim_lane(intent.lane) and world.mark(intent.seq),
    )
    assert two_effects_possible(world) == 0
    counted = "SELECT count(*) FROM {s}.intent_state WHERE generation = 1 AND live"
    assert world.one(counted) == RACES


def two_effects_possible(world: World) -> int:
    """Count steps whose next generation may be sent while a send of the earlier one is open."""
    statement = """
        SELECT count(*) FROM {s}.intent old
          JOIN {s}.intent new ON new.intent_id = old.intent_id AND new.generation = 1
          JOIN {s}.intent_state o ON o.seq = old.seq
          JOIN {s}.intent_state n ON n.seq = new.seq
         WHERE old.generation = 0 AND o.state = 'awaiting_ack'
           AND n.state NOT IN ('held', 'cancelled')"""
    return int(world.one(statement))


def supersede_naively(world: World, intent: Intent, between: Callable[[], None]) -> None:
    """The naive supersede, planted: it decides on a state that it read without the row's lock."""

    def naive(connection: Connection) -> None:
        seen = connection.scalar(
            text("SELECT state FROM ackbox.intent_state WHERE seq = :seq"), {"seq": intent.seq}
        )
        between()
        state = "queued" if seen == "queued" else "held"
        connection.execute(
            text("UPDATE ackbox.intent_state SET live = false, wanted = false WHERE seq = :seq"),
            {"seq": intent.seq},
        )
        connection.execute(
            text(
                "WITH n AS (INSERT INTO ackbox.intent (namespace, intent_id, generation, tool,"
                " tool_version, lane, args, fingerprint, content, created_at)"
                " SELECT namespace, intent_id, 1, tool, tool_version, lane, args, 'f', 'c',"
                " created_at FROM ackbox.intent WHERE seq = :seq RETURNING seq, lane)"
                " INSERT INTO ackbox.intent_state (seq, generation, state, lane, ready_at)"
                " SELECT seq, 1, :state, lane, now() FROM n"
            ),
            {"seq": intent.seq, "state": state},
        )

    world.database.run(naive)


def test_reading_first_would_make_two_effects_possible(world: World) -> None:
    """The planted violation is seen by the count of the race test; ours passes the same order."""
    intent = world.put("naive")

    def claim_and_mark() -> None:
        assert world.claim(intent.seq)
        assert world.mark(intent.seq)

    supersede_naively(world, intent, claim_and_mark)
    assert two_effects_possible(world) == 1


def test_a_worker_that_marks_first_holds_the_next_generation(world: World) -> None:
    """The mark is open while supersede waits for the row: it decides on what the mark left."""
    intent = world.to(State.EXECUTING, world.put())
    with caller(world.url) as worker:
        worker.execute(
            text("SELECT 1 FROM ackbox.intent_state WHERE seq = :seq FOR UPDATE"),
            {"seq": intent.seq},
        )

        def mark_once_waited_for() -> None:
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            wait_until(lambda: world.one(waiting) > 0)
            worker.execute(
                text(
                    "UPDATE ackbox.intent_state SET state = 'awaiting_ack', sends = 1"
                    " WHERE seq = :seq"
                ),
                {"seq": intent.seq},
            )
            worker.commit()

        new, _ = race(lambda: world.planner.supersede(intent, 0), mark_once_waited_for)
    assert world.state(new) == "held"


def test_a_stale_result_never_binds(world: World) -> None:
    """It is kept, the event `stale` says so once, and the live generation is told with it."""
    old = world.to(State.AWAITING_ACK, world.put())
    new = world.planner.supersede(old, 0, {"title": "other"})
    assert world.acknowledge(old.seq)
    report = world.consumer.run_once()
    assert (report.bound, report.stale) == (0, 1)
    assert world.row(old)["bound_at"] is None
    assert world.events(old).count("stale") == 1
    told = world.planner.get(new)
    assert isinstance(told, InFlight)
    assert [other.ref for other in told.also_happened] == [f"T-{old.seq}"]
    of_old = world.planner.get(old)
    assert isinstance(of_old, Superseded)
    assert of_old.superseded_by == 1
    assert [other.generation for other in of_old.also_happened] == [0]


def test_an_unknown_observation_never_binds(world: World) -> None:
    """Lost and given-back attempts leave observations; nothing of them reaches the plan."""
    intent = world.to(State.INDETERMINATE, world.put())
    seen = observation_of(Unknown("read timeout"))
    world.database.run(
        lambda c: observe(c, world.statements, [(intent.seq, 1, seen, Actor.WORKER)])
    )
    world.rows(
        "INSERT INTO {s}.settled_batch (stage, seqs, due_at)"
        " VALUES ('settled', ARRAY[:seq], now())",
        seq=intent.seq,
    )
    report = world.consumer.run_once()
    assert (report.bound, report.stale, report.duplicate) == (0, 0, 0)
    assert world.row(intent)["bound_at"] is None


def test_failed_is_not_told_while_an_earlier_generation_is_open(world: World) -> None:
    """Generation 1 fails after a person released it over the open one: still unknown."""
    old = world.to(State.AWAITING_ACK, world.put())
    new = world.planner.supersede(old, 0, {"title": "other"})
    world.rows(
        "UPDATE {s}.intent_state SET state = 'queued', ready_at = now(), hold_at = NULL"
        " WHERE seq = :seq",
        seq=new.seq,
    )
    world.to(State.FAILED, new)
    assert isinstance(world.planner.get(new), UnknownOutcome)
    world.refuse(old.seq)
    assert isinstance(world.planner.get(new), Failed)


def test_a_divergence_is_copied_and_holds(world: World) -> None:
    """A divergence of the old row holds the new one, and the step is told unknown."""
    old = world.to(State.FAILED, world.put())
    world.database.run(
        lambda c: diverge(c, world.statements, old.seq, actor=Actor.WORKER, reason="test")
    )
    new = world.planner.supersede(old, 0, {"title": "other"})
    assert world.state(new) == "held"
    assert world.row(new)["diverged_at"] == world.row(old)["diverged_at"]
    told = world.planner.get(("r1", "open"))
    assert isinstance(told, UnknownOutcome)
    assert told.reason == "divergence"


def test_an_approval_is_not_taken_over(world: World) -> None:
    """A new generation of a gated step has a gate of its own, open, and stays held."""
    old = world.planner.put(TOOL, {"a": 1}, run_id="r1", step="open", held_for="two-eyes")
    world.rows("UPDATE {s}.gate SET decision = 'approved'")
    new = world.planner.supersede(old, 0, {"a": 2})
    assert world.state(new) == "held"
    told = world.planner.get(new)
    assert told is not None
    assert told.word == "awaiting_approval"
    gates = world.rows("SELECT decision, policy FROM {s}.gate ORDER BY seq")
    assert [gate["decision"] for gate in gates] == ["approved", "open"]


def test_a_supersede_of_the_callers_transaction_rolls_back(world: World) -> None:
    """`on=` makes it part of the caller's transaction, the withdrawal included."""
    old = world.put()
    with caller(world.url) as connection:
        world.planner.supersede(old, 0, on=connection)
        connection.rollback()
    assert world.state(old) == "queued"
    assert world.one("SELECT count(*) FROM {s}.intent") == 1


def test_another_tool_is_another_step(world: World) -> None:
    """A later generation calls the same tool."""
    old = world.put()
    with pytest.raises(InvalidIntent):
        world.planner.supersede(old, 0, IntentDraft("mail.send", 1, "default", {}))
    new = world.planner.supersede(old, 0, IntentDraft(TOOL, 2, "slow", {"title": "x"}))
    assert (new.lane, world.state(new)) == ("slow", "queued")
