"""Put, supersede, cancel and telling behave alike in memory and on Postgres."""

from ackbox.outbox.intent import Intent
from ackbox.outbox.model import GateDecision, Refusal, State
from ackbox.outbox.outcome import Applied, NotApplied

from .story import W1, Story, code


def test_a_repeated_put_returns_what_is_stored(story: Story) -> None:
    """The same call is found; the second answer says that nothing was created."""
    first, second = story.put(), story.put()
    assert (first.created, second.created) == (True, False)
    assert first.seq == second.seq
    assert story.names(first.seq) == ["put"]


def test_other_arguments_are_a_conflict_unless_kept(story: Story) -> None:
    """`keep` takes the live generation as it is; everybody else is refused."""
    story.put()
    assert code(story.put(args={"n": 2})) == "args_conflict"
    kept = story.put(args={"n": 2}, keep=True)
    assert isinstance(kept, Intent)
    assert not kept.created


def test_a_kept_put_returns_the_live_generation(story: Story) -> None:
    """After a supersede generation 1 is live, while the same call still finds generation 0."""
    story.put()
    story.supersede(n=2)
    assert story.put(keep=True).generation == 1
    assert story.put().generation == 0


def test_a_gate_holds_the_row(story: Story) -> None:
    """A put that needs an approval is held and waits for it."""
    seq = story.seq(held_for="ops")
    assert story.state(seq) == "held"
    assert story.told() == "awaiting_approval"


def test_supersede_withdraws_what_was_not_sent(story: Story) -> None:
    """The old generation is cancelled and the new one is queued at once."""
    seq = story.seq()
    after = story.supersede(n=2)
    assert story.state(seq) == "cancelled"
    assert story.state(after.seq) == "queued"
    assert (story.told(), story.told(generation=0)) == ("in_flight", "superseded")


def test_supersede_waits_for_what_was_sent(story: Story) -> None:
    """A request may be on the wire: the next generation is held."""
    claim = story.awaiting()
    after = story.supersede(n=2)
    assert (story.state(claim.seq), story.state(after.seq)) == ("awaiting_ack", "held")
    assert not story.column(claim.seq, "wanted")


def test_supersede_repeated_is_the_same_and_late_is_refused(story: Story) -> None:
    """The repeated call is answered with its own generation; another content is refused."""
    story.put()
    first = story.supersede(n=2)
    assert story.supersede(n=2).seq == first.seq
    assert code(story.supersede(n=3)) == "stale_generation"
    assert code(story.supersede("nobody", n=3)) == "not_found"


def test_supersede_without_args_takes_the_same_call(story: Story) -> None:
    """The content is taken over, and so is the repeated call recognised."""
    story.put()
    first = story.supersede()
    assert story.supersede().seq == first.seq


def test_a_gate_is_asked_again_for_each_generation(story: Story) -> None:
    """The decision of the generation before is not taken over."""
    seq = story.seq(held_for="ops")
    assert story.decide(seq, GateDecision.APPROVED) is GateDecision.APPROVED
    after = story.supersede(n=2)
    assert story.state(after.seq) == "held"
    assert story.told() == "awaiting_approval"


def test_cancel_by_state(story: Story) -> None:
    """Withdrawn where nothing was sent, recorded where it was, refused where it happened."""
    story.put("queued")
    story.awaiting("sent")
    story.committed("done")
    story.failed("over")
    assert story.cancel("queued") is State.CANCELLED
    assert story.cancel("sent") is State.AWAITING_ACK
    assert code(story.cancel("done")) == "use_compensate"
    assert story.cancel("over") is State.FAILED
    assert code(story.cancel("nobody")) == "not_found"


def test_cancel_of_an_earlier_generation_is_stale(story: Story) -> None:
    """A cancel speaks of the live generation alone."""
    story.put()
    story.supersede(n=2)
    assert code(story.cancel(generation=0)) == "stale_generation"
    assert story.cancel(generation=1) is State.CANCELLED


def test_a_recorded_cancel_is_kept_once(story: Story) -> None:
    """The outcome of what was sent still counts."""
    claim = story.awaiting()
    story.cancel()
    story.cancel()
    assert story.names(claim.seq).count("cancel_recorded") == 1
    assert story.record(claim, Applied("r")).state is State.COMMITTED


def test_told_words(story: Story) -> None:
    """Each way to end has its word."""
    story.put("in_flight")
    story.committed("committed")
    story.failed("failed")
    story.unknown("unknown")
    story.put("cancelled")
    story.cancel("cancelled")
    for word in ("in_flight", "committed", "failed", "unknown", "cancelled"):
        assert story.told(word) == word
    assert story.outbox.tell(("default", "nobody")) is None


def test_unknown_is_told_while_an_earlier_generation_is_open(story: Story) -> None:
    """A cancelled live generation does not hide what is unknown before it."""
    story.unknown()
    story.supersede(n=2)
    assert story.cancel() is State.CANCELLED
    assert story.told() == "unknown"


def test_a_deadline_counts_as_not_wanted(story: Story) -> None:
    """The reaper withdraws it; it is never claimed afterwards."""
    seq = story.seq(deadline_seconds=10)
    story.advance(11)
    assert story.outbox.claim("n", 1, W1) == []
    assert story.reap() == (("withdraw", "n"),)
    assert story.state(seq) == "cancelled"


def test_a_later_refusal_binds_nothing_twice(story: Story) -> None:
    """Bound once; the same rows asked again are duplicates, a superseded one is stale."""
    claim = story.committed()
    first, second = story.outbox.bind_rows([claim.seq]), story.outbox.bind_rows([claim.seq])
    assert (first.bound, second.duplicate) == (1, 1)
    sent = story.awaiting("m")
    story.supersede("m", n=2)
    story.record(sent, NotApplied("no"))
    assert story.outbox.bind_rows([sent.seq]).stale == 1
    assert story.outbox.bind_rows([sent.seq]).stale == 1
    assert story.names(sent.seq).count("stale") == 1


def test_binding_waits_for_an_open_undo(story: Story) -> None:
    """`committed` is not bound while it is undone; the hand-over follows the bind."""
    claim = story.committed()
    ordered = story.compensate(claim.seq)
    assert not isinstance(ordered, Refusal)
    assert story.outbox.bind_rows([claim.seq]).bound == 0
    undo = story.send("u")
    story.record(undo, Applied())
    assert story.outbox.find_undone() == (claim.seq,)
    assert story.outbox.finish_undo(claim.seq).edge == "compensate"
    answer = story.outbox.bind_rows([claim.seq], ("keyed",))
    assert (answer.bound, answer.waiting) == (1, 1)
    assert len(story.outbox.due("bound")) == 1
