"""Compensations: which targets may be undone, what an open one blocks, how it ends."""

from collections.abc import Iterator

import pytest

from ackbox.outbox.commands import Resend
from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.outcome import Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Stated

from ..support.databases import Databases
from ..support.seed import KEYED, PROBED, WEAK, Seeded, seeded_outbox
from ..support.undoing import ENSURE, PLAN, code, old_commit, ordered, run_undo


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


# -- which targets ---------------------------------------------------------------------------------


def test_a_committed_effect_is_undone_by_an_intent_of_its_own(seeded: Seeded) -> None:
    """A compensation has a derived id and goes through the outbox like any effect."""
    seq = old_commit(seeded)
    answer = ordered(seeded.order(seq, PLAN))
    assert (answer.intent_id, answer.generation, answer.created) == ("a~undo0", 0, True)
    assert seeded.row(seq)["undo"] == answer.seq
    claim = seeded.claim("undo")
    assert (claim.wire_key, claim.args) == ("a~undo0", {"of": "ref-1"})
    assert claim.target is not None
    assert (claim.target.ref, claim.target.wire_key) == ("ref-1", "a")


@pytest.mark.parametrize("state", ["held", "queued", "executing"])
def test_what_was_not_sent_is_withdrawn_instead(seeded: Seeded, state: str) -> None:
    """Hole 5: the worker's mark then hits nothing, and no compensation runs against it."""
    seq = seeded.put("a", KEYED, held_for="policy" if state == "held" else None)
    if state == "executing":
        seeded.claim("a")
    assert seeded.state(seq) == state
    answer = ordered(seeded.order(seq, PLAN))
    assert (answer.withdrawn, answer.seq, seeded.state(seq)) == (True, None, "cancelled")


def test_an_open_send_is_not_undone(seeded: Seeded) -> None:
    """Hole 5: nobody knows yet what there is to undo."""
    claim = seeded.awaiting("a", KEYED)
    assert code(seeded.order(claim.seq, PLAN)) == "awaiting_ack"
    assert seeded.sql("SELECT FROM {schema}.intent WHERE compensates IS NOT NULL") == []


def test_each_final_state_has_its_own_refusal(seeded: Seeded) -> None:
    """Nothing is inserted where there is nothing to undo."""
    failed = seeded.awaiting("f", KEYED)
    seeded.record(failed, NotApplied("no"))
    assert code(seeded.order(failed.seq, PLAN)) == "nothing_to_undo"
    cancelled = seeded.put("c")
    seeded.order(cancelled, PLAN)
    assert code(seeded.order(cancelled, PLAN)) == "nothing_to_undo"
    done = old_commit(seeded, "d")
    seeded.order(done, PLAN)
    run_undo(seeded)
    assert code(seeded.order(done, PLAN)) == "already_compensated"


def test_a_committed_row_with_a_send_on_its_way_is_not_undone(seeded: Seeded) -> None:
    """Hole 6: a resend is out when the first send's answer commits the row."""
    claim = seeded.unknown("a", KEYED)
    seeded.unknowns.resend(Resend(claim, "digest"), seeded.owner)
    seeded.record(claim, Applied("ref-1"))
    assert seeded.state(claim.seq) == "committed"
    assert code(seeded.order(claim.seq, PLAN)) == "not_quiet"
    seeded.advance(200)
    ordered(seeded.order(claim.seq, PLAN))


def test_a_recorded_outcome_makes_a_committed_row_quiet_at_once(seeded: Seeded) -> None:
    """The attempt that holds the fence has spoken: there is nothing to wait for."""
    claim = seeded.committed("a")
    ordered(seeded.order(claim.seq, PLAN))


def test_only_a_proof_of_absence_ends_an_unknown(seeded: Seeded) -> None:
    """Hole 13: by exact marker and a strong read, as the target's declaration says."""
    claim = seeded.unknown("a", PROBED)
    assert code(seeded.order(claim.seq, PLAN)) == "ensure_absent_only"
    ordered(seeded.order(claim.seq, ENSURE))
    weak = seeded.unknown("w", WEAK)
    assert code(seeded.order(weak.seq, ENSURE)) == "ensure_absent_only"


def test_an_unknown_that_is_not_quiet_is_not_undone(seeded: Seeded) -> None:
    """Hole 2, 4: the request would land behind its undo."""
    claim = seeded.unknown("a", PROBED, quiet=False)
    assert code(seeded.order(claim.seq, ENSURE)) == "not_quiet"


def test_a_target_with_an_open_divergence_needs_a_proof_of_absence(seeded: Seeded) -> None:
    """Hole 26: there are two effects, and a handle for one of them."""
    claim = seeded.committed("a", PROBED)
    seeded.record(claim, Applied("ref-2"))
    assert seeded.row(claim.seq)["diverged_at"] is not None
    seeded.advance(200)
    assert code(seeded.order(claim.seq, PLAN)) == "ensure_absent_only"
    ordered(seeded.order(claim.seq, ENSURE))


def test_without_a_handle_there_is_nothing_to_undo_by(seeded: Seeded) -> None:
    """Hole 35: the answer named no object."""
    seq = old_commit(seeded, ref=None)
    assert code(seeded.order(seq, PLAN)) == "no_handle"


def test_a_compensation_is_not_compensated(seeded: Seeded) -> None:
    """One level only."""
    answer = ordered(seeded.order(old_commit(seeded), PLAN))
    assert answer.seq is not None
    assert code(seeded.order(answer.seq, PLAN)) == "is_compensation"


def test_a_persons_reference_is_no_handle_to_undo_by(seeded: Seeded) -> None:
    """A link would be deleted as "not found", and the standing effect called undone."""
    claim = seeded.unknown("said", KEYED)
    said = Said(claim.seq, "ops", "seen in the inbox", claim.fence)
    assert isinstance(seeded.people.landed(said, "https://tickets.example.org/7"), Stated)
    assert code(seeded.order(claim.seq, PLAN)) == "no_handle"
    assert seeded.row(claim.seq)["undo"] is None


def test_the_inserting_statement_asks_again_by_itself(seeded: Seeded) -> None:
    """Second, paired assertion: whoever calls it, nothing is inserted for a target that may not."""
    being_undone = old_commit(seeded)
    seeded.order(being_undone, PLAN)
    noisy = seeded.unknown("b", PROBED, quiet=False).seq
    failed = seeded.awaiting("c", KEYED)
    seeded.record(failed, NotApplied("no"))
    first = seeded.awaiting("d", KEYED, x=1)
    adopter = seeded.supersede("d")
    seeded.record(first, Applied("ref-1"))
    seeded.hold_step(adopter)
    statement, _ = seeded.statements.named("insert_compensation")
    values = {
        "intent_id": "other~undo0", "tool": "undo", "version": 1, "lane": "undo", "args": "{}",
        "fingerprint": "f", "content": "f", "actor": "planner", "actor_name": None,
        "reason": None,
    }  # fmt: skip

    def inserted(seq: int) -> int:
        return seeded.run(lambda c: len(c.execute(statement, {**values, "seq": seq}).all()))

    assert [inserted(seq) for seq in (being_undone, noisy, failed.seq, adopter)] == [0, 0, 0, 0]


# -- while it is open ------------------------------------------------------------------------------


def test_a_repeated_request_returns_the_open_one_whatever_it_asks(seeded: Seeded) -> None:
    """Hole 35: other arguments are no conflict; evidence meanwhile changes nothing."""
    claim = seeded.unknown("a", PROBED)
    first = ordered(seeded.order(claim.seq, ENSURE))
    seeded.record(claim, Applied("ref-1"))
    assert seeded.state(claim.seq) == "committed"
    again = ordered(seeded.order(claim.seq, PLAN))
    assert (again.seq, again.created) == (first.seq, False)


def test_a_refusal_during_an_undo_settles_instead_of_queueing(seeded: Seeded) -> None:
    """Hole 4: the late transient NotApplied would send g0 after its undo."""
    claim = seeded.unknown("a", PROBED)
    seeded.order(claim.seq, ENSURE)
    recorded = seeded.record(claim, NotApplied("busy", code="busy", transient=True))
    assert (recorded.edge, recorded.state) == ("refuse", "failed")
    undo = run_undo(seeded)
    assert seeded.holds.finish_undo(claim.seq).edge == "undo_ended"
    assert (seeded.state(claim.seq), seeded.state(undo)) == ("failed", "committed")
    assert seeded.row(claim.seq)["undo"] is None


def test_nothing_is_adopted_from_an_effect_that_is_being_undone(seeded: Seeded) -> None:
    """Hole 7a: the planner would be handed an outcome whose effect is gone."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    second = seeded.supersede("a")
    assert seeded.hold_step(second) == (None, "compensation_open")
    run_undo(seeded)
    seeded.holds.finish_undo(seq)
    assert seeded.hold_step(second) == ("release", "release")


# -- how it ends -----------------------------------------------------------------------------------


def test_the_owner_and_its_adopters_are_compensated_together(seeded: Seeded) -> None:
    """Hole 7c: an adopter never outlives the effect; a third generation is not held by it."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1"))
    assert seeded.hold_step(second) == ("adopt", "adopt")
    answer = ordered(seeded.order(second, PLAN))
    assert (answer.target, answer.intent_id) == (first.seq, "a~undo0")
    third = seeded.supersede("a", 1, tool=KEYED, x=3)
    run_undo(seeded)
    seeded.holds.finish_undo(first.seq)
    assert (seeded.state(first.seq), seeded.state(second)) == ("compensated", "compensated")
    outcomes = seeded.sql(
        "SELECT DISTINCT o.outcome FROM {schema}.intent_state s JOIN {schema}.observation o"
        " USING (observation_id) WHERE s.seq IN (:one, :two)", one=first.seq, two=second
    )  # fmt: skip
    assert [row["outcome"] for row in outcomes] == ["not_applied"], "not the adoption's"
    assert seeded.hold_step(third) == ("release", "release")


def test_an_unfinished_undo_settles_nothing(seeded: Seeded) -> None:
    """The target moves when its compensation is final, and not before."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    assert seeded.holds.find_undone(10) == ()
    assert seeded.holds.finish_undo(seq).edge is None
    claim = seeded.send("undo")
    seeded.record(claim, Unknown("lost"))
    assert seeded.holds.finish_undo(seq).edge is None
    assert seeded.state(seq) == "committed"


def test_a_failed_undo_leaves_the_target_and_lets_it_bind(seeded: Seeded) -> None:
    """Hole 21: the target is where it was; its batch waits for the consumer again."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    undo = run_undo(seeded, NotApplied("gone"))
    seeded.sql("DELETE FROM {schema}.settled_batch")
    assert seeded.holds.find_undone(10) == (seq,)
    assert seeded.holds.finish_undo(seq).edge == "undo_ended"
    row = seeded.row(seq)
    assert (row["state"], row["undo"]) == ("committed", None)
    batches = seeded.sql("SELECT seqs FROM {schema}.settled_batch")
    assert [list(batch["seqs"]) for batch in batches] == [[seq]]
    assert "undo_ended" in seeded.events(seq)
    assert seeded.state(undo) == "failed"


def test_a_failed_undo_is_asked_for_again_as_the_next_generation(seeded: Seeded) -> None:
    """Hole 21: another wire key, so a dead request is never repeated as the new one."""
    seq = old_commit(seeded)
    first = ordered(seeded.order(seq, PLAN))
    run_undo(seeded, NotApplied("gone"))
    again = ordered(seeded.order(seq, compensation_request("undo", 1, "undo", {"of": "other"})))
    assert (again.intent_id, again.generation, again.created) == ("a~undo0", 1, True)
    assert first.seq is not None
    assert seeded.row(first.seq)["live"] is False
    assert seeded.claim("undo").wire_key == "a~undo0~g1"


def test_a_finished_undo_is_finished_by_the_next_request_too(seeded: Seeded) -> None:
    """A request that comes before the pass does not mistake an ended one for an open one."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    run_undo(seeded)
    assert code(seeded.order(seq, PLAN)) == "already_compensated"
    assert seeded.state(seq) == "compensated"
