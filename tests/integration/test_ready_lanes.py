"""What the relay sees of ready rows, and what the reaper leaves of claims: bounded by no limit."""

from collections.abc import Iterator

import pytest

from ..support.process import Process, counting_tool


@pytest.fixture
def process(database_url: str) -> Iterator[Process]:
    """Give the parts of one process; nothing drains."""
    process = Process(database_url, [counting_tool()[0]])
    yield process
    process.close()


def test_a_long_queue_hides_no_other_lane(process: Process) -> None:
    """A lane that nobody serves may be full: the lost token of the lane behind it is rung again."""
    for lane, rows in (("a", 5), ("b", 1), ("c", 2)):
        process.put("work", rows, lane=lane)
    lanes = process.outbox.reaper.ready_lanes(2)
    assert [(lane.lane, lane.rows) for lane in lanes] == [("a", 2), ("b", 1), ("c", 2)]


def test_a_lanes_age_is_that_of_its_oldest_row(process: Process) -> None:
    """Rows are counted oldest first; what may not be claimed yet counts for nothing."""
    process.put("work", 3, lane="a")
    (late,) = process.put("work", 1, lane="b")
    process.outbox.advance(60)
    move = "UPDATE {schema}.intent_state SET ready_at = ready_at + make_interval(secs => :s)"
    process.outbox.sql(f"{move} WHERE seq = :q", s=3600, q=late)
    process.outbox.sql(f"{move} WHERE seq <> :q AND seq > 1", s=30, q=late)
    (lane,) = process.outbox.reaper.ready_lanes(1)
    assert (lane.lane, lane.rows) == ("a", 1)
    assert lane.oldest_seconds == pytest.approx(60, abs=5)


def test_tidying_keeps_up_with_any_number_of_small_claims(process: Process) -> None:
    """A claim of one row leaves one batch: all closed ones go, the open attempt's one stays."""
    oldest, other = process.put("work", 2)
    batch = "INSERT INTO {schema}.claim_batch (owner, seqs, created_at)"
    values = "SELECT :owner, ARRAY[CAST(:seq AS bigint)], {schema}.clock_now()"
    many = f"{batch} {values} FROM generate_series(1, 25)"
    process.outbox.sql(many, owner=process.owner, seq=other)
    (claim,) = process.outbox.claims.claim("default", 1, process.owner, {"work@1": 1})
    assert claim.seq == oldest
    assert process.outbox.reaper.tidy(10) == 25
    left = process.outbox.sql("SELECT seqs FROM {schema}.claim_batch")
    assert [row["seqs"] for row in left] == [[oldest]]
