"""Held rows: what releases, adopts and parks them, and races that lose no release."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, text

from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.intent import Address
from ackbox.outbox.model import Actor, GateDecision
from ackbox.outbox.outcome import Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Stated
from ackbox.outbox.shell.compensation_store import order_compensation
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.gate_store import decide_gate
from ackbox.outbox.shell.hold_store import hold_step
from ackbox.outbox.shell.poke import poke_step

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, Seeded, seeded_outbox
from ..support.sessions import Background

UNDO_PLAN = compensation_request("undo", 1, "undo", {"of": "ref-1"})


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


@pytest.fixture
def patient(outbox: Seeded) -> Iterator[Database]:
    """Give a second pool whose sessions wait long for a lock."""
    database = Database(outbox.url, lock_timeout_seconds=15)
    yield database
    database.dispose()


def test_a_generation_is_released_when_every_earlier_one_is_settled_as_nothing(
    seeded: Seeded,
) -> None:
    """F hold: the next generation stays behind an open send and goes when it failed."""
    first = seeded.awaiting("a", x=1)
    second = seeded.supersede("a", x=2)
    assert seeded.hold_step(second) == (None, "generation_unsettled")
    seeded.record(first, NotApplied("no", code="refused"))
    assert seeded.hold_step(second) == ("release", "release")
    assert seeded.row(second)["ready_at"] is not None


def test_a_cancelled_earlier_generation_holds_nothing(seeded: Seeded) -> None:
    """A row that was withdrawn before any send lets the next one be queued at once."""
    seeded.put("a", x=1)
    second = seeded.supersede("a", x=2)
    assert seeded.state(second) == "queued"


def test_the_same_call_adopts_the_committed_effect_of_an_earlier_generation(
    seeded: Seeded,
) -> None:
    """Adopt: no second effect, the owner's outcome, and a pointer to the owner."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-7"))
    assert seeded.hold_step(second) == ("adopt", "adopt")
    row = seeded.row(second)
    assert (row["state"], row["adopted_from"]) == ("committed", first.seq)
    (seen,) = seeded.sql(
        "SELECT kind, outcome, ref FROM {schema}.observation WHERE observation_id = :id",
        id=row["observation_id"],
    )
    assert (seen["kind"], seen["outcome"], seen["ref"]) == ("order", "applied", "ref-7")


def test_nothing_is_adopted_while_another_earlier_generation_is_open(seeded: Seeded) -> None:
    """Hole 7d: g0 committed a, g1 (b) is out, g2 (a) waits for g1."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a", x=2, tool=KEYED)
    seeded.record(first, Applied("ref-1"))
    said = Said(second, "ops", "both are wanted")
    assert isinstance(seeded.people.release(said, may_duplicate=True), Stated)
    seeded.send("a")
    third = seeded.supersede("a", 1, tool=KEYED, x=1)
    assert seeded.hold_step(third) == (None, "generation_unsettled")


def test_a_keyless_effect_with_other_arguments_parks_the_next_generation(seeded: Seeded) -> None:
    """Hole 22: the tool cannot undo, so the row is put in front of a person, once."""
    first = seeded.awaiting("a", KEYLESS, x=1)
    second = seeded.supersede("a", x=2)
    seeded.record(first, Applied("ref-1"))
    assert seeded.hold_step(second) == (None, "person")
    parked_at = seeded.row(second)["parked_at"]
    assert parked_at is not None
    seeded.advance(1000)
    assert seeded.hold_step(second) == (None, "person")
    assert seeded.row(second)["parked_at"] == parked_at
    assert seeded.events(second).count("parked") == 1


def test_a_passed_deadline_is_left_to_the_reaper(seeded: Seeded) -> None:
    """Hole 14, 19: a row past its deadline is neither adopted nor released."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1"))
    seeded.sql(
        "UPDATE {schema}.intent_state SET deadline = {schema}.clock_now(),"
        " withdraw_at = {schema}.clock_now() WHERE seq = :seq", seq=second
    )  # fmt: skip
    assert seeded.hold_step(second) == (None, "deadline")


def test_looking_gets_rarer_with_age_and_a_poke_brings_it_back(seeded: Seeded) -> None:
    """Level-triggered: the row comes back by itself; a poke only makes that earlier."""
    first = seeded.awaiting("a", x=1)
    second = seeded.supersede("a", x=2)
    assert seeded.holds.find_held(10) == (second,)
    seeded.hold_step(second)
    assert seeded.holds.find_held(10) == ()
    seeded.advance(400)
    assert seeded.holds.find_held(10) == (second,)
    seeded.hold_step(second)
    seeded.advance(50)
    assert seeded.holds.find_held(10) == ()
    assert seeded.run(lambda c: poke_step(c, seeded.statements, first.seq)) == 1
    assert seeded.holds.find_held(10) == (second,)


def test_a_live_row_that_met_a_divergence_elsewhere_is_held(seeded: Seeded) -> None:
    """A row that was awaiting_ack when the divergence was marked comes back queued: held then."""
    first = seeded.false_failed("a", KEYED, x=1)
    second = seeded.supersede("a", tool=KEYED, x=2)
    assert seeded.state(second) == "queued"
    claim = seeded.send("a")
    seeded.record(first, Applied("late"))
    assert seeded.row(second)["diverged_at"] is not None
    seeded.record(claim, NotApplied("busy", code="busy", transient=True))
    assert seeded.state(second) == "queued"
    assert seeded.holds.find_held(10) == (second,)
    assert seeded.hold_step(second) == ("hold", "hold")
    assert seeded.hold_step(second) == (None, "divergence")


# -- races (F: two sessions on real Postgres) ----------------------------------------------------

NAIVE_SETTLE_AND_RELEASE = """
WITH settled AS (
    UPDATE ackbox.intent_state SET state = 'failed', ack_by = NULL, observation_id = 1
     WHERE seq = :first AND state = 'awaiting_ack' RETURNING seq
)
UPDATE ackbox.intent_state s
   SET state = 'queued', hold_at = NULL, ready_at = ackbox.clock_now()
  FROM ackbox.intent n, settled
 WHERE n.seq = s.seq AND n.intent_id = 'a' AND s.state = 'held'
RETURNING s.seq
"""


def _held_by(seeded: Seeded, seq: int) -> list[int]:
    return [row["seq"] for row in seeded.sql(
        "SELECT seq FROM {schema}.intent_state WHERE seq = :seq AND state = 'held'", seq=seq
    )]  # fmt: skip


def test_settle_and_release_in_one_statement_loses_the_release(
    seeded: Seeded, patient: Database
) -> None:
    """Hole 16a: the naive statement cannot see the row that the awaited transaction inserted."""
    first = seeded.awaiting("a", x=1)
    content = seeded.content("a", KEYLESS, x=2)
    with patient.engine.begin() as superseding:
        successor = seeded.planner.supersede(superseding, Address("default", "a"), 0, content)
        naive = Background(
            patient,
            lambda c: c.execute(text(NAIVE_SETTLE_AND_RELEASE), {"first": first.seq}).all(),
        )
        naive.wait_for_lock()
    assert naive.result() == []
    seq = successor.seq  # type: ignore[union-attr]
    assert seeded.state(first.seq) == "failed"
    assert _held_by(seeded, seq) == [seq], "the naive statement has lost the release"
    assert seq in seeded.holds.find_held(10)
    assert seeded.hold_step(seq) == ("release", "release")


def _approved_first_then_superseded(seeded: Seeded) -> tuple[int, int]:
    """Return an open first generation and a second one that needs an approval of its own."""
    first = seeded.put("a", held_for="policy", x=1)
    seeded.decide(first, GateDecision.APPROVED)
    assert seeded.hold_step(first) == ("release", "release")
    seeded.send("a")
    return first, seeded.supersede("a", x=2)


def test_gate_and_settle_by_events_strand_the_row(seeded: Seeded, patient: Database) -> None:
    """Hole 16b: each event sees the other's hold; the level-triggered pass releases."""
    first, second = _approved_first_then_superseded(seeded)
    release = (
        "UPDATE ackbox.intent_state SET state = 'queued', hold_at = NULL,"
        " ready_at = ackbox.clock_now() WHERE seq = :seq AND state = 'held' AND {} RETURNING seq"
    )
    values = {"seq": second, "first": first}
    with patient.engine.begin() as approving, patient.engine.begin() as settling:
        approving.execute(
            text("UPDATE ackbox.gate SET decision = 'approved' WHERE seq = :seq"), values
        )
        earlier = "EXISTS (SELECT FROM ackbox.intent_state WHERE seq = :first AND state = 'failed')"
        assert approving.execute(text(release.format(earlier)), values).all() == []
        settling.execute(
            text(
                "UPDATE ackbox.intent_state SET state = 'failed', ack_by = NULL,"
                " observation_id = 1 WHERE seq = :first"
            ),
            values,
        )
        gate = "EXISTS (SELECT FROM ackbox.gate WHERE seq = :seq AND decision = 'approved')"
        assert settling.execute(text(release.format(gate)), values).all() == []
    assert seeded.state(second) == "held", "both events have passed"
    assert seeded.hold_step(second) == ("release", "release")


def test_gate_and_settle_at_once_are_both_seen_by_the_pass(
    seeded: Seeded, patient: Database
) -> None:
    """The same race with the real statements, in both orders of commit."""
    first, second = _approved_first_then_superseded(seeded)
    with patient.engine.begin() as approving:
        fingerprint = _fingerprint(seeded, second)
        decide_gate(
            approving, seeded.statements, seeded.reader, seq=second,
            decision=GateDecision.APPROVED, actor=Actor.PERSON, actor_name="ops", reason="fine",
            fingerprint=fingerprint,
        )  # fmt: skip
        seeded.sql(
            "UPDATE {schema}.intent_state SET state = 'failed', ack_by = NULL,"
            " observation_id = 1 WHERE seq = :seq", seq=first
        )  # fmt: skip
    assert seeded.hold_step(second) == ("release", "release")


def _fingerprint(seeded: Seeded, seq: int) -> str:
    (row,) = seeded.sql("SELECT fingerprint FROM {schema}.intent WHERE seq = :seq", seq=seq)
    return str(row["fingerprint"])


def test_a_decision_in_the_locking_statement_overlooks_an_approval(
    seeded: Seeded, patient: Database
) -> None:
    """What the lock was waited for is not in that statement's snapshot; the next one sees it."""
    gated = seeded.put("a", held_for="policy", x=1)
    fingerprint = _fingerprint(seeded, gated)

    def reads(connection: Connection) -> tuple[GateDecision | None, GateDecision | None]:
        first = seeded.reader.lock_step(connection, gated)
        second = seeded.reader.lock_step(connection, gated)
        return first[0].world.gate, second[0].world.gate

    with patient.engine.begin() as approving:
        decide_gate(
            approving, seeded.statements, seeded.reader, seq=gated,
            decision=GateDecision.APPROVED, actor=Actor.PERSON, actor_name="ops", reason="fine",
            fingerprint=fingerprint,
        )  # fmt: skip
        waiting = Background(patient, reads)
        waiting.wait_for_lock()
    assert waiting.result() == (GateDecision.OPEN, GateDecision.APPROVED)


def test_hold_step_that_waited_for_an_approval_releases(seeded: Seeded, patient: Database) -> None:
    """The pass decides in a later statement, so an approval it waited for is not lost."""
    gated = seeded.put("a", held_for="policy", x=1)
    fingerprint = _fingerprint(seeded, gated)
    with patient.engine.begin() as approving:
        decide_gate(
            approving, seeded.statements, seeded.reader, seq=gated,
            decision=GateDecision.APPROVED, actor=Actor.PERSON, actor_name="ops", reason="fine",
            fingerprint=fingerprint,
        )  # fmt: skip
        passing = Background(
            patient,
            lambda c: hold_step(c, seeded.statements, seeded.reader, seq=gated, share=1.0),
        )
        passing.wait_for_lock()
    assert passing.result().edge == "release"


def _adoptable(seeded: Seeded) -> tuple[int, int]:
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1"))
    seeded.advance(200)
    return first.seq, second


def test_adopt_and_undo_without_a_common_lock_both_commit(
    seeded: Seeded, patient: Database
) -> None:
    """Hole 7b: each reads that the other is not there; both are then."""
    first, second = _adoptable(seeded)
    values = {"first": first, "second": second}
    with patient.engine.begin() as adopting, patient.engine.begin() as undoing:
        adopted = adopting.execute(text(
            "UPDATE ackbox.intent_state SET state = 'committed', hold_at = NULL,"
            " adopted_from = :first, observation_id = 1 WHERE seq = :second AND EXISTS"
            " (SELECT FROM ackbox.intent_state WHERE seq = :first AND undo IS NULL) RETURNING seq"
        ), values).all()  # fmt: skip
        undone = undoing.execute(text(
            "UPDATE ackbox.intent_state SET undo = 999 WHERE seq = :first AND NOT EXISTS"
            " (SELECT FROM ackbox.intent_state WHERE adopted_from = :first) RETURNING seq"
        ), values).all()  # fmt: skip
    assert (len(adopted), len(undone)) == (1, 1), "the skew"
    assert seeded.row(first)["undo"] == 999
    assert seeded.row(second)["adopted_from"] == first


def test_adopt_waits_for_an_undo_and_is_then_refused(seeded: Seeded, patient: Database) -> None:
    """Hole 7a: with the owner's lock the adopter sees that the effect is being undone."""
    first, second = _adoptable(seeded)
    with patient.engine.begin() as undoing:
        order_compensation(
            undoing, seeded.statements, seeded.reader, seq=first, plan=UNDO_PLAN,
            actor=Actor.PLANNER,
        )  # fmt: skip
        adopting = Background(
            patient,
            lambda c: hold_step(c, seeded.statements, seeded.reader, seq=second, share=1.0),
        )
        adopting.wait_for_lock()
    assert (adopting.result().edge, adopting.result().reason) == (None, "compensation_open")
    assert seeded.state(second) == "held"


def test_an_undo_that_waited_for_an_adopter_takes_it_along(
    seeded: Seeded, patient: Database
) -> None:
    """Hole 7c: the compensation is the owner's, and every adopter moves with the owner."""
    first, second = _adoptable(seeded)
    with patient.engine.begin() as adopting:
        hold_step(adopting, seeded.statements, seeded.reader, seq=second, share=1.0)
        undoing = Background(
            patient,
            lambda c: order_compensation(
                c, seeded.statements, seeded.reader, seq=second, plan=UNDO_PLAN,
                actor=Actor.PLANNER,
            ),
        )  # fmt: skip
        undoing.wait_for_lock()
    ordered = undoing.result()
    assert (ordered.target, ordered.intent_id) == (first, "a~undo0")  # type: ignore[union-attr]
    claim = seeded.send("undo")
    seeded.record(claim, Applied("undone"))
    assert seeded.holds.find_undone(10) == (first,)
    assert seeded.holds.finish_undo(first).edge == "compensate"
    assert (seeded.state(first), seeded.state(second)) == ("compensated", "compensated")


def test_two_passes_on_one_row_do_it_once(seeded: Seeded, patient: Database) -> None:
    """Any number of hold passes may run: the second finds the row released."""
    first = seeded.awaiting("a", x=1)
    second = seeded.supersede("a", x=2)
    seeded.record(first, Unknown("lost"))
    seeded.advance(200)
    seeded.people.not_landed(Said(first.seq, "ops", "nothing there", first.fence))
    with patient.engine.begin() as one:
        answer = hold_step(one, seeded.statements, seeded.reader, seq=second, share=1.0)
        other = Background(
            patient,
            lambda c: hold_step(c, seeded.statements, seeded.reader, seq=second, share=1.0),
        )
        other.wait_for_lock()
    assert (answer.edge, other.result().edge) == ("release", None)
    assert seeded.events(second).count("release") == 1
