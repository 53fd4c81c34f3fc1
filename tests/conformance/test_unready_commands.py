"""Rows that nobody could prepare: bounded by time alone, and left to whoever has their tool."""

import pytest

from ackbox.outbox.commands import Claimed

from .story import W1, W2, Story

LIMIT_SECONDS = 3600
NOTHING: tuple[str, ...] = ()


def give_back(story: Story, claim: Claimed, reason: str) -> str | None:
    """Give a row back as unready; return the edge taken."""
    return story.give_back(claim, reason, True).edge


def test_unready_rows_are_refused_after_the_limit(story: Story) -> None:
    """By time alone: the time in which workers had them or they were held back."""
    story.put("a")
    assert give_back(story, story.claim("a"), "build_failed") == "give_back"
    story.advance(2)
    claim = story.claim("a")
    story.advance(LIMIT_SECONDS)
    assert give_back(story, claim, "build_failed") == "refuse.unready"


def test_an_unserved_row_is_refused_only_while_nobody_serves_it(story: Story) -> None:
    """A worker that has the tool may come at the last moment."""
    story.put("b")
    story.outbox.register(W2, NOTHING)
    story.outbox.stop(W1)
    assert give_back(story, story.claim("b", W2, NOTHING), "no_worker_for_tool") == "give_back"
    claim = story.claim("b", W2, NOTHING)
    story.advance(LIMIT_SECONDS)
    story.outbox.register(W1)
    story.outbox.register(W2, NOTHING)
    assert give_back(story, claim, "no_worker_for_tool") == "give_back"
    story.outbox.stop(W1)
    story.advance(70)
    story.outbox.register(W2, NOTHING)
    claim = story.claim("b", W2, NOTHING)
    assert give_back(story, claim, "no_worker_for_tool") == "refuse.unserved"


@pytest.mark.parametrize("alive", [True, False])
def test_a_row_is_left_to_the_living_worker_that_has_its_tool(story: Story, alive: bool) -> None:
    """It is free again at once; only a living worker with the tool keeps others from it."""
    seq = story.seq("c")
    story.outbox.register(W2, NOTHING)
    claim = story.claim("c", W2, NOTHING)
    assert give_back(story, claim, "no_worker_for_tool") == "give_back"
    assert story.column(seq, "ready_at") == story.now
    if not alive:
        story.outbox.stop(W1)
    assert len(story.outbox.claim("c", 1, W2, knows=NOTHING)) == (0 if alive else 1)
    assert len(story.outbox.claim("c", 1, W1)) == (1 if alive else 0)


def test_waiting_in_the_queue_makes_no_row_unready(story: Story) -> None:
    """Two claims that a living worker loses, hours apart, are not hours of not being ready."""
    seq = story.seq("d")
    for _ in range(3):
        claim = story.claim("d")
        story.advance(31)
        assert list(story.reap()) == [("lapse", "d")]
        assert claim.seq == seq
        story.advance(2 * LIMIT_SECONDS)
    assert story.column(seq, "unready_since") is not None
    assert story.state(seq) == "queued"


def test_what_others_lacked_says_nothing_about_the_first_that_has_the_tool(story: Story) -> None:
    """An hour without any worker for it is over when there is one: it gets its own time."""
    seq = story.seq("e")
    story.outbox.register(W2, NOTHING)
    story.outbox.stop(W1)
    claim = story.claim("e", W2, NOTHING)
    assert give_back(story, claim, "no_worker_for_tool") == "give_back"
    claim = story.claim("e", W2, NOTHING)
    story.advance(LIMIT_SECONDS - 1)
    assert give_back(story, claim, "no_worker_for_tool") == "give_back"
    assert story.column(seq, "unready_since") is not None
    story.advance(70)
    story.outbox.register(W1)
    claim = story.claim("e", W1)
    assert story.column(seq, "unready_since") is None
    assert give_back(story, claim, "build_failed") == "give_back"
    story.advance(2)
    claim = story.claim("e", W1)
    # Its own failures count on, whoever claims.
    assert story.column(seq, "unready_since") is not None
