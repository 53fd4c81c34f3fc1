"""Which same-key resends are legal, and a COMMIT of one whose acknowledgement is lost."""

import uuid
from collections.abc import Iterator

import pytest

from ackbox.outbox.commands import (
    Claimed,
    NotMarked,
    Resend,
)
from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.intent import Address
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.reconcile_store import ReconcileStore

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, PROBED, WINDOWED, Seeded, seeded_outbox
from ..support.sessions import LostCommit

FOUND, ABSENT = "found", "absent"


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


def resend(seeded: Seeded, claim: Claimed, digest: str = "digest") -> Claimed | NotMarked:
    """Try to take a row for a same-key resend."""
    return seeded.unknowns.resend(Resend(claim, digest), seeded.owner)


# -- resend ----------------------------------------------------------------------------------------


def test_a_resend_raises_the_fence_and_is_seen_by_the_reaper(seeded: Seeded) -> None:
    """Rung 3, as a worker's send: fence, lease, count; a dead reconciler's row expires."""
    claim = seeded.unknown("a", KEYED)
    assert seeded.reaper.tidy(10) == 1, "the claim's own batch is closed while nothing is open"
    taken = resend(seeded, claim)
    assert isinstance(taken, Claimed)
    row = seeded.row(claim.seq)
    assert (taken.fence, row["state"]) == (claim.fence + 1, "awaiting_ack")
    assert (row["sends"], row["resends"], row["unresolved"]) == (2, 1, True)
    seeded.advance(100)
    assert claim.seq in seeded.reaper.find_overdue(10)


def test_no_resend_after_a_protocol_miss(seeded: Seeded) -> None:
    """Hole 1: the tool ignores its key."""
    claim = seeded.awaiting("a", KEYED)
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.advance(200)
    assert resend(seeded, claim) == NotMarked("key_untrusted")


def test_no_resend_after_a_miss_that_came_when_the_row_had_expired(seeded: Seeded) -> None:
    """Hole 1, worse: expire first, then the worker's own word."""
    claim = seeded.awaiting("a", KEYED)
    seeded.advance(100)
    seeded.reaper.reap([claim.seq])
    assert seeded.state(claim.seq) == "indeterminate"
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.advance(200)
    assert resend(seeded, claim) == NotMarked("key_untrusted")


def test_no_second_resend_after_a_miss_under_an_older_fence(seeded: Seeded) -> None:
    """Hole 1, third form: the miss is of the first send, the row is at the second."""
    claim = seeded.unknown("a", KEYED)
    taken = resend(seeded, claim)
    assert isinstance(taken, Claimed)
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.record(taken, Unknown("lost"))
    seeded.advance(200)
    assert resend(seeded, taken) == NotMarked("key_untrusted")


def test_no_resend_before_the_row_is_quiet(seeded: Seeded) -> None:
    """Hole 2: two overlapping requests under one key are run twice by many servers."""
    claim = seeded.unknown("a", KEYED, quiet=False)
    assert resend(seeded, claim) == NotMarked("not_quiet")


def test_no_resend_of_another_request(seeded: Seeded) -> None:
    """A key is good for the same request only."""
    claim = seeded.unknown("a", KEYED)
    assert resend(seeded, claim, "another") == NotMarked("request_changed")


def test_no_resend_of_a_keyless_tool(seeded: Seeded) -> None:
    """Without a key a second send is a second effect."""
    claim = seeded.unknown("a", KEYLESS)
    assert resend(seeded, claim) == NotMarked("window_over")
    assert seeded.state(claim.seq) == "indeterminate"


def test_no_resend_when_the_key_window_is_nearly_over(seeded: Seeded) -> None:
    """Hole 11: the last first byte leaves one margin before the provider forgets."""
    claim = seeded.unknown("a", WINDOWED)
    margin = WINDOWED.margin_seconds
    seeded.advance(86_400 - 200 - margin - 20)
    assert any(one.may_resend for one in seeded.unknowns.find_unknown(10))
    seeded.advance(40)
    assert resend(seeded, claim) == NotMarked("window_over")


def test_no_resend_of_a_cancelled_row(seeded: Seeded) -> None:
    """Hole 14c: if the first send was lost, it would perform what was called off."""
    claim = seeded.unknown("a", KEYED)
    seeded.run(lambda c: seeded.planner.cancel(c, Address("default", "a")))
    assert resend(seeded, claim) == NotMarked("not_wanted")


def test_a_superseded_row_is_resent_only_for_a_successor_that_wants_the_same(
    seeded: Seeded,
) -> None:
    """The one exception to `wanted`: the live generation is held and has the same fingerprint."""
    claim = seeded.unknown("a", KEYED, x=1)
    seeded.supersede("a", tool=KEYED, x=2)
    assert resend(seeded, claim) == NotMarked("not_wanted")
    seeded.supersede("a", 1, tool=KEYED, x=1)
    assert isinstance(resend(seeded, claim), Claimed)


def test_a_diverged_successor_is_no_reason_to_resend(seeded: Seeded) -> None:
    """Hole C: g1 unknown, g2 held with the same args; g0's late Applied marks g0 and g2."""
    first = seeded.false_failed("a", KEYED, x=1)
    seeded.supersede("a", tool=KEYED, x=2)
    claim = seeded.send("a")
    seeded.record(claim, Unknown("lost"))
    seeded.advance(200)
    third = seeded.supersede("a", 1)
    seeded.record(first, Applied("late"))
    assert seeded.row(third)["diverged_at"] is not None
    assert resend(seeded, claim) == NotMarked("not_wanted")


def test_an_open_undo_blocks_resend(seeded: Seeded) -> None:
    """Hole 4: g0 would take effect after its undo found nothing."""
    claim = seeded.unknown("a", PROBED)
    seeded.order(claim.seq, compensation_request("undo", 1, "undo", {}, ensure_absent=True))
    assert isinstance(resend(seeded, claim), NotMarked)
    assert seeded.state(claim.seq) == "indeterminate"


def test_resends_are_bounded(seeded: Seeded) -> None:
    """Hole 20: an endpoint that never answers is not resent for ever."""
    claim = seeded.unknown("a", KEYED)
    for _ in range(DEFAULTS.max_resends):
        taken = resend(seeded, claim)
        assert isinstance(taken, Claimed)
        seeded.record(taken, Unknown("lost"))
        seeded.advance(200)
        claim = taken
    assert resend(seeded, claim) == NotMarked("no_resends_left")


# -- a lost COMMIT ---------------------------------------------------------------------------------


def _losing(seeded: Seeded, *, happened: bool) -> tuple[ReconcileStore, Database]:
    database = LostCommit(seeded.url)
    database.happened = happened
    return ReconcileStore(database, seeded.statements, DEFAULTS), database


def test_after_a_lost_commit_the_row_is_read_again_by_owner_and_fence(seeded: Seeded) -> None:
    """Hole 10: by fence alone the loser of a resend would send as well."""
    claim = seeded.unknown("a", KEYED)
    winner, loser = seeded.owner, uuid.uuid4()
    seeded.register(loser)
    taken = seeded.unknowns.resend(Resend(claim, "digest"), winner)
    assert isinstance(taken, Claimed)
    naive = "SELECT state FROM {schema}.intent_state WHERE seq = :seq AND fence = :fence"
    (by_fence,) = seeded.sql(naive, seq=claim.seq, fence=claim.fence + 1)
    assert by_fence["state"] == "awaiting_ack", "by fence alone the loser is told to go on"
    store, database = _losing(seeded, happened=False)
    assert store.resend(Resend(claim, "digest"), loser) == NotMarked("commit_unknown")
    database.dispose()


def test_a_resend_whose_commit_happened_goes_on(seeded: Seeded) -> None:
    """Hole 10, the other side: the right to send is there, and is used once."""
    claim = seeded.unknown("a", KEYED)
    store, database = _losing(seeded, happened=True)
    taken = store.resend(Resend(claim, "digest"), seeded.owner)
    assert isinstance(taken, Claimed)
    assert taken.fence == seeded.row(claim.seq)["fence"]
    database.dispose()


def test_a_late_refusal_does_not_settle_a_resent_row(seeded: Seeded) -> None:
    """Hole 18: what the resend's 429 says is no word about the first send."""
    claim = seeded.unknown("a", KEYED)
    taken = resend(seeded, claim)
    assert isinstance(taken, Claimed)
    seeded.record(taken, NotApplied("busy", code="busy", transient=True))
    assert seeded.state(claim.seq) == "indeterminate"
