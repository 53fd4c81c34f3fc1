"""Cancel against claim and against the send mark: never cancelled with a mark, never both lost."""

from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text

from ackbox.outbox.errors import Refused
from ackbox.outbox.intent import StepName
from ackbox.outbox.model import State
from ackbox.outbox.told import Cancelled, CancelRecorded, Committed, Failed, Told, UnknownOutcome

from .planner_support import World, race_often

RACES = 500


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def contradictions(world: World) -> int:
    """Count rows that are cancelled although a send of theirs is marked."""
    statement = "SELECT count(*) FROM {s}.intent_state WHERE state = 'cancelled' AND sends > 0"
    return int(world.one(statement))


def states(world: World) -> dict[int, tuple[str, bool]]:
    """Return state and wanted of every row."""
    rows = world.rows("SELECT seq, state, wanted FROM {s}.intent_state")
    return {row["seq"]: (row["state"], row["wanted"]) for row in rows}


@pytest.mark.timeout(300)
def test_cancel_against_claim(world: World) -> None:
    """Either the cancel wins and the claim's owner finds nothing to send, or the row is claimed
    first and withdrawn from executing: nothing is ever marked after a cancel.
    """
    intents = world.put_lanes(RACES)
    answers = race_often(
        intents,
        lambda intent: world.planner.cancel(intent),
        lambda intent: world.claim_lane(intent.lane) and world.mark(intent.seq),
    )
    assert contradictions(world) == 0
    rows = states(world)
    for (told, marked), intent in zip(answers, intents, strict=True):
        assert isinstance(told, Cancelled if not marked else CancelRecorded)
        assert rows[intent.seq] == ("awaiting_ack" if marked else "cancelled", False)


@pytest.mark.timeout(300)
def test_cancel_against_mark(world: World) -> None:
    """Exactly one of them wins each race; both win some of the 500."""
    intents = world.put_lanes(RACES)
    world.rows("UPDATE {s}.intent_state SET lane = 'all'")
    while world.claim_lane("all"):
        continue
    answers = race_often(
        intents,
        lambda intent: world.planner.cancel(intent),
        lambda intent: world.mark(intent.seq),
    )
    assert contradictions(world) == 0
    rows = states(world)
    for (told, marked), intent in zip(answers, intents, strict=True):
        assert isinstance(told, Cancelled if not marked else CancelRecorded)
        assert rows[intent.seq] == ("awaiting_ack" if marked else "cancelled", False)
    assert len(Counter(type(told) for told, _ in answers)) == 2, "one side won every race"


def test_a_cancel_that_reads_first_is_caught_by_the_count(world: World) -> None:
    """The naive statement, planted: a state that was read before the mark is written over it."""
    intent = world.to(State.EXECUTING, world.put())

    def naive(connection: Connection) -> None:
        seen = connection.scalar(
            text("SELECT state FROM ackbox.intent_state WHERE seq = :seq"), {"seq": intent.seq}
        )
        assert seen == "executing"
        assert world.mark(intent.seq)
        connection.execute(
            text(
                "UPDATE ackbox.intent_state SET state = 'cancelled', ack_by = NULL,"
                " observation_id = 0 WHERE seq = :seq"
            ),
            {"seq": intent.seq},
        )

    with pytest.raises(Exception, match="no edge from awaiting_ack to cancelled"):
        world.database.run(naive)


def test_a_cancel_after_the_mark_changes_no_state(world: World) -> None:
    """It is recorded once, no further send is possible, and the outcome still binds."""
    intent = world.to(State.AWAITING_ACK, world.put())
    for _ in range(3):
        assert isinstance(world.planner.cancel(intent), CancelRecorded)
    assert world.events(intent).count("cancel_recorded") == 1
    told = world.planner.get(intent)
    assert told is not None
    assert told.word == "in_flight"
    assert "cancel" in told.reason
    assert world.acknowledge(intent.seq)
    assert world.consumer.run_once().bound == 1
    assert isinstance(world.planner.get(intent), Committed)


def test_a_cancelled_unknown_stays_unknown(world: World) -> None:
    """Nobody learns from a cancel whether the effect happened."""
    intent = world.to(State.INDETERMINATE, world.put())
    assert isinstance(world.planner.cancel(intent), CancelRecorded)
    assert isinstance(world.planner.get(intent), UnknownOutcome)


@pytest.mark.parametrize("state", [State.QUEUED, State.EXECUTING])
def test_what_was_not_sent_is_cancelled(world: World, state: State) -> None:
    """Repeating the cancel is a no-op; a later claim or mark finds nothing."""
    intent = world.to(state, world.put())
    for _ in range(2):
        assert isinstance(world.planner.cancel(intent), Cancelled)
    assert world.events(intent)[-1] == "withdraw.cancel"
    assert not world.claim(intent.seq)
    assert not world.mark(intent.seq)


def test_cancel_by_every_name_and_of_nothing(world: World) -> None:
    """(run_id, step), intent_id and the intent itself name the same step."""
    for number, name in enumerate(("tuple", "text", "intent")):
        intent = world.put(f"s{number}")
        names: dict[str, StepName] = {
            "tuple": ("r1", f"s{number}"),
            "text": intent.intent_id,
            "intent": intent,
        }
        assert isinstance(world.planner.cancel(names[name]), Cancelled)
    with pytest.raises(Refused, match="not_found"):
        world.planner.cancel(("r1", "nowhere"))
    with pytest.raises(Refused, match="is_compensation"):
        world.planner.cancel("abc~undo0")


def test_final_steps(world: World) -> None:
    """A committed step names compensate; a failed one is told as it is."""
    done = world.to(State.COMMITTED, world.put("done"))
    with pytest.raises(Refused, match="use_compensate"):
        world.planner.cancel(done)
    failed: Told = world.planner.cancel(world.to(State.FAILED, world.put("failed")))
    assert isinstance(failed, Failed)


def test_an_old_generation_is_not_cancelled_by_mistake(world: World) -> None:
    """The caller holds a superseded intent: the live generation is not touched."""
    first = world.put()
    second = world.planner.supersede(first, 0)
    with pytest.raises(Refused, match="stale_generation"):
        world.planner.cancel(first)
    assert world.state(second) == "queued"
    assert isinstance(world.planner.cancel(("r1", "open")), Cancelled)


def test_cancelled_is_not_told_while_an_earlier_generation_is_open(world: World) -> None:
    """Generation 1 is withdrawn, yet generation 0 may have happened: unknown, not cancelled."""
    first = world.to(State.AWAITING_ACK, world.put())
    second = world.planner.supersede(first, 0)
    told = world.planner.cancel(second)
    assert isinstance(told, UnknownOutcome)
    assert world.state(second) == "cancelled"
    world.acknowledge(first.seq)
    told_then = world.planner.get(second)
    assert isinstance(told_then, UnknownOutcome)
    assert [other.ref for other in told_then.also_happened] == [f"T-{first.seq}"]
