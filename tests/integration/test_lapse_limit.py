"""A row that a living process keeps losing ends too: nothing is claimed for ever."""

from collections.abc import Iterator

import pytest

from ackbox.outbox.defaults import DEFAULTS

from ..support.process import Process, counting_tool


@pytest.fixture
def process(database_url: str) -> Iterator[Process]:
    """Give the parts of one process; nothing drains."""
    process = Process(database_url, [counting_tool()[0]])
    yield process
    process.close()


def lapse(process: Process, seq: int) -> str:
    """Claim the row, let the lease pass while its owner lives on, and reap it."""
    (claim,) = process.outbox.claims.claim("default", 1, process.owner, {"work@1": 1})
    assert claim.seq == seq
    process.outbox.advance(DEFAULTS.claim_lease_seconds + 1)
    process.outbox.claims.beat(process.owner)
    process.outbox.reaper.reap([seq])
    return process.outbox.state(seq)


def test_a_row_whose_attempts_hang_is_refused_at_the_unready_limit(process: Process) -> None:
    """Its adapter never gives it back, so only the reaper can end it; nothing was ever sent."""
    (seq,) = process.put("work", 1)
    assert lapse(process, seq) == "queued"
    assert lapse(process, seq) == "queued"
    process.outbox.advance(DEFAULTS.unready_limit_seconds)
    assert lapse(process, seq) == "failed"
    assert process.outbox.row(seq)["sends"] == 0


def test_a_death_past_the_unready_limit_is_only_a_death(process: Process) -> None:
    """The first worker that could serve it has died: it is suspect, and claimed again."""
    (seq,) = process.put("work", 1)
    assert lapse(process, seq) == "queued"
    process.outbox.advance(DEFAULTS.unready_limit_seconds)
    process.outbox.claims.beat(process.owner)
    process.outbox.claims.claim("default", 1, process.owner, {"work@1": 1})
    process.outbox.claims.stop(process.owner)
    process.outbox.reaper.reap([seq])
    assert process.outbox.state(seq) == "queued"
    assert process.outbox.row(seq)["suspect"] is True
