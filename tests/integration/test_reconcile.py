"""The reconciler's store: what a probe's answer does, which resends are legal, parking."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from ackbox.outbox.commands import (
    Claimed,
    LookAgain,
    MarkSend,
    NotMarked,
    Park,
    RecordProbe,
)
from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.guards import GUARDS, Guard
from ackbox.outbox.outcome import Answer, Unknown
from ackbox.outbox.people import Said, Stated
from ackbox.outbox.shell.connection import quoted
from ackbox.outbox.transitions import EDGE

from ..support.databases import Databases
from ..support.seed import KEYLESS, PROBED, WEAK, Seeded, seeded_outbox

FOUND, ABSENT = "found", "absent"


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


def found(claim: Claimed, ref: str = "ref-1", others: tuple[str, ...] = ()) -> RecordProbe:
    """Say that a probe met the effect."""
    return RecordProbe(claim, FOUND, ref, others=others, was_quiet=True)


def absent(claim: Claimed, *, was_quiet: bool = True) -> RecordProbe:
    """Say that a probe met nothing."""
    return RecordProbe(claim, ABSENT, was_quiet=was_quiet)


def requeue(seeded: Seeded, claim: Claimed, **risks: bool) -> None:
    """Let a person (who may be wrong) queue an unknown row again."""
    said = Said(claim.seq, "ops", "seen nothing", claim.fence)
    assert isinstance(seeded.people.not_landed(said, requeue=True, **risks), Stated)


# -- found -----------------------------------------------------------------------------------------


def test_found_settles_an_unknown_row(seeded: Seeded) -> None:
    """Rung 2: the effect is proven, with its reference."""
    claim = seeded.unknown("a", PROBED)
    recorded = seeded.unknowns.record_probe(found(claim))
    assert (recorded.edge, recorded.state) == ("acknowledge", "committed")


def test_found_settles_a_row_that_a_person_queued_again(seeded: Seeded) -> None:
    """Hole 25c: the proof counts whatever became of the row; no second send."""
    claim = seeded.unknown("a", PROBED)
    requeue(seeded, claim)
    assert seeded.state(claim.seq) == "queued"
    assert seeded.unknowns.record_probe(found(claim)).edge == "acknowledge"
    assert seeded.claims.claim("a", 1, seeded.owner, seeded.contracts) == []


def test_found_settles_a_row_that_another_worker_has_claimed(seeded: Seeded) -> None:
    """Hole 25c: from executing too; the new claim's mark then finds nothing to mark."""
    claim = seeded.unknown("a", PROBED)
    requeue(seeded, claim)
    again = seeded.claim("a")
    assert seeded.unknowns.record_probe(found(claim)).edge == "acknowledge"
    (marked,) = seeded.attempts.mark([MarkSend(again, "digest")], seeded.owner)
    assert isinstance(marked, NotMarked)


def test_found_does_not_make_a_row_quiet(seeded: Seeded) -> None:
    """Hole 6: another send may still be on its way, so nothing is undone yet."""
    claim = seeded.unknown("a", PROBED, quiet=False)
    quiet_at = seeded.row(claim.seq)["quiet_at"]
    seeded.unknowns.record_probe(found(claim))
    assert seeded.row(claim.seq)["quiet_at"] == quiet_at


def test_two_different_finds_open_a_divergence(seeded: Seeded) -> None:
    """Two effects of one intent: the state stays, a person is called."""
    claim = seeded.unknown("a", PROBED)
    seeded.unknowns.record_probe(found(claim, "ref-1"))
    assert seeded.row(claim.seq)["diverged_at"] is None
    assert seeded.unknowns.record_probe(found(claim, "ref-1")).code == "agrees"
    seeded.unknowns.record_probe(found(claim, "ref-2"))
    assert seeded.state(claim.seq) == "committed"
    assert seeded.row(claim.seq)["diverged_at"] is not None
    assert "divergence" in seeded.events(claim.seq)


def test_a_second_effect_under_one_marker_opens_a_divergence(seeded: Seeded) -> None:
    """One probe that meets two objects proves one effect too many."""
    claim = seeded.unknown("a", PROBED)
    assert seeded.unknowns.record_probe(found(claim, "ref-1", ("ref-2",))).edge == "acknowledge"
    assert seeded.row(claim.seq)["diverged_at"] is not None


def test_found_for_a_failed_row_opens_a_divergence(seeded: Seeded) -> None:
    """Evidence against a final state never changes it."""
    claim = seeded.false_failed("a", PROBED)
    assert seeded.unknowns.record_probe(found(claim)).edge is None
    assert seeded.state(claim.seq) == "failed"
    assert seeded.row(claim.seq)["diverged_at"] is not None


# -- absent ----------------------------------------------------------------------------------------


def test_a_strong_absent_on_a_quiet_row_queues_it_again(seeded: Seeded) -> None:
    """Rung 2: clear, counted as a resend."""
    claim = seeded.unknown("a", PROBED)
    recorded = seeded.unknowns.record_probe(absent(claim))
    assert (recorded.edge, seeded.row(claim.seq)["resends"]) == ("clear", 1)


def test_a_strong_absent_of_an_unwanted_row_refuses_it(seeded: Seeded) -> None:
    """Hole 14, 15: what was called off never returns to queued."""
    claim = seeded.unknown("a", PROBED)
    seeded.supersede("a", tool=PROBED, x=2)
    recorded = seeded.unknowns.record_probe(absent(claim))
    assert (recorded.edge, recorded.state) == ("refuse.absent", "failed")


@pytest.mark.parametrize("tool", [WEAK, KEYLESS], ids=["weak", "none"])
def test_a_weak_absent_proves_nothing(seeded: Seeded, tool: object) -> None:
    """Hole 13's rule for probes: an index that lags is counted, not believed."""
    claim = seeded.unknown("a", tool)  # type: ignore[arg-type]
    recorded = seeded.unknowns.record_probe(absent(claim))
    assert (recorded.edge, recorded.state) == (None, "indeterminate")
    assert seeded.row(claim.seq)["probes"] == 1


def test_an_absent_from_before_the_row_was_quiet_proves_nothing(seeded: Seeded) -> None:
    """The request may have landed between the read and the record."""
    claim = seeded.unknown("a", PROBED)
    assert seeded.unknowns.record_probe(absent(claim, was_quiet=False)).edge is None


def test_an_absent_on_a_row_that_is_not_quiet_proves_nothing(seeded: Seeded) -> None:
    """Hole 2: the edge asks again, whatever the reader believed."""
    claim = seeded.unknown("a", PROBED, quiet=False)
    assert seeded.unknowns.record_probe(absent(claim)).edge is None


def test_an_absent_about_an_older_fence_proves_nothing(seeded: Seeded) -> None:
    """Two reconcilers: one clears, the row is sent again, the other's answer is from before."""
    claim = seeded.unknown("a", PROBED)
    seeded.unknowns.record_probe(absent(claim))
    seeded.advance(10)
    again = seeded.send("a")
    seeded.record(again, Unknown("lost"))
    seeded.advance(200)
    recorded = seeded.unknowns.record_probe(absent(claim))
    assert (recorded.edge, recorded.code) == (None, "absent_too_early")
    assert seeded.state(claim.seq) == "indeterminate"


def test_an_absent_is_weak_once_the_key_is_not_trusted(seeded: Seeded) -> None:
    """Hole G: what dropped the key may have dropped the marker."""
    claim = seeded.awaiting("a", PROBED)
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.advance(200)
    assert seeded.unknowns.record_probe(absent(claim)).edge is None


def test_clears_are_bounded_with_the_resends(seeded: Seeded) -> None:
    """Hole H: a tool that drops key and marker is sent 1 + max_resends times, not for ever."""
    claim = seeded.unknown("a", PROBED)
    for _ in range(DEFAULTS.max_resends):
        assert seeded.unknowns.record_probe(absent(claim)).edge == "clear"
        seeded.advance(400)
        claim = seeded.send("a")
        seeded.record(claim, Unknown("lost"))
        seeded.advance(200)
    recorded = seeded.unknowns.record_probe(absent(claim))
    assert (recorded.edge, recorded.state) == (None, "indeterminate")
    assert seeded.row(claim.seq)["sends"] == 1 + DEFAULTS.max_resends


def test_an_open_undo_blocks_clear(seeded: Seeded) -> None:
    """Hole 4: the compensation may have deleted the effect that the probe does not see."""
    claim = seeded.unknown("a", PROBED)
    seeded.order(claim.seq, compensation_request("undo", 1, "undo", {}, ensure_absent=True))
    assert seeded.row(claim.seq)["undo"] is not None
    assert seeded.unknowns.record_probe(absent(claim)).edge is None


# -- looking and parking ---------------------------------------------------------------------------


def test_a_found_row_is_leased(seeded: Seeded) -> None:
    """Two reconcilers do not ask the same thing at the same time."""
    claim = seeded.unknown("a", PROBED)
    (one,) = seeded.unknowns.find_unknown(10)
    assert (one.claim.seq, one.claim.fence, one.quiet) == (claim.seq, claim.fence, True)
    assert seeded.unknowns.find_unknown(10) == ()
    seeded.advance(DEFAULTS.claim_lease_seconds + 1)
    assert len(seeded.unknowns.find_unknown(10)) == 1


def test_may_resend_says_what_the_edge_does(seeded: Seeded) -> None:
    """The flags that the ladder reads come from the edge's own guards."""
    names = {guard.name for guard in _resend_guards()} - {"own_fence", "same_request"}
    statement, _ = seeded.statements.named("find_unknown")
    schema = quoted("ackbox")
    for name in names:
        assert GUARDS[name].sql.replace("{schema}", schema) in str(statement.text), name


def _resend_guards() -> tuple[Guard, ...]:
    return EDGE["resend"].guards


def test_a_row_is_not_looked_at_before_it_is_quiet(seeded: Seeded) -> None:
    """Rounds back off, and never into a time in which only Found would count."""
    claim = seeded.unknown("a", PROBED, quiet=False)
    seeded.unknowns.look_again(LookAgain(claim, 1.0))
    row = seeded.row(claim.seq)
    assert row["probe_at"] == row["quiet_at"]


def test_parking_is_a_fact_with_one_event_and_slower_looks(seeded: Seeded) -> None:
    """Hole 20: a person's turn can be seen, and any rung may still settle the row."""
    claim = seeded.unknown("a", WEAK)
    for _ in range(2):
        seeded.unknowns.park(Park(claim, "max_probes", 600.0))
    assert seeded.events(claim.seq).count("parked") == 1
    assert seeded.row(claim.seq)["parked_at"] is not None
    assert seeded.unknowns.find_unknown(10) == ()
    seeded.advance(700)
    assert [one.parked for one in seeded.unknowns.find_unknown(10)] == [True]
    assert seeded.unknowns.record_probe(found(claim)).edge == "acknowledge"
    assert seeded.row(claim.seq)["parked_at"] is None


def test_a_row_that_moved_on_is_neither_parked_nor_re_armed(seeded: Seeded) -> None:
    """Both quote the fence that was looked at."""
    claim = seeded.unknown("a", PROBED)
    seeded.unknowns.record_probe(absent(claim))
    seeded.unknowns.park(Park(claim, "max_probes", 600.0))
    seeded.unknowns.look_again(LookAgain(claim, 600.0))
    row = seeded.row(claim.seq)
    assert (row["state"], row["parked_at"], row["probe_at"]) == ("queued", None, None)


def test_two_sessions_lease_different_rows(seeded: Seeded) -> None:
    """A second reconciler passes over rows that the first one is leasing right now."""
    seeded.unknown("a", PROBED)
    seeded.unknown("b", PROBED)
    with seeded.database.engine.begin() as first:
        locked = text(
            "SELECT seq FROM ackbox.intent_state WHERE probe_at IS NOT NULL"
            " ORDER BY seq LIMIT 1 FOR UPDATE"
        )
        seq = first.execute(locked).scalar_one()
        other = [one.claim.seq for one in seeded.unknowns.find_unknown(10)]
    assert len(other) == 1
    assert seq not in other
