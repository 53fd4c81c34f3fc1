"""Probes, resends, holds, compensations, gates and statements, in memory and on Postgres."""

import pytest

from ackbox.outbox.commands import NotMarked
from ackbox.outbox.model import GateDecision, State
from ackbox.outbox.outcome import Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Stated, Verdict

from .story import Story, code

# -- the ladder ------------------------------------------------------------------------------------


def test_a_look_is_leased_and_says_what_is_left(story: Story) -> None:
    """Found once; the flags are those of the row's guards."""
    story.unknown("n", "keyed", quiet=False)
    (found,) = story.outbox.find_unknown()
    assert (found.quiet, found.may_resend, found.resend_later) == (False, False, True)
    assert story.outbox.find_unknown() == ()
    story.advance(101)
    (again,) = story.outbox.find_unknown()
    assert (again.quiet, again.may_resend, again.parked) == (True, True, False)
    story.park(again.claim)
    story.advance(400)
    (parked,) = story.outbox.find_unknown()
    assert parked.parked
    assert story.names(parked.claim.seq).count("parked") == 1


def test_an_old_unknown_is_too_old(story: Story) -> None:
    """`park_after` counts from the first time that nobody knew."""
    story.unknown("n", "keyed")
    story.advance(900)
    (found,) = story.outbox.find_unknown()
    assert found.too_old


def test_a_keyless_row_has_no_resend_left(story: Story) -> None:
    """Neither now nor later; and the window of a keyed one ends."""
    story.unknown("a", "keyless")
    story.unknown("b", "windowed")
    story.advance(400)
    flags = {one.claim.tool: one.resend_later for one in story.outbox.find_unknown()}
    assert flags == {"keyless": False, "windowed": False}


@pytest.mark.parametrize(
    ("answer", "edge"), [("found", "acknowledge"), ("absent", "clear"), ("inconclusive", None)]
)
def test_a_strong_probe_settles(story: Story, answer: str, edge: str | None) -> None:
    """Found commits, Absent clears, anything else is counted."""
    claim = story.unknown("n", "probed")
    recorded = story.probe(claim, answer, ref="r" if answer == "found" else None)
    assert recorded.edge == edge
    assert story.column(claim.seq, "probes") == (0 if edge else 1)


def test_a_weak_absence_proves_nothing(story: Story) -> None:
    """Nor one that was read before the row was quiet."""
    weak = story.unknown("a", "weak")
    assert story.probe(weak, "absent").edge is None
    early = story.unknown("b", "probed")
    assert story.probe(early, "absent", was_quiet=False).code == "absent_too_early"


def test_two_effects_found_open_a_divergence(story: Story) -> None:
    """The first commits the row; the other one is one too many."""
    claim = story.unknown("n", "probed")
    assert story.probe(claim, "found", ref="a", others=("b",)).edge == "acknowledge"
    assert story.column(claim.seq, "diverged_at") is not None
    assert story.told() == "unknown"


@pytest.mark.parametrize("why", ["not_quiet", "no_key", "cancelled", "window_over", "undo"])
def test_a_resend_is_refused(story: Story, why: str) -> None:
    """With the code of the guard that does not hold."""
    tool = {"no_key": "keyless", "window_over": "windowed"}.get(why, "keyed")
    if why == "undo":
        tool = "probed"
    claim = story.unknown("n", tool, quiet=why != "not_quiet")
    if why == "cancelled":
        story.cancel()
    if why == "undo":
        assert code(story.compensate(claim.seq, ensure_absent=True)) is None
    if why == "window_over":
        story.advance(400)
    codes = {"not_quiet": "not_quiet", "no_key": "window_over", "cancelled": "not_wanted",
             "window_over": "window_over", "undo": "undo_open"}  # fmt: skip
    assert story.resend(claim) == NotMarked(codes[why])


def test_a_refused_resend_does_not_speak_for_the_first_send(story: Story) -> None:
    """Unresolved until the key store, a probe or a person has spoken."""
    claim = story.unknown("n", "keyed")
    taken = story.resend(claim)
    assert story.record(taken, NotApplied("busy", transient=True)).edge == "lose"
    assert story.column(claim.seq, "unresolved")
    story.advance(101)
    taken = story.resend(taken)
    assert story.record(taken, NotApplied("saved", key_store=True)).edge == "refuse"
    assert not story.column(claim.seq, "unresolved")


# -- held rows -------------------------------------------------------------------------------------


def test_a_held_row_is_released_adopted_or_waits(story: Story) -> None:
    """By what its earlier generation became."""
    story.failed("a")
    story.awaiting("b")
    story.committed("c", "keyed")
    after = {name: story.supersede(name, tool="keyed" if name == "c" else "keyless", n=n)
             for name, n in (("a", 1), ("b", 1), ("c", 1))}  # fmt: skip
    assert story.state(after["a"].seq) == "queued"
    assert story.outbox.hold_step(after["b"].seq).reason == "generation_unsettled"
    assert story.outbox.hold_step(after["c"].seq).edge == "adopt"
    assert story.told("c") == "committed"
    assert story.column(after["c"].seq, "adopted_from") is not None


def test_another_content_waits_for_the_undo(story: Story) -> None:
    """The outbox orders it once, and releases the row when it has ended."""
    claim = story.committed("n", "keyed")
    after = story.supersede(tool="keyed", n=2)
    answer = story.outbox.hold_step(after.seq)
    assert (answer.reason, answer.owner) == ("compensation_open", claim.seq)
    assert story.outbox.order(after.seq, claim.seq, story.plan()).edge == "order"
    assert story.outbox.hold_step(after.seq).reason == "compensation_open"
    story.record(story.send("u"), Applied())
    assert story.outbox.finish_undo(claim.seq).edge == "compensate"
    assert story.outbox.hold_step(after.seq).edge == "release"
    assert story.told(generation=0) == "superseded"


def test_a_failed_undo_by_the_outbox_is_a_persons_turn(story: Story) -> None:
    """It is ordered by itself at most once for each target."""
    claim = story.committed("n", "keyed")
    after = story.supersede(tool="keyed", n=2)
    story.outbox.order(after.seq, claim.seq, story.plan())
    story.record(story.send("u"), NotApplied("no"))
    assert story.outbox.finish_undo(claim.seq).edge == "undo_ended"
    assert story.outbox.hold_step(after.seq).reason == "compensation_failed"
    assert story.column(after.seq, "parked_at") is not None


def test_held_rows_are_found_and_looked_at_later(story: Story) -> None:
    """A row that stays held is found again after a while, and poked by what changes its step."""
    story.awaiting()
    after = story.supersede(n=2)
    assert story.outbox.find_held() == (after.seq,)
    story.outbox.hold_step(after.seq)
    assert story.outbox.find_held() == ()
    story.advance(1)
    assert story.outbox.find_held() == (after.seq,)


# -- compensations ---------------------------------------------------------------------------------


def test_every_refusal_to_undo(story: Story) -> None:
    """Each with its own code, and nothing is inserted."""
    wanted = {
        "awaiting_ack": story.awaiting("a").seq,
        "nothing_to_undo": story.failed("b").seq,
        "ensure_absent_only": story.unknown("d", "keyed").seq,
        "not_quiet": story.unknown("c", "keyed", quiet=False).seq,
        "no_handle": story.committed("e", "keyed", ref=None).seq,
    }
    count = len(story.outbox.seqs())
    assert {code(story.compensate(seq)): seq for seq in wanted.values()} == wanted
    assert code(story.compensate(9_999)) == "no_such_intent"
    assert len(story.outbox.seqs()) == count


def test_an_open_undo_is_returned_and_a_failed_one_followed(story: Story) -> None:
    """The next generation of the undo comes after one that failed; an undo is not undone."""
    claim = story.committed("n", "keyed")
    first, again = story.compensate(claim.seq), story.compensate(claim.seq)
    assert (first.created, again.created, again.seq) == (True, False, first.seq)
    assert code(story.compensate(first.seq)) == "is_compensation"
    story.record(story.send("u"), NotApplied("no"))
    second = story.compensate(claim.seq)
    assert (second.created, second.generation) == (True, 1)
    story.record(story.send("u"), Applied())
    story.outbox.finish_undo(claim.seq)
    assert code(story.compensate(claim.seq)) == "already_compensated"
    assert story.told() == "compensated"


def test_an_undo_of_what_was_not_sent_withdraws_it(story: Story) -> None:
    """There is no intent then."""
    seq = story.seq()
    assert story.compensate(seq).withdrawn
    assert story.state(seq) == "cancelled"


def test_adopters_are_compensated_with_their_owner(story: Story) -> None:
    """In the same transaction, and an adopter's request goes to the owner."""
    claim = story.committed("n", "keyed")
    after = story.supersede(tool="keyed")
    story.outbox.hold_step(after.seq)
    ordered = story.compensate(after.seq)
    assert ordered.target == claim.seq
    story.record(story.send("u"), Applied())
    story.outbox.finish_undo(claim.seq)
    assert (story.state(claim.seq), story.state(after.seq)) == ("compensated", "compensated")


# -- gates -----------------------------------------------------------------------------------------


def test_every_refusal_of_a_gate(story: Story) -> None:
    """No gate, other arguments, decided before, not held any more."""
    plain, held = story.seq("plain"), story.seq(held_for="ops")
    assert code(story.decide(plain, GateDecision.APPROVED)) == "no_gate"
    assert code(story.decide(held, GateDecision.APPROVED, "other")) == "gate_changed"
    assert story.decide(held, GateDecision.APPROVED) is GateDecision.APPROVED
    assert code(story.decide(held, GateDecision.REJECTED)) == "gate_decided"
    gone = story.seq("gone", held_for="ops")
    story.cancel("gone")
    assert code(story.decide(gone, GateDecision.APPROVED)) == "not_held"


def test_a_rejection_withdraws_and_an_approval_releases(story: Story) -> None:
    """The one at once, the other by the hold pass."""
    yes, no = story.seq("yes", held_for="ops"), story.seq("no", held_for="ops")
    story.decide(yes, GateDecision.APPROVED)
    story.decide(no, GateDecision.REJECTED)
    assert story.outbox.hold_step(yes).edge == "release"
    assert (story.state(no), story.told("no")) == ("cancelled", "cancelled")


def test_a_gates_clock_ends_the_wait(story: Story) -> None:
    """It starts when the hold pass finds nothing else to wait for."""
    seq = story.seq(held_for="ops")
    story.advance(90_000)
    assert story.outbox.gates_due() == ()
    story.outbox.hold_step(seq)
    story.advance(86_400)
    ((due, fingerprint),) = story.outbox.gates_due()
    assert due == seq
    story.outbox.time_out(seq, fingerprint)
    assert story.state(seq) == "cancelled"


# -- people ----------------------------------------------------------------------------------------


def test_what_a_person_may_say_of_an_unknown_row(story: Story) -> None:
    """It landed, it did not, queue it again, undone by hand."""
    said = {name: story.said(story.unknown(name)) for name in "abcd"}
    people = story.people
    answers = [
        people.landed(said["a"], "seen"), people.not_landed(said["b"]),
        people.not_landed(said["c"], requeue=True), people.undone(said["d"]),
    ]  # fmt: skip
    assert [one.state.value for one in answers] == ["committed", "failed", "queued", "compensated"]


def test_every_denial_of_a_statement(story: Story) -> None:
    """Each with its code; nothing changes."""
    early = story.unknown("a", quiet=False)
    assert code(story.people.not_landed(story.said(early))) == "not_quiet"
    claim = story.unknown("b", "windowed")
    assert code(story.people.landed(Said(claim.seq, "ops", "x", 9), "r")) == "stale_fence"
    assert code(story.people.landed(story.said(claim), " ")) == "ref_missing"
    assert code(story.people.landed(story.said(claim, " "), "r")) == "reason_missing"
    assert code(story.people.landed(Said(9_999, "ops", "x", 1), "r")) == "not_found"
    story.advance(400)
    assert code(story.people.not_landed(story.said(claim), requeue=True)) == "may_duplicate"
    done = story.failed("c")
    assert code(story.people.landed(story.said(done), "r")) == "illegal_transition"
    story.advance(1)
    closed = story.people.close_divergence(story.said(claim), 1, Verdict.STANDS)
    assert code(closed) == "no_divergence"


def test_a_false_word_and_its_divergence(story: Story) -> None:
    """The late proof holds the next generation; only a release that quotes it lets it go."""
    claim = story.false_failed()
    after = story.supersede(n=2)
    assert story.state(after.seq) == "queued"
    assert story.record(claim, Applied("r")).code == "divergence"
    assert story.state(after.seq) == "held"
    assert story.outbox.hold_step(after.seq).reason == "divergence"
    said = Said(after.seq, "ops", "looked", story.column(after.seq, "fence"))
    assert code(story.people.release(said)) == "divergence"
    assert code(story.people.release(said, divergence=99)) == "stale_divergence"
    released = story.people.release(said, divergence=story.divergence(claim.seq))
    assert isinstance(released, Stated)
    assert story.state(after.seq) == "queued"
    assert story.column(claim.seq, "diverged_at") is None


def test_a_closed_divergence_lets_the_step_bind(story: Story) -> None:
    """Closed without an edge; what waited for it asks to be bound again."""
    claim = story.false_failed()
    story.record(claim, Applied("r"))
    assert story.outbox.bind_rows([claim.seq]).bound == 0
    number = story.divergence(claim.seq)
    closed = story.people.close_divergence(story.said(claim), number, Verdict.STANDS)
    assert isinstance(closed, Stated)
    assert (closed.edge, closed.state) == (None, State.FAILED)
    assert story.outbox.bind_rows([claim.seq]).bound == 1


def test_an_undo_that_took_effect_is_resolved_first(story: Story) -> None:
    """A compensation that was wrongly called failed did undo its target."""
    claim = story.committed("n", "keyed")
    undo = story.compensate(claim.seq)
    sent = story.send("u")
    story.record(sent, Unknown("silence"))
    story.advance(101)
    story.people.not_landed(story.said(sent))
    story.outbox.finish_undo(claim.seq)
    story.record(sent, Applied("gone"))
    number = story.divergence(undo.seq)
    said = story.said(sent)
    assert code(story.people.close_divergence(said, number, Verdict.STANDS)) == "resolve_first"
    assert isinstance(story.people.undone(story.said(claim)), Stated)
    assert isinstance(story.people.close_divergence(said, number, Verdict.STANDS), Stated)


def test_a_release_over_an_effect_needs_its_risk_named(story: Story) -> None:
    """Refused without `may_duplicate`, and on record with it."""
    story.committed("n", "keyless")
    after = story.supersede(n=2)
    said = Said(after.seq, "ops", "both are wanted", 0)
    assert code(story.people.release(said)) == "earlier_generation"
    assert isinstance(story.people.release(said, may_duplicate=True), Stated)


def test_doubt_outlives_what_settles_as_nothing(story: Story) -> None:
    """Queued again at a person's risk, then withdrawn: the step stays unknown."""
    claim = story.unknown("n", "windowed")
    story.advance(400)
    story.people.not_landed(story.said(claim), requeue=True, may_duplicate=True)
    assert story.cancel() is State.CANCELLED
    assert story.column(claim.seq, "diverged_at") is not None
    assert story.told() == "unknown"
