"""Budget and breaker around a send, reply by reply: they put off, and tell nobody an outcome."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.commands import (
    Claimed,
    GiveBack,
    LookAgain,
    Marked,
    MarkSend,
    NotMarked,
    Park,
    Record,
    Recorded,
    Resend,
    RingResults,
    Unresolved,
)
from ackbox.outbox.contract import ToolContract, idempotent
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied, NotApplied
from ackbox.tool_adapters.contract import HttpRequest, Prepared, Returned
from ackbox.workers.breaker import Breaker
from ackbox.workers.budget import Budget
from ackbox.workers.commands import Build, Classify, Encode, Exchange, Prepare
from ackbox.workers.reconcile import Draw, reconcile
from ackbox.workers.throttle import (
    BREAKER_OPEN,
    NO_BUDGET,
    Admission,
    Admit,
    NoteSend,
    PutOff,
    Throttle,
    admit,
    note,
    throttled_attempt,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
CLAIM = Claimed(
    seq=1, namespace="default", intent_id="i", generation=0, fence=1, tool="t", version=1,
    lane="default", args={}, sends=1,
)  # fmt: skip
FIRST = replace(CLAIM, sends=0)
REQUEST = HttpRequest("POST", "http://tool/")
SENT: Mapping[type, Any] = {
    Prepare: Prepared(None), Encode: REQUEST, MarkSend: Marked(), Resend: replace(CLAIM, fence=2),
    Exchange: Returned(None), Classify: Applied("T-1"), Record: Recorded("ack", State.COMMITTED),
}  # fmt: skip
EMPTY = Throttle(budget=Budget(0.0, NOW))
OPEN = Throttle(breaker=Breaker(open_until=NOW + timedelta(seconds=30), openings=1))


def drive(steps: Generator[Any, Any, Any], replies: Mapping[type, Any]) -> list[Any]:
    """Drive a procedure and return what it asked for."""
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


def test_leave_comes_before_anything_that_leaves_and_the_note_after_the_record() -> None:
    """What is durable is written first; the note is advice."""
    asked = drive(throttled_attempt(CLAIM), {**SENT, Admit: Admission(again=True)})
    assert kinds(asked) == [
        Admit, Build, Prepare, Encode, MarkSend, Exchange, Classify, Record, RingResults, NoteSend,
    ]  # fmt: skip
    assert asked[-1] == NoteSend("t", Admission(again=True), sent=True, healthy=True)


@pytest.mark.parametrize("reason", [BREAKER_OPEN, NO_BUDGET])
def test_what_is_put_off_goes_back_unsent(reason: str) -> None:
    """No adapter is asked and no time limit begins: the row has its later turn."""
    asked = drive(throttled_attempt(CLAIM), {Admit: PutOff(reason, 42.0)})
    assert asked == [Admit(CLAIM), GiveBack(CLAIM, reason, 42.0, unready=False)]


def test_an_attempt_that_sent_nothing_says_so() -> None:
    """A mark that was refused: the token comes back and a trial makes way."""
    replies = {**SENT, Admit: Admission(True, 7), MarkSend: NotMarked("stale_fence")}
    asked = drive(throttled_attempt(CLAIM), replies)
    assert asked[-1] == NoteSend("t", Admission(True, 7), sent=False)


def test_a_transient_refusal_is_told_as_trouble() -> None:
    """The outcome itself is recorded as ever."""
    refused = NotApplied("slow down", transient=True)
    asked = drive(throttled_attempt(CLAIM), {**SENT, Admit: Admission(True), Classify: refused})
    assert [one.outcome for one in asked if isinstance(one, Record)] == [refused]
    assert asked[-1].healthy is False


def unknown(**facts: Any) -> Unresolved:
    """Return an unknown row of a key-honouring tool, quiet and inside its window."""
    said = {"quiet": True, "parked": False, "may_resend": True, "too_old": False,
            "resend_later": True} | facts  # fmt: skip
    contract = ToolContract("t", key=idempotent(timedelta(days=1)))
    return Unresolved(CLAIM, contract, probes=0, resends=0, **said)


def look(unresolved: Unresolved, replies: Mapping[type, Any]) -> list[Any]:
    """Drive one throttled look."""
    return drive(reconcile(unresolved, Draw(0.0, DEFAULTS, throttled=True)), replies)


def test_a_resend_asks_first_too() -> None:
    """It is paid for like a retry, and its outcome is told."""
    asked = look(unknown(), {**SENT, Admit: Admission(again=True)})
    assert kinds(asked) == [
        Encode, Admit, Resend, Exchange, Classify, Record, RingResults, NoteSend,
    ]  # fmt: skip


def test_a_resend_that_is_put_off_is_looked_at_later() -> None:
    """`probe_at` is the later turn; a row that is too old is a person's all the same."""
    put_off = {Encode: REQUEST, Admit: PutOff(NO_BUDGET, 42.0)}
    assert look(unknown(), put_off)[-1] == LookAgain(CLAIM, 42.0)
    assert isinstance(look(unknown(too_old=True), put_off)[-1], Park)


def test_a_resend_that_was_refused_gives_its_token_back() -> None:
    """Another reconciler had the row."""
    refused = {Encode: REQUEST, Admit: Admission(True), Resend: NotMarked("stale_fence")}
    asked = look(unknown(), refused)
    assert NoteSend("t", Admission(True), sent=False) in asked
    assert isinstance(asked[-1], LookAgain)


def test_without_the_option_nobody_is_asked() -> None:
    """Procedures that were not told to ask do as before."""
    asked = drive(reconcile(unknown(), Draw(0.0, DEFAULTS)), SENT)
    assert not {Admit, NoteSend} & set(kinds(asked))


def test_first_sends_need_no_token() -> None:
    """An empty budget puts off what is sent again, and nothing else."""
    assert admit(EMPTY, False, 0.0, NOW, DEFAULTS)[1] == Admission(False)
    put_off = PutOff(NO_BUDGET, DEFAULTS.retry_floor_seconds)
    assert admit(EMPTY, True, 0.0, NOW, DEFAULTS)[1] == put_off


def test_an_open_breaker_spends_no_token() -> None:
    """And a trial that got no token is none."""
    throttle, answer = admit(OPEN, True, 0.0, NOW, DEFAULTS)
    assert (throttle, answer) == (OPEN, PutOff(BREAKER_OPEN, 30.0))
    due = NOW + timedelta(seconds=30)
    poor = Throttle(Budget(0.0, due), OPEN.breaker)
    throttle, answer = admit(poor, True, 0.0, due, DEFAULTS)
    assert isinstance(answer, PutOff)
    assert throttle.breaker == OPEN.breaker


@given(st.lists(st.sampled_from([True, False, None]), max_size=30), st.booleans())
def test_taking_and_giving_back_changes_nothing(heard: list[bool | None], again: bool) -> None:
    """A send that did not take place leaves the budget as it was, at the same moment."""
    throttle = Throttle()
    for healthy in heard:
        said = NoteSend("t", Admission(False), sent=True, healthy=healthy)
        throttle = note(throttle, said, NOW, DEFAULTS)
    full = replace(throttle, budget=replace(throttle.budget, tokens=5.0, counted_at=NOW))
    taken, answer = admit(full, again, 0.0, NOW, DEFAULTS)
    if isinstance(answer, Admission):
        undone = note(taken, NoteSend("t", answer, sent=False), NOW, DEFAULTS)
        assert undone.budget == full.budget
    else:
        assert taken == full
