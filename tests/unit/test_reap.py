"""Expiry and give-back rules: the end of a lease proves nothing, and load ends no row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from ackbox.outbox import give_back, reap
from ackbox.outbox.contract import ToolContract
from ackbox.outbox.model import Refusal, Row, State, World
from ackbox.outbox.transitions import apply, refusal_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = UUID(int=1)
ALIVE = World(now=NOW, contract=ToolContract("t"))
DEAD = replace(ALIVE, owner_alive=False)
CLAIMED = Row(
    seq=1, state=State.EXECUTING, fence=1, attempts=1, owner=OWNER,
    ack_by=NOW + timedelta(seconds=9), contract_id=1,
)  # fmt: skip
SENT = replace(CLAIMED, state=State.AWAITING_ACK, sends=1)


def reaped(row: Row, world: World) -> Row | None:
    """Return the row after the reaper's first move that is not refused; None where it waits."""
    for move in reap.moves_for(row, world):
        after = apply(row, move, world)
        if isinstance(after, Row):
            return after
        assert isinstance(after, Refusal)
    return None


def test_nothing_happens_to_a_fresh_lease_of_a_living_owner() -> None:
    """Case 7: whoever starts up looks at expiry only."""
    assert reaped(CLAIMED, ALIVE) is None
    assert reaped(SENT, ALIVE) is None


@pytest.mark.parametrize("world", [DEAD, replace(ALIVE, now=NOW + timedelta(seconds=9))])
def test_an_unmarked_row_is_queued_again_and_a_marked_one_becomes_unknown(world: World) -> None:
    """Before the mark a crash costs nothing; after it nobody can tell."""
    queued = reaped(CLAIMED, world)
    unknown = reaped(SENT, world)
    assert queued is not None
    assert queued.state is State.QUEUED
    assert unknown is not None
    assert unknown.state is State.INDETERMINATE


def test_only_a_death_makes_a_row_suspect() -> None:
    """A living owner that lost the row says nothing about the row."""
    dead = reaped(CLAIMED, DEAD)
    slow = reaped(CLAIMED, replace(ALIVE, now=NOW + timedelta(seconds=9)))
    assert dead is not None
    assert dead.suspect
    assert slow is not None
    assert not slow.suspect
    assert slow.unready_since is not None


def test_a_row_that_kills_every_worker_is_refused_as_poisoned_in_bounded_steps() -> None:
    """Case 9: the count stands in the row, raised by the lapse, and only the mark resets it."""
    row, deaths = CLAIMED, 0
    while row.state is State.EXECUTING:
        after = reaped(row, DEAD)
        assert after is not None
        deaths += 1
        row = (
            replace(after, state=State.EXECUTING, ack_by=NOW)
            if (after.state is State.QUEUED)
            else after
        )
    assert row.state is State.FAILED
    assert deaths == DEAD.limits.max_claims + 1


def test_what_nobody_wants_is_withdrawn_and_not_queued() -> None:
    """Hole 15: a called-off row never returns to queued."""
    off = reaped(replace(CLAIMED, wanted=False), DEAD)
    late = reaped(replace(CLAIMED, deadline=NOW), ALIVE)
    assert off is not None
    assert off.state is State.CANCELLED
    assert late is not None
    assert late.state is State.CANCELLED


def returned(row: Row, reason: str, world: World = ALIVE) -> Row:
    """Return the row after the first give-back move that is not refused."""
    for move in give_back.moves_for(row, 1, reason, 0.0, world):
        if refusal_of(row, move, world) is None:
            after = apply(row, move, world)
            assert isinstance(after, Row)
            return after
    raise AssertionError("every move was refused")


def test_giving_back_is_never_counted_out() -> None:
    """Case: a closed breaker may give a row back for ever; only time bounds the unready kinds."""
    row = replace(CLAIMED, attempts=10_000)
    assert returned(row, "shutdown").state is State.QUEUED


def test_an_unready_row_fails_after_the_limit_with_the_reason() -> None:
    """Nothing was sent, so failed is the truth."""
    old = replace(CLAIMED, unready_since=NOW - timedelta(hours=2))
    assert returned(old, "build_failed").state is State.FAILED
    assert returned(old, "no_worker_for_tool").state is State.FAILED


def test_a_tool_that_another_worker_serves_is_not_counted_out() -> None:
    """The limit waits while a live worker lists the tool."""
    old = replace(CLAIMED, unready_since=NOW - timedelta(hours=2))
    world = replace(ALIVE, tool_served=True)
    assert returned(old, "no_worker_for_tool", world).state is State.QUEUED


def test_an_unready_row_waits_longer_the_longer_it_is_unready() -> None:
    """The wait follows the age, so it needs no count; it stays under a minute."""
    fresh = returned(CLAIMED, "build_failed")
    old = returned(replace(CLAIMED, unready_since=NOW - timedelta(minutes=30)), "build_failed")
    assert fresh.ready_at == NOW + timedelta(seconds=1)
    assert old.ready_at == NOW + timedelta(seconds=32)


def test_a_stale_read_set_or_a_cancel_withdraws() -> None:
    """Instead of give_back, a row that is not wanted is cancelled."""
    assert returned(CLAIMED, "stale_read_set").state is State.CANCELLED
    assert returned(replace(CLAIMED, wanted=False), "shutdown").state is State.CANCELLED
