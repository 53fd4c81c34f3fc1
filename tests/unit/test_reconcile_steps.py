"""One look at an unknown row, reply by reply: each path ends with a settlement or a next look."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from ackbox.outbox.commands import (
    Claimed,
    LookAgain,
    NotMarked,
    Park,
    Record,
    Recorded,
    RecordProbe,
    Resend,
    RingResults,
    Unresolved,
)
from ackbox.outbox.contract import ProbeStrength, ToolContract, idempotent
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied
from ackbox.tool_adapters.contract import Absent, Found, HttpRequest, Returned
from ackbox.workers.commands import Classify, Encode, Exchange, Fetch, NoTool, Probe, Raised
from ackbox.workers.reconcile import Draw, reconcile

CLAIM = Claimed(
    seq=1, namespace="default", intent_id="i", generation=0, fence=1, tool="t", version=1,
    lane="default", args={}, sends=1,
)  # fmt: skip
RESENT = Claimed(
    seq=1, namespace="default", intent_id="i", generation=0, fence=2, tool="t", version=1,
    lane="default", args={}, sends=2,
)  # fmt: skip
REQUEST = HttpRequest("POST", "http://tool/")
BOTH = ToolContract("t", key=idempotent(timedelta(days=1)), probe=ProbeStrength.STRONG)
STILL = Recorded(None, State.INDETERMINATE)
COMMITTED = Recorded("acknowledge", State.COMMITTED)


def row(contract: ToolContract = BOTH, **facts: Any) -> Unresolved:
    """Return an unknown row, quiet and inside its window unless said otherwise."""
    said = {
        "probes": 0, "resends": 0, "quiet": True, "parked": False, "may_resend": True,
        "too_old": False, "resend_later": True,
    } | facts  # fmt: skip
    return Unresolved(CLAIM, contract, **said)


def look(unresolved: Unresolved, replies: Mapping[type, Any]) -> list[Any]:
    """Drive one look and return what it asked for."""
    steps = reconcile(unresolved, Draw(0.0, DEFAULTS))
    asked: list[Any] = []
    reply: Any = None
    while True:
        try:
            command = steps.send(reply)
        except StopIteration:
            return asked
        asked.append(command)
        reply = replies.get(type(command))


def kinds(asked: list[Any]) -> list[type]:
    """Return the types of what was asked, in order."""
    return [type(command) for command in asked]


def test_found_settles_and_wakes_the_consumer() -> None:
    """The probe comes before any resend."""
    asked = look(row(), {Probe: Found("T-1"), RecordProbe: COMMITTED})
    assert kinds(asked) == [Probe, RecordProbe, RingResults]
    assert (asked[1].answer, asked[1].ref) == ("found", "T-1")


def test_an_absent_is_recorded_with_what_was_known_before_the_probe_began() -> None:
    """Only an absence read after the row was quiet may clear it."""
    asked = look(row(quiet=False), {Probe: Absent(), RecordProbe: STILL})
    assert asked[1].was_quiet is False


def test_one_round_is_a_probe_and_then_one_resend_under_the_raised_fence() -> None:
    """The resend's outcome is recorded as that attempt's own."""
    replies = {
        Probe: Absent(), RecordProbe: STILL, Encode: REQUEST, Resend: RESENT,
        Exchange: Returned(None), Classify: Applied("T-1"), Record: COMMITTED,
    }  # fmt: skip
    asked = look(row(), replies)
    assert kinds(asked) == [
        Probe, RecordProbe, Encode, Resend, Exchange, Classify, Record, RingResults,
    ]  # fmt: skip
    assert asked[3].digest == REQUEST.digest()
    assert asked[6].claim.fence == 2


def test_a_probe_of_several_reads_is_bounded() -> None:
    """A probe that always wants one more page ends as inconclusive."""
    asked = look(row(may_resend=False), {Probe: REQUEST, Fetch: Returned(None), RecordProbe: STILL})
    assert kinds(asked).count(Fetch) < 50
    assert asked[kinds(asked).index(RecordProbe)].answer == "inconclusive"


def test_a_refused_resend_is_not_tried_for_ever() -> None:
    """A changed request or a lost race waits like any other look, and parks when it is old."""
    refused = {
        Probe: Absent(), RecordProbe: STILL, Encode: REQUEST, Resend: NotMarked("request_changed"),
    }  # fmt: skip
    assert isinstance(look(row(), refused)[-1], LookAgain)
    assert isinstance(look(row(too_old=True), refused)[-1], Park)
    unable = {Probe: Absent(), RecordProbe: STILL, Encode: Raised("KeyError")}
    assert isinstance(look(row(too_old=True), unable)[-1], Park)


def test_a_process_without_the_tool_uses_up_no_probe() -> None:
    """Another process may know it: the row is left to that one."""
    asked = look(row(), {Probe: NoTool()})
    assert kinds(asked) == [Probe, LookAgain]


@pytest.mark.parametrize("known", [{"too_old": True}, {"parked": True}])
def test_a_row_whose_tool_nobody_has_is_a_persons_turn_in_time(known: dict[str, Any]) -> None:
    """There may be no other process: past the limit it is parked, and looked at more slowly."""
    asked = look(row(**known), {Probe: NoTool()})
    assert kinds(asked) == [Probe, Park]


def test_a_keyless_tool_without_probe_is_a_persons_turn_at_once() -> None:
    """No rung is left, so nothing is asked of the tool."""
    keyless = row(ToolContract("t"), may_resend=False, resend_later=False)
    assert kinds(look(keyless, {})) == [Park]
