"""One attempt, driven reply by reply: nothing leaves before the mark, nothing is repeated after."""

from typing import Any

import pytest

from ackbox.outbox.commands import (
    Claimed,
    GiveBack,
    Marked,
    MarkSend,
    NotMarked,
    Record,
    Recorded,
    RingResults,
)
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied, NotApplied, Unknown
from ackbox.tool_adapters.contract import HttpRequest, NotWritten, Prepared, Returned
from ackbox.workers.attempt import REQUEST_LIMIT, attempt
from ackbox.workers.commands import (
    Build,
    Classify,
    Encode,
    Exchange,
    Fetch,
    NoTool,
    Prepare,
    Raised,
)

CLAIM = Claimed(
    seq=1, namespace="default", intent_id="i", generation=0, fence=1, tool="t", version=1,
    lane="default", args={},
)  # fmt: skip
REQUEST = HttpRequest("POST", "http://tool/")
EVIDENCE = Returned(None)
COMMITTED = Recorded("acknowledge", State.COMMITTED)
READY = {Build: None, Prepare: Prepared(), Encode: REQUEST, MarkSend: Marked(), Exchange: EVIDENCE}
QUEUED = Recorded("give_back", State.QUEUED)


def run(replies: dict[type, Any]) -> tuple[list[Any], Recorded]:
    """Drive an attempt with a reply per command type; return what it asked and what it returned."""
    steps = attempt(CLAIM)
    asked: list[Any] = []
    reply: Any = None
    while True:
        try:
            command = steps.send(reply)
        except StopIteration as stop:
            return asked, stop.value
        asked.append(command)
        reply = replies[type(command)]


def kinds(asked: list[Any]) -> list[type]:
    """Return the types of what was asked, in order."""
    return [type(command) for command in asked]


def test_a_plain_attempt_marks_before_it_sends_and_records_before_it_rings() -> None:
    """The order is the protocol."""
    asked, end = run(READY | {Classify: Applied("T-1"), Record: COMMITTED, RingResults: True})
    assert kinds(asked) == [
        Build, Prepare, Encode, MarkSend, Exchange, Classify, Record, RingResults,
    ]  # fmt: skip
    assert end == COMMITTED
    assert asked[3].digest == REQUEST.digest()


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        ({Build: NoTool()}, "no_worker_for_tool"),
        ({Build: Raised("KeyError")}, "build_failed"),
        ({Prepare: Raised("Timeout")}, "prepare_failed"),
        ({Encode: Raised("KeyError")}, "build_failed"),
        ({Build: Raised("NotApplied", outcome=NotApplied("busy", transient=True))}, "build_failed"),
    ],
)
def test_trouble_before_the_mark_gives_the_row_back(replies: dict[type, Any], reason: str) -> None:
    """Nothing was sent, so nothing is unknown; these kinds are bounded by time."""
    asked, _ = run(READY | replies | {GiveBack: QUEUED})
    assert Exchange not in kinds(asked)
    assert asked[-1].reason == reason
    assert asked[-1].unready


def test_a_final_refusal_before_the_mark_ends_the_row() -> None:
    """Arguments that can never be built need no second look."""
    refusal = Raised("NotApplied", outcome=NotApplied("no such project"))
    failed = Recorded("refuse", State.FAILED)
    asked, _ = run(READY | {Build: refusal, Record: failed, RingResults: True})
    assert kinds(asked) == [Build, Record, RingResults]


@pytest.mark.parametrize("code", ["paused", "owner_dead", "shutdown", "stale_read_set"])
def test_without_a_mark_nothing_is_sent_and_the_row_goes_back(code: str) -> None:
    """The claim alone is no right to send."""
    asked, _ = run(READY | {MarkSend: NotMarked(code), GiveBack: QUEUED})
    assert kinds(asked)[-2:] == [MarkSend, GiveBack]


@pytest.mark.parametrize("code", ["stale_fence", "illegal_transition", "store_unavailable"])
def test_a_row_that_is_not_ours_any_more_is_left_alone(code: str) -> None:
    """Case 161: a fenced mark is counted, neither a success nor a give-back."""
    asked, end = run(READY | {MarkSend: NotMarked(code)})
    assert kinds(asked)[-1] is MarkSend
    assert end == Recorded(None, None, code)


def test_a_passed_send_deadline_is_proof_that_nothing_was_sent() -> None:
    """Hole 3: the first byte is not written after the deadline, and the row may be sent again."""
    asked, _ = run(READY | {Exchange: NotWritten(), Record: Recorded("retry", State.QUEUED)})
    assert isinstance(asked[-1].outcome, NotApplied)
    assert asked[-1].outcome.transient


def test_an_adapter_that_raises_after_the_send_makes_the_outcome_unknown() -> None:
    """Never failed, never repeated."""
    lost = Recorded("lose", State.INDETERMINATE)
    asked, _ = run(READY | {Classify: Raised("KeyError"), Record: lost})
    assert isinstance(asked[-1].outcome, Unknown)
    assert kinds(asked).count(Exchange) == 1


def test_follow_up_reads_are_bounded() -> None:
    """An adapter that always wants one more read ends as Unknown."""
    lost = Recorded("lose", State.INDETERMINATE)
    asked, _ = run(READY | {Classify: REQUEST, Fetch: EVIDENCE, Record: lost})
    assert kinds(asked).count(Fetch) == REQUEST_LIMIT
    assert asked[-1].outcome.code == "no_conclusion"


def test_preparing_reads_are_bounded() -> None:
    """An adapter that prepares without end gives the row back."""
    asked, _ = run(READY | {Prepare: REQUEST, Fetch: EVIDENCE, GiveBack: QUEUED})
    assert asked[-1].reason == "prepare_failed"
    assert MarkSend not in kinds(asked)
