"""Claims, marks, outcomes, unsent rows and reaping behave alike in memory and on Postgres."""

import uuid
from dataclasses import replace

import pytest

from ackbox.outbox.commands import NotMarked, Record
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown

from .story import W1, W2, Story


def test_a_claim_takes_ready_rows_oldest_first(story: Story) -> None:
    """Rows of one lane, at most as many as asked for, and each once."""
    first = story.seq("a")
    assert [one.seq for one in story.outbox.claim("a", 5, W1)] == [first]
    assert story.outbox.claim("a", 5, W1) == []
    assert story.column(first, "fence") == 1


def test_a_mark_needs_its_own_live_claim(story: Story) -> None:
    """Another fence, another process and a dead process get their codes."""
    story.put()
    claim = story.claim()
    assert story.mark(replace(claim, fence=9)) == NotMarked("stale_fence")
    story.outbox.register(W2)
    assert story.mark(claim, W2) == NotMarked("stale_fence")
    story.outbox.stop(W1)
    assert story.mark(claim) == NotMarked("owner_dead")


@pytest.mark.parametrize("what", ["cancelled", "superseded", "paused", "stale_read_set"])
def test_a_mark_is_refused_for_what_changed_meanwhile(story: Story, what: str) -> None:
    """The reply names the guard that did not hold."""
    story.put(read_set={"budget": 0})
    claim = story.claim()
    if what == "cancelled":
        story.cancel()
    elif what == "superseded":
        story.supersede(n=2)
    elif what == "paused":
        story.outbox.pause("keyless", on=True)
    else:
        story.outbox.touch("budget")
    expected = {"cancelled": "illegal_transition", "superseded": "illegal_transition"}.get(
        what, what
    )
    assert story.mark(claim) == NotMarked(expected)
    if what == "paused":
        story.outbox.pause("keyless", on=False)


def test_a_mark_stops_at_the_deadline(story: Story) -> None:
    """A passed deadline counts as not wanted."""
    story.put(deadline_seconds=10)
    claim = story.claim()
    story.advance(10)
    assert story.mark(claim) == NotMarked("not_wanted")


def test_each_outcome_takes_its_edge(story: Story) -> None:
    """Applied and Accepted commit, a final refusal fails, a transient one retries, else unknown."""
    outcomes: dict[str, Outcome] = {
        "acknowledge": Applied("r"), "accepted": Accepted("r"), "refuse": NotApplied("no"),
        "retry": NotApplied("busy", transient=True), "lose": Unknown("silence"),
    }  # fmt: skip
    edges = {name: story.record(story.awaiting(name), one).edge for name, one in outcomes.items()}
    assert edges == {name: "acknowledge" if name == "accepted" else name for name in outcomes}


def test_a_repeated_outcome_is_kept_once(story: Story) -> None:
    """After a lost COMMIT the same outcome is recorded again: it agrees."""
    claim = story.awaiting()
    assert story.record(claim, Applied("r")).edge == "acknowledge"
    again = story.outbox.record(Record(claim, Applied("r")))
    assert (again.edge, again.code) == (None, "agrees")
    assert len(story.outbox.observations()) == 1


def test_a_late_refusal_of_an_older_fence_moves_nothing(story: Story) -> None:
    """Its attempt does not hold the row any more."""
    claim = story.unknown()
    story.people.not_landed(story.said(claim), requeue=True)
    second = story.claim()
    assert story.record(claim, NotApplied("late")).code == "stale_fence"
    assert story.state(second.seq) == "executing"


def test_evidence_commits_whatever_became_of_the_row(story: Story) -> None:
    """A late Applied of an earlier attempt settles an executing row; its claim is then void."""
    claim = story.unknown()
    story.people.not_landed(story.said(claim), requeue=True)
    second = story.claim()
    assert story.record(claim, Applied("r")).edge == "acknowledge"
    assert isinstance(story.mark(second), NotMarked)


def test_an_effect_without_a_mark_opens_a_divergence(story: Story) -> None:
    """Nothing in the protocol can have caused it: no edge, and the step is held."""
    story.put()
    claim = story.claim()
    assert story.record(claim, Applied("r")).code == "no_mark"
    assert story.state(claim.seq) == "held"
    assert story.told() == "unknown"


def test_a_miss_ends_the_trust_in_the_key(story: Story) -> None:
    """Under any fence, in any state; a cut-off answer does so the second time."""
    miss = story.awaiting("miss", "keyed")
    story.record(miss, Unknown("no echo", answer=Answer.COMPLETE))
    assert not story.column(miss.seq, "key_trusted")
    cut = story.awaiting("cut", "keyed")
    story.record(cut, Unknown("cut", answer=Answer.CUT_OFF))
    assert story.column(cut.seq, "key_trusted")
    story.record(cut, Unknown("cut", answer=Answer.CUT_OFF))
    assert not story.column(cut.seq, "key_trusted")


def test_give_back_returns_or_withdraws(story: Story) -> None:
    """Back to the queue; a row that was called off, or whose read set is stale, is withdrawn."""
    story.put("a")
    assert story.give_back(story.claim("a"), "shutdown").edge == "give_back"
    story.put("b")
    assert story.give_back(story.claim("b"), "stale_read_set").state is State.CANCELLED
    story.put("c")
    claim = story.claim("c")
    story.cancel("c")
    assert story.give_back(claim, "shutdown").code == "stale_fence"


def test_the_reaper_tells_the_dead_from_the_slow(story: Story) -> None:
    """A dead owner makes the row suspect, a living one that lost it does not."""
    dead, slow = story.seq("dead"), story.seq("slow")
    other = uuid.UUID(int=9)
    story.outbox.register(other)
    story.claim("dead", other)
    story.claim("slow")
    story.advance(31)
    assert sorted(story.reap()) == [("lapse", "dead"), ("lapse", "slow")]
    assert (story.column(dead, "suspect"), story.column(slow, "suspect")) == (True, False)


def test_a_suspect_row_is_claimed_alone_and_poisoned(story: Story) -> None:
    """A row that kills its workers is refused after a few lapses claimed alone."""
    seq = story.seq()
    for number in range(10, 20):
        owner = uuid.UUID(int=number)
        story.outbox.register(owner)
        alone = story.outbox.suspect_ready("n")
        if not story.outbox.claim("n", 1, owner, alone=alone):
            break
        story.advance(31)
        story.reap()
        story.advance(300)
    assert story.state(seq) == "failed"
    assert story.names(seq)[-1] == "refuse.poisoned"


def test_a_sent_row_expires_into_the_unknown(story: Story) -> None:
    """Its owner's death proves nothing about the effect."""
    claim = story.awaiting()
    story.outbox.stop(W1)
    assert story.reap() == (("expire", "n"),)
    assert story.state(claim.seq) == "indeterminate"
    assert story.told() == "unknown"


def test_ready_lanes_count_what_may_be_claimed(story: Story) -> None:
    """Held and unready rows ring nobody."""
    story.put("a")
    story.put("b", held_for="ops")
    assert [(lane.lane, lane.rows) for lane in story.outbox.ready_lanes()] == [("a", 1)]


def test_sends_are_used_up_by_sends_alone(story: Story) -> None:
    """With one send allowed a transient refusal of it is final."""
    claim = story.awaiting("n", "strict")
    assert story.record(claim, NotApplied("busy", transient=True)).edge == "refuse"


def test_a_marked_row_keeps_its_digest(story: Story) -> None:
    """The request that was sent is the only one that may be sent again."""
    claim = story.unknown("n", "keyed")
    assert story.resend(claim, "another") == NotMarked("request_changed")
    taken = story.resend(claim)
    assert (taken.fence, taken.sends) == (claim.fence + 1, claim.sends + 1)
    assert isinstance(story.mark(taken), NotMarked)
