"""What a person may say: every statement quotes what was seen, is on record, and may be refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.outbox.commands import Resend
from ackbox.outbox.intent import Address
from ackbox.outbox.model import GateDecision
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.people import Denied, Said, Stated, Verdict

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, PROBED, WINDOWED, Seeded, seeded_outbox


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


def said(claim: Any, reason: str = "looked it up") -> Said:
    """Speak about an attempt's row against the fence of that attempt."""
    return Said(claim.seq, "ops@example.org", reason, claim.fence)


def stated(answer: Any) -> Stated:
    """Return an accepted statement."""
    assert isinstance(answer, Stated), answer
    return answer


def denied(answer: Any) -> str:
    """Return a refused statement's code."""
    assert isinstance(answer, Denied), answer
    return answer.code


def next_step(answer: Any) -> str:
    """Return what a refusal says to run next."""
    return str(answer.as_dict()["next_step"])


# -- it landed, it did not -------------------------------------------------------------------------


def test_it_landed_commits_with_the_reference_and_the_name(seeded: Seeded) -> None:
    """The statement, its reason, its speaker and the fence are on record."""
    claim = seeded.unknown("a")
    answer = stated(seeded.people.landed(said(claim), "<mail-7>"))
    assert (answer.edge, answer.as_dict()["state"]) == ("acknowledge.person", "committed")
    (seen,) = seeded.sql(
        "SELECT o.kind, o.ref, o.fence FROM {schema}.observation o JOIN {schema}.intent_state s"
        " USING (observation_id) WHERE s.seq = :seq", seq=claim.seq
    )  # fmt: skip
    assert (seen["kind"], seen["ref"], seen["fence"]) == ("statement", "<mail-7>", claim.fence)
    (event,) = seeded.sql(
        "SELECT actor, actor_name, reason FROM {schema}.event WHERE name = 'acknowledge.person'"
    )
    assert tuple(event.values()) == ("person", "ops@example.org", "looked it up")


def test_it_did_not_land_fails_or_queues_again(seeded: Seeded) -> None:
    """Both are edges; queueing again needs nothing for a tool without a key window to miss."""
    one, other = seeded.unknown("a"), seeded.unknown("b")
    assert stated(seeded.people.not_landed(said(one))).state == "failed"
    again = stated(seeded.people.not_landed(said(other), requeue=True))
    assert again.state == "queued"
    assert seeded.row(other.seq)["in_doubt"] is False


def test_undone_by_hand_takes_the_adopters_along(seeded: Seeded) -> None:
    """Hole 22: an effect undone by hand can be recorded, and g1 goes on."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1"))
    seeded.hold_step(second)
    assert denied(seeded.people.undone(Said(second, "ops", "by hand", 0))) == "not_owner"
    assert stated(seeded.people.undone(said(first))).edge == "compensate.person"
    assert seeded.state(second) == "compensated"


@pytest.mark.parametrize("speak", ["landed", "not_landed", "requeue", "undone"])
def test_nothing_is_said_about_a_send_that_may_still_arrive(seeded: Seeded, speak: str) -> None:
    """Hole 2: truthfully "nothing there" - and then it lands. Refused, with the time left."""
    claim = seeded.unknown("a", quiet=False)
    answer = _speak(seeded, claim, speak)
    assert denied(answer) == "not_quiet"
    assert 90 < answer.seconds_left < 101
    assert "quiet in" in answer.detail
    assert answer.next_step == "ackbox show a"
    assert seeded.state(claim.seq) == "indeterminate"


def _speak(seeded: Seeded, claim: Any, speak: str) -> Any:
    match speak:
        case "landed":
            return seeded.people.landed(said(claim), "ref")
        case "undone":
            return seeded.people.undone(said(claim))
    return seeded.people.not_landed(said(claim), requeue=speak == "requeue")


@pytest.mark.parametrize("speak", ["landed", "not_landed", "requeue", "undone"])
def test_a_stale_fence_is_refused(seeded: Seeded, speak: str) -> None:
    """The row was resent after the person looked: what they saw is about another send."""
    claim = seeded.unknown("a", KEYED)
    taken = seeded.unknowns.resend(Resend(claim, "digest"), seeded.owner)
    seeded.record(taken, Unknown("lost"))  # type: ignore[arg-type]
    seeded.advance(200)
    assert denied(_speak(seeded, claim, speak)) == "stale_fence"
    assert seeded.state(claim.seq) == "indeterminate"


def test_a_reason_and_a_reference_are_asked_for(seeded: Seeded) -> None:
    """Without them the record would be worth nothing."""
    claim = seeded.unknown("a")
    assert denied(seeded.people.landed(said(claim, " "), "ref")) == "reason_missing"
    assert denied(seeded.people.landed(said(claim), " ")) == "ref_missing"
    assert denied(seeded.people.undone(Said(999, "ops", "why", 1))) == "not_found"


def test_nothing_is_said_about_a_row_that_is_not_unknown(seeded: Seeded) -> None:
    """A final state is no matter of opinion."""
    claim = seeded.committed("a")
    assert denied(seeded.people.not_landed(said(claim))) == "illegal_transition"
    assert denied(seeded.people.landed(said(claim), "ref")) == "illegal_transition"


def test_it_did_not_land_settles_a_resent_row(seeded: Seeded) -> None:
    """Hole 18: a statement speaks for every send up to the fence that it quotes."""
    claim = seeded.unknown("a", KEYED)
    taken = seeded.unknowns.resend(Resend(claim, "digest"), seeded.owner)
    seeded.record(taken, Unknown("lost"))  # type: ignore[arg-type]
    assert seeded.row(claim.seq)["unresolved"] is True
    seeded.advance(200)
    assert stated(seeded.people.not_landed(said(taken))).state == "failed"
    assert seeded.row(claim.seq)["unresolved"] is False


def test_what_was_called_off_is_not_queued_again(seeded: Seeded) -> None:
    """Hole 14, 15."""
    claim = seeded.unknown("a")
    seeded.supersede("a", x=2)
    assert denied(seeded.people.not_landed(said(claim), requeue=True)) == "not_wanted"
    assert stated(seeded.people.not_landed(said(claim))).state == "failed"


def test_queueing_again_past_the_key_window_names_its_risk(seeded: Seeded) -> None:
    """The tool has forgotten the key: the option says what may happen, and the row remembers."""
    claim = seeded.unknown("a", WINDOWED)
    seeded.advance(90_000)
    answer = seeded.people.not_landed(said(claim), requeue=True)
    assert denied(answer) == "may_duplicate"
    assert next_step(answer).endswith("--may-duplicate")
    stated(seeded.people.not_landed(said(claim), requeue=True, may_duplicate=True))
    assert seeded.row(claim.seq)["in_doubt"] is True
    (event,) = seeded.sql("SELECT detail FROM {schema}.event WHERE name = 'clear.person'")
    assert event["detail"] == {"may_duplicate": True}


def test_queueing_again_with_a_distrusted_key_names_its_risk(seeded: Seeded) -> None:
    """Hole 1: after a protocol miss the key protects nobody."""
    claim = seeded.awaiting("a", KEYED)
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.advance(200)
    assert denied(seeded.people.not_landed(said(claim), requeue=True)) == "may_duplicate"


def test_dropping_the_handle_names_its_risk(seeded: Seeded) -> None:
    """With the handle reused there is one effect even if the first send lands later."""
    claim = seeded.unknown("a")
    seeded.sql("""UPDATE {schema}.intent_state SET handle = '"draft-1"' WHERE seq = :seq""",
               seq=claim.seq)  # fmt: skip
    drop = {"requeue": True, "drop_handle": True}
    assert denied(seeded.people.not_landed(said(claim), **drop)) == "may_duplicate"
    stated(seeded.people.not_landed(said(claim), **drop, may_duplicate=True))
    assert seeded.row(claim.seq)["handle"] is None


def test_a_row_in_doubt_that_is_called_off_opens_a_divergence(seeded: Seeded) -> None:
    """Hole E: it landed, a person queued it again, a supersede withdraws it: not nothing."""
    claim = seeded.unknown("a", WINDOWED, x=1)
    seeded.advance(90_000)
    stated(seeded.people.not_landed(said(claim), requeue=True, may_duplicate=True))
    second = seeded.supersede("a", x=2)
    assert seeded.state(claim.seq) == "cancelled"
    assert seeded.row(claim.seq)["diverged_at"] is not None
    assert seeded.row(second)["diverged_at"] is not None
    assert seeded.state(second) == "held"


def test_a_statement_wakes_the_next_generation(seeded: Seeded) -> None:
    """The hold pass comes to the step at once, not after a quarter of its age."""
    claim = seeded.unknown("a")
    second = seeded.supersede("a", x=2)
    seeded.advance(1000)
    seeded.hold_step(second)
    assert seeded.holds.find_held(10) == ()
    stated(seeded.people.not_landed(said(claim)))
    assert seeded.holds.find_held(10) == (second,)
    assert seeded.hold_step(second) == ("release", "release")


# -- release ---------------------------------------------------------------------------------------


def committed_in_the_way(seeded: Seeded) -> tuple[Any, int]:
    """Return a committed first generation of a tool that cannot undo, and a held second one."""
    first = seeded.awaiting("a", KEYLESS, x=1)
    second = seeded.supersede("a", x=2)
    seeded.record(first, Applied("ref-1"))
    return first, second


def test_a_person_releases_over_a_committed_generation_knowingly(seeded: Seeded) -> None:
    """Hole 22: the second effect is somebody's decision, under its own name."""
    _, second = committed_in_the_way(seeded)
    speak = Said(second, "ops", "both are wanted")
    answer = seeded.people.release(speak)
    assert denied(answer) == "earlier_generation"
    assert next_step(answer) == "ackbox release a --may-duplicate"
    assert stated(seeded.people.release(speak, may_duplicate=True)).edge == "release.person"
    (event,) = seeded.sql("SELECT detail FROM {schema}.event WHERE name = 'release.person'")
    assert event["detail"] == {"may_duplicate": True}


def test_nobody_releases_over_an_unknown_generation(seeded: Seeded) -> None:
    """Not even knowingly: it may still land."""
    seeded.unknown("a")
    second = seeded.supersede("a", x=2)
    speak = Said(second, "ops", "in a hurry")
    assert denied(seeded.people.release(speak, may_duplicate=True)) == "earlier_generation"


def test_a_release_is_no_approval(seeded: Seeded) -> None:
    """The gate is decided at the gate."""
    seq = seeded.put("a", held_for="policy")
    assert denied(seeded.people.release(Said(seq, "ops", "go"))) == "awaiting_approval"
    assert seeded.sql("SELECT decision FROM {schema}.gate")[0]["decision"] == GateDecision.OPEN


def test_a_release_may_quote_a_fence(seeded: Seeded) -> None:
    """Where it does, it is checked."""
    _, second = committed_in_the_way(seeded)
    speak = Said(second, "ops", "both are wanted", fence=4)
    assert denied(seeded.people.release(speak, may_duplicate=True)) == "stale_fence"


# -- divergences -----------------------------------------------------------------------------------


def diverged(seeded: Seeded) -> tuple[Any, int, int]:
    """Return a false failed first generation, the held second one, and the divergence's number."""
    first = seeded.false_failed("a", x=1)
    second = seeded.supersede("a", x=2)
    seeded.record(first, Applied("late"))
    assert seeded.state(second) == "held", "held in the transaction of the late Applied"
    return first, second, seeded.divergence(first.seq)


def test_a_divergence_holds_the_next_generation(seeded: Seeded) -> None:
    """Hole 26: the proof is in hand before g1 is sent."""
    _, second, _ = diverged(seeded)
    assert seeded.hold_step(second) == (None, "divergence")
    assert seeded.row(second)["parked_at"] is not None


def test_a_release_quotes_the_divergence_that_was_seen(seeded: Seeded) -> None:
    """Hole A: a release that quotes nothing, or an older one, wipes nothing out."""
    first, second, number = diverged(seeded)
    speak = Said(second, "ops", "both are wanted")
    assert denied(seeded.people.release(speak)) == "divergence"
    assert denied(seeded.people.release(speak, divergence=number + 1)) == "stale_divergence"
    seeded.record(first, Applied("yet another"))
    assert seeded.divergence(first.seq) > number
    assert denied(seeded.people.release(speak, divergence=number)) == "stale_divergence"
    newest = seeded.divergence(first.seq)
    assert stated(seeded.people.release(speak, divergence=newest)).state == "queued"
    assert seeded.row(first.seq)["diverged_at"] is None
    assert seeded.claim("a").seq == second


def test_a_withdrawal_closes_no_divergence(seeded: Seeded) -> None:
    """Hole A: g1 withdrawn, superseded: g2 is held by the same divergence."""
    first, second, _ = diverged(seeded)
    seeded.run(lambda c: seeded.planner.cancel(c, Address("default", "a")))
    assert seeded.state(second) == "cancelled"
    third = seeded.supersede("a", 1, x=3)
    assert seeded.row(third)["diverged_at"] is not None
    assert seeded.hold_step(third) == (None, "divergence")
    assert seeded.row(first.seq)["diverged_at"] is not None


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_closed_divergence_moves_no_state_and_frees_the_step(
    seeded: Seeded, verdict: Verdict
) -> None:
    """Close: in any state, without an edge; what waited may bind and move on."""
    first, second, number = diverged(seeded)
    seeded.sql("DELETE FROM {schema}.settled_batch")
    speak = Said(first.seq, "ops", "looked at both")
    assert stated(seeded.people.close_divergence(speak, number, verdict)).edge is None
    assert seeded.state(first.seq) == "failed"
    for seq in (first.seq, second):
        assert seeded.row(seq)["diverged_at"] is None
    assert seeded.hold_step(second) == ("release", "release")
    assert "divergence_closed" in seeded.events(first.seq)
    answer = seeded.people.close_divergence(speak, number, verdict)
    assert denied(answer) == "no_divergence"


def test_a_close_quotes_the_latest_divergence(seeded: Seeded) -> None:
    """Hole A, second form: what arrived while the person was reading is not wiped out."""
    first, second, number = diverged(seeded)
    seeded.record(first, Applied("yet another"))
    speak = Said(second, "ops", "seen the first one")
    answer = seeded.people.close_divergence(speak, number, Verdict.STANDS)
    assert denied(answer) == "stale_divergence"
    assert seeded.row(second)["diverged_at"] is not None


def test_a_diverged_failure_waits_and_binds_after_the_close(seeded: Seeded) -> None:
    """Hole D: false failed, the late Applied comes before the bind; closing lets it bind."""
    first = seeded.false_failed("a")
    seeded.record(first, Applied("late"))
    seeded.sql("DELETE FROM {schema}.settled_batch")
    number = seeded.divergence(first.seq)
    said_so = Said(first.seq, "ops", "undone by hand")
    stated(seeded.people.close_divergence(said_so, number, Verdict.UNDONE))
    batches = seeded.sql("SELECT stage, seqs FROM {schema}.settled_batch")
    assert [(batch["stage"], list(batch["seqs"])) for batch in batches] == [
        ("settled", [first.seq])
    ]


def test_the_recorder_marks_the_generation_that_is_live_by_then(seeded: Seeded) -> None:
    """Hole B: the mark follows the step's live row, not the one that was live when read."""
    first, second, _ = diverged(seeded)
    assert seeded.row(second)["diverged_at"] is not None
    third = seeded.supersede("a", 1, x=3)
    seeded.record(first, Applied("yet another"))
    assert seeded.row(third)["diverged_at"] is not None


def test_repeated_evidence_opens_a_closed_divergence_no_second_time(seeded: Seeded) -> None:
    """A reference that is on record agrees."""
    first, second, number = diverged(seeded)
    speak = Said(second, "ops", "seen")
    stated(seeded.people.close_divergence(speak, number, Verdict.STANDS))
    seeded.record(first, Applied("late"))
    assert seeded.row(second)["diverged_at"] is None


def test_late_evidence_for_a_held_row_that_was_mistaken_twice(seeded: Seeded) -> None:
    """Acknowledge from held: a person queued it again, a divergence held it, its proof arrives."""
    claim = seeded.unknown("a", PROBED)
    stated(seeded.people.not_landed(said(claim), requeue=True))
    seeded.sql(
        "UPDATE {schema}.intent_state SET diverged_at = {schema}.clock_now() WHERE seq = :seq",
        seq=claim.seq,
    )
    assert seeded.hold_step(claim.seq) == ("hold", "hold")
    assert seeded.record(claim, Applied("ref-1")).state == "committed"


def test_two_statements_at_one_fence_are_two_records(seeded: Seeded) -> None:
    """A close after a statement at the same fence keeps both."""
    first, _, number = diverged(seeded)
    speak = Said(first.seq, "ops", "seen")
    stated(seeded.people.close_divergence(speak, number, Verdict.STANDS))
    rows = seeded.sql(
        "SELECT number FROM {schema}.observation WHERE seq = :seq AND kind = 'statement'"
        " ORDER BY number", seq=first.seq
    )  # fmt: skip
    assert [row["number"] for row in rows] == [0, 1]


def test_a_late_refusal_changes_nothing_that_a_person_said(seeded: Seeded) -> None:
    """A transient NotApplied after the statement is kept and moves nothing."""
    claim = seeded.unknown("a")
    stated(seeded.people.landed(said(claim), "ref"))
    seeded.record(claim, NotApplied("busy", code="busy", transient=True))
    assert seeded.state(claim.seq) == "committed"
