"""Claim, mark, record, give back and reap on real Postgres, each by its own fence."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ackbox.outbox.commands import GiveBack, Marked, MarkSend, NotMarked, Record
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.shell.attempt_store import LOCKED_ROW, AttemptStore
from ackbox.outbox.shell.claim_store import ClaimStore
from ackbox.outbox.shell.database import Database

from ..support.seed import KEYED, KEYLESS, PROBED, Seeded
from ..support.sessions import Background, LostCommit
from ..support.tcp_proxy import commit_cutter


@pytest.fixture
def outbox(database_url: str) -> Iterator[Seeded]:
    """Give an outbox with a living worker."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


def attempts_on(outbox: Seeded, database: Database) -> AttemptStore:
    """Return the attempts' side over another connection to the same outbox."""
    return AttemptStore(database, outbox.statements, DEFAULTS)


def test_claims_come_oldest_first_bounded_and_never_twice(outbox: Seeded) -> None:
    """A claim takes what is ready; a second one finds nothing."""
    for number in range(5):
        outbox.run(lambda c, n=number: put_in_lane(outbox, c, f"i{n}", "shared"))  # type: ignore[misc]
    first = outbox.claims.claim("shared", 3, outbox.owner, outbox.contracts)
    second = outbox.claims.claim("shared", 3, outbox.owner, outbox.contracts)
    assert [claim.intent_id for claim in first] == ["i0", "i1", "i2"]
    assert [claim.intent_id for claim in second] == ["i3", "i4"]
    assert outbox.claims.claim("shared", 3, outbox.owner, outbox.contracts) == []
    assert {claim.fence for claim in first} == {1}


def put_in_lane(outbox: Seeded, connection: object, intent_id: str, lane: str) -> None:
    """Put a keyless call into a lane that several intents share."""
    from ackbox.outbox.intent import Terms, content_of, draft_of

    content = content_of(KEYLESS.tool, KEYLESS.version, lane, {})
    draft = draft_of(content, Terms(), intent_id=intent_id)
    outbox.planner.put(connection, [draft])  # type: ignore[arg-type]


def test_a_row_that_becomes_ready_below_the_hint_is_claimed(outbox: Seeded) -> None:
    """Case 41: a late commit carries an older ready_at than what was claimed last."""
    outbox.run(lambda c: put_in_lane(outbox, c, "a", "shared"))
    assert len(outbox.claims.claim("shared", 1, outbox.owner, outbox.contracts)) == 1
    outbox.run(lambda c: put_in_lane(outbox, c, "b", "shared"))
    outbox.sql("UPDATE {schema}.intent_state SET ready_at = ready_at - interval '1 day'"
               " WHERE ready_at IS NOT NULL")  # fmt: skip
    assert len(outbox.claims.claim("shared", 5, outbox.owner, outbox.contracts)) == 1


def test_the_mark_is_refused_for_every_reason_that_forbids_a_send(outbox: Seeded) -> None:
    """One batch, six reasons, each told by its own code; the seventh row is marked."""
    names = ["cancelled", "fence", "dead", "paused", "reads", "late", "fine"]
    claims = {}
    for name in names:
        tool = PROBED if name == "paused" else KEYLESS
        outbox.put(name, tool)
        claims[name] = outbox.claim(name)
    set_state = "UPDATE {schema}.intent_state SET "
    seq = {name: claims[name].seq for name in names}
    outbox.sql(set_state + "wanted = false WHERE seq = :s", s=seq["cancelled"])
    outbox.sql(set_state + "fence = fence + 1 WHERE seq = :s", s=seq["fence"])
    outbox.sql(set_state + "owner = :o WHERE seq = :s", o=uuid.uuid4(), s=seq["dead"])
    outbox.sql("INSERT INTO {schema}.paused VALUES ('probed', 'ops', 'why', now())")
    outbox.sql(set_state + "read_set = '{\"stock\": 7}' WHERE seq = :s", s=seq["reads"])
    outbox.sql(set_state + "deadline = now() WHERE seq = :s", s=seq["late"])
    batch = [MarkSend(claims[name], "digest") for name in names]
    answers = outbox.attempts.mark(batch, outbox.owner)
    codes = [answer.code if isinstance(answer, NotMarked) else "marked" for answer in answers]
    assert codes == [
        "not_wanted", "stale_fence", "stale_fence", "paused", "stale_read_set", "not_wanted",
        "marked",
    ]  # fmt: skip


def test_the_mark_needs_a_living_owner(outbox: Seeded) -> None:
    """A process that was taken for dead may not send what it claimed before."""
    outbox.put("i")
    claim = outbox.claim("i")
    outbox.claims.stop(outbox.owner)
    (answer,) = outbox.attempts.mark([MarkSend(claim, "digest")], outbox.owner)
    assert isinstance(answer, NotMarked)
    assert outbox.state(claim.seq) == "executing"


@pytest.mark.parametrize("happened", [True, False])
def test_a_lost_commit_of_the_mark_is_read_again_by_owner_and_fence(
    outbox: Seeded, database_url: str, happened: bool
) -> None:
    """Case 127c: marked rows go on, unmarked ones are marked again."""
    outbox.put("i")
    claim = outbox.claim("i")
    database = LostCommit(database_url)
    database.happened = happened
    (answer,) = attempts_on(outbox, database).mark([MarkSend(claim, "digest")], outbox.owner)
    database.dispose()
    assert answer == Marked()
    assert outbox.state(claim.seq) == "awaiting_ack"
    assert outbox.row(claim.seq)["sends"] == 1


def test_a_lost_commit_of_the_mark_sends_nothing_for_a_row_of_another(
    outbox: Seeded, database_url: str
) -> None:
    """Hole 10: the same fence under another owner is not ours; by fence alone it would be."""
    outbox.put("i")
    claim = outbox.claim("i")
    database = LostCommit(database_url)
    database.happened = False
    outbox.sql(
        "UPDATE {schema}.intent_state SET owner = :o WHERE seq = :s", o=uuid.uuid4(), s=claim.seq
    )
    (answer,) = attempts_on(outbox, database).mark([MarkSend(claim, "digest")], outbox.owner)
    database.dispose()
    assert answer == NotMarked("commit_unknown")
    naive = outbox.sql(
        "SELECT state FROM {schema}.intent_state WHERE seq = :s AND fence = :f",
        s=claim.seq, f=claim.fence,
    )  # fmt: skip
    assert [row["state"] for row in naive] == ["executing"], "fence alone would have said: ours"


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_commit_of_a_record_is_repeated_into_one_observation(
    outbox: Seeded, database_url: str, cut: str
) -> None:
    """Case 127d: the tool is not called again, and nothing is recorded twice."""
    claim = outbox.awaiting("i")
    with commit_cutter(database_url) as proxy:
        database = Database(proxy.url)
        database.run(lambda connection: connection.exec_driver_sql("SELECT 1"))
        proxy.cut_next(cut)  # type: ignore[arg-type]
        (recorded,) = attempts_on(outbox, database).record([Record(claim, Applied("T-1"))])
        database.dispose()
        assert proxy.cuts == [cut]
    assert recorded.state == "committed"
    assert outbox.events(claim.seq).count("acknowledge") == 1
    rows = outbox.sql("SELECT * FROM {schema}.observation WHERE seq = :s", s=claim.seq)
    assert [row["ref"] for row in rows] == ["T-1"]


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_commit_of_a_claim_loses_the_claim_and_not_the_row(
    outbox: Seeded, database_url: str, cut: str
) -> None:
    """Case 127b and hole 17: what nobody was told lapses by its own deadline."""
    outbox.put("i")
    with commit_cutter(database_url) as proxy:
        database = Database(proxy.url)
        database.run(lambda connection: connection.exec_driver_sql("SELECT 1"))
        proxy.cut_next(cut)  # type: ignore[arg-type]
        claims = ClaimStore(database, outbox.statements)
        with pytest.raises(Exception, match="commit_unknown"):
            claims.claim("i", 1, outbox.owner, outbox.contracts)
        database.dispose()
    outbox.advance(DEFAULTS.claim_lease_seconds + 1)
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    assert outbox.claim("i").intent_id == "i"


def test_one_bad_outcome_costs_its_neighbours_nothing_and_keeps_its_effect(
    outbox: Seeded,
) -> None:
    """Hole 30 and case 61: a batch that fails is repeated row by row; the effect stays proven."""
    claims = [outbox.awaiting(f"i{number}") for number in range(3)]
    outcomes = [Applied("T-1"), Applied("T-2", result={"text": "\x00"}), Applied("T-3")]
    batch = [Record(claim, outcome) for claim, outcome in zip(claims, outcomes, strict=True)]
    states = [recorded.state for recorded in outbox.attempts.record(batch)]
    assert states == ["committed"] * 3


def test_two_outcomes_of_one_row_in_one_batch_are_judged_in_turn(outbox: Seeded) -> None:
    """The second decision sees what the first one did."""
    claim = outbox.awaiting("i")
    late = Record(claim, Applied("T-1"), kind="evidence", number=1)
    first, second = outbox.attempts.record([Record(claim, Unknown("timeout")), late])
    assert (first.edge, second.edge) == ("lose", "acknowledge")


def test_a_batch_waits_for_no_lock_longer_than_its_limit(outbox: Seeded) -> None:
    """Hole 33: a planner that holds one row's lock delays that row alone, not those behind it."""
    claims = [outbox.awaiting(f"i{number}") for number in range(2)]
    with outbox.database.engine.begin() as planner:
        planner.exec_driver_sql(
            f"SELECT 1 FROM {outbox.database.quoted_schema}.intent_state"
            f" WHERE seq = {claims[0].seq} FOR UPDATE"
        )
        batch = [Record(claims[0], Applied("T-1")), Record(claims[1], Applied("T-2"))]
        locked, recorded = outbox.attempts.record(batch)
    assert (locked, recorded.state) == (LOCKED_ROW, "committed")
    assert outbox.state(claims[1].seq) == "committed"
    assert outbox.record(claims[0], Applied("T-1")).state == "committed"


def test_a_zombies_mark_is_refused_and_its_proof_is_kept(outbox: Seeded) -> None:
    """Cases 5, 23, 161: an old fence sends nothing, but what it proves commits the row."""
    outbox.put("i")
    zombie = outbox.claim("i")
    outbox.advance(DEFAULTS.claim_lease_seconds + 1)
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    second = outbox.send("i")
    assert isinstance(
        outbox.attempts.mark([MarkSend(zombie, "digest")], outbox.owner)[0], NotMarked
    )
    assert second.fence == zombie.fence + 1
    late = replace(second, fence=second.fence)
    outbox.advance(DEFAULTS.call_limit_seconds + 60)
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    assert outbox.state(second.seq) == "indeterminate"
    assert outbox.record(late, Applied("T-1")).edge == "acknowledge"


def test_a_late_effect_of_a_failed_row_opens_a_divergence_and_changes_no_state(
    outbox: Seeded,
) -> None:
    """Case 5 (i): failed is final; the proof is kept and a person is called."""
    claim = outbox.false_failed("i")
    outbox.record(claim, Applied("T-1"))
    assert outbox.state(claim.seq) == "failed"
    assert outbox.row(claim.seq)["diverged_at"] is not None
    assert "divergence" in outbox.events(claim.seq)


def test_a_late_effect_of_an_earlier_generation_holds_the_next_one(outbox: Seeded) -> None:
    """Holes 26 and B: the live row, wherever it is, is held in the same transaction."""
    claim = outbox.false_failed("i", n=1)
    successor = outbox.supersede("i", 0, KEYLESS, n=2)
    assert outbox.state(successor) == "queued"
    outbox.record(claim, Applied("T-1"))
    assert outbox.state(successor) == "held"


def test_the_recorder_marks_the_row_that_is_live_when_it_writes(outbox: Seeded) -> None:
    """Hole B: a supersede that commits while the recorder waits is seen by it."""
    claim = outbox.false_failed("i", n=1)
    with outbox.database.engine.begin() as planner:
        planner.exec_driver_sql(
            f"SELECT 1 FROM {outbox.database.quoted_schema}.intent_state"
            f" WHERE seq = {claim.seq} FOR UPDATE"
        )
        recorder = Background(
            outbox.database,
            lambda c: attempts_on(outbox, outbox.database)._record(
                c, [Record(claim, Applied("T-1"))]
            ),
        )
        recorder.wait_for_lock()
        from ackbox.outbox.intent import Address

        intent = outbox.planner.supersede(
            planner, Address("default", "i"), 0, outbox.content("i", KEYLESS, n=2)
        )
    recorder.result()
    assert outbox.state(intent.seq) == "held"  # type: ignore[union-attr]


def test_a_miss_ends_the_trust_in_the_key_under_an_old_fence_too(outbox: Seeded) -> None:
    """Hole 1: expire came first, the miss comes late, the resend is off."""
    claim = outbox.awaiting("i", KEYED)
    outbox.advance(DEFAULTS.call_limit_seconds + 60)
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    outbox.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    assert outbox.row(claim.seq)["key_trusted"] is False


def test_two_reapers_move_a_row_once(outbox: Seeded) -> None:
    """Case 49: the second pass finds nothing to do."""
    claim = outbox.awaiting("i")
    outbox.advance(DEFAULTS.call_limit_seconds + 60)
    overdue = outbox.reaper.find_overdue(10)
    assert overdue == (claim.seq,)
    moved = outbox.reaper.reap(overdue) + outbox.reaper.reap(overdue)
    assert [edge for edge, _ in moved] == ["expire"]
    assert outbox.events(claim.seq).count("expire") == 1


def test_a_deadline_is_fired_by_the_reaper_wherever_the_row_waits(outbox: Seeded) -> None:
    """Hole 19: no worker needs to come by."""
    seq = outbox.put("i")
    outbox.sql(
        "UPDATE {schema}.intent_state SET deadline = now(), withdraw_at = now() WHERE seq = :s",
        s=seq,
    )
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    assert outbox.state(seq) == "cancelled"


def test_a_dead_owner_lapses_at_once_and_a_clean_stop_is_a_death(outbox: Seeded) -> None:
    """The lease of a process that said goodbye, or stopped beating, is over."""
    outbox.put("i")
    claim = outbox.claim("i")
    outbox.claims.stop(outbox.owner)
    outbox.reaper.reap(outbox.reaper.find_overdue(10))
    assert outbox.state(claim.seq) == "queued"


def test_batch_claims_skip_suspect_rows(outbox: Seeded) -> None:
    """Hole 32: a row that killed its worker is claimed alone, so no neighbour is suspected."""
    outbox.run(lambda c: put_in_lane(outbox, c, "killer", "shared"))
    outbox.run(lambda c: put_in_lane(outbox, c, "fine", "shared"))
    outbox.sql("UPDATE {schema}.intent_state s SET suspect = true FROM {schema}.intent n"
               " WHERE n.seq = s.seq AND n.intent_id = 'killer'")  # fmt: skip
    claims = outbox.claims
    assert [one.intent_id for one in claims.claim("shared", 9, outbox.owner, {})] == ["fine"]
    assert claims.suspect_ready("shared")
    alone = claims.claim("shared", 9, outbox.owner, {}, alone=True)
    assert [one.intent_id for one in alone] == ["killer"]


def test_giving_back_returns_the_row_and_a_cancelled_one_is_withdrawn(outbox: Seeded) -> None:
    """Hole 15: what was called off meanwhile does not return to the queue."""
    for name in ("i", "j"):
        outbox.put(name)
    back, off = outbox.claim("i"), outbox.claim("j")
    outbox.sql("UPDATE {schema}.intent_state SET wanted = false WHERE seq = :s", s=off.seq)
    answers = outbox.attempts.give_back([GiveBack(back, "shutdown"), GiveBack(off, "shutdown")])
    assert [answer.state for answer in answers] == ["queued", "cancelled"]


def test_a_transient_refusal_returns_with_the_tools_own_delay(outbox: Seeded) -> None:
    """A 429 with Retry-After is sent again, under the same key, not before."""
    claim = outbox.awaiting("i")
    outbox.record(claim, NotApplied("busy", transient=True, retry_after_seconds=60))
    assert outbox.claims.claim("i", 1, outbox.owner, outbox.contracts) == []
    outbox.advance(61)
    assert outbox.claim("i").wire_key == claim.wire_key


def test_closed_claim_batches_are_forgotten_and_open_ones_kept(outbox: Seeded) -> None:
    """The reaper's access path stays as small as what is open."""
    outbox.put("i")
    outbox.claim("i")
    outbox.committed("j")
    assert outbox.reaper.tidy(100) == 1
    assert len(outbox.sql("SELECT * FROM {schema}.claim_batch")) == 1
