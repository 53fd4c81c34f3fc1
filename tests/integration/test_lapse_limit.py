"""A row that a living process keeps losing ends too: nothing is claimed for ever."""

from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import StoreUnavailable
from ackbox.outbox.shell.claim_store import ClaimStore

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
    most = int(DEFAULTS.unready_limit_seconds / DEFAULTS.claim_lease_seconds) + 2
    states = [lapse(process, seq)]
    while states[-1] == "queued" and len(states) < most:
        states.append(lapse(process, seq))
    # One or two lost claims end nothing: it takes about an hour of them.
    assert (states[-1], len(states) > most // 2) == ("failed", True)
    assert process.outbox.row(seq)["sends"] == 0


def test_a_wait_in_the_queue_makes_no_row_unready(process: Process) -> None:
    """Two lost claims of a living worker, hours apart, say nothing about the row."""
    (seq,) = process.put("work", 1)
    for _ in range(3):
        assert lapse(process, seq) == "queued"
        process.outbox.advance(DEFAULTS.unready_limit_seconds)
        process.outbox.claims.beat(process.owner)


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


class Failing(ClaimStore):
    """The real store, whose full scans do not reach the database any more."""

    def _take(self, values: Any, *, rescan: bool = False) -> Any:
        if rescan and self._low_water:
            raise StoreUnavailable("away", next_step="wait")
        return super()._take(values, rescan=rescan)


def test_what_the_first_scan_claimed_is_kept_when_the_second_one_fails(process: Process) -> None:
    """Its transaction is committed: thrown away, the rows would sit out their whole lease."""
    process.put("work", 4)
    store = Failing(process.outbox.database, process.outbox.statements)
    assert len(store.claim("default", 1, process.owner, {"work@1": 1})) == 1
    assert len(store.claim("default", 9, process.owner, {"work@1": 1})) == 3
    with pytest.raises(StoreUnavailable):
        store.claim("default", 9, process.owner, {"work@1": 1})
