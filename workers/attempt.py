"""One attempt of one claimed row, from building the request to the recorded outcome.

A generator: it yields commands and is resumed with replies. No clock, socket, log or random number;
no try, with or except, since a killed process runs none of them and the reaper must cope anyway.
May import `commands`, `outbox` and `tool_adapters` pure modules.

The order is the protocol: everything that can fail harmlessly comes before the send mark; after it
the effect is sent once, and whatever cannot be understood is Unknown.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from ..outbox.commands import (
    Claimed,
    GiveBack,
    Marked,
    MarkSend,
    NotMarked,
    Record,
    Recorded,
    RingResults,
)
from ..outbox.give_back import STALE_READ_SET, UNSERVED
from ..outbox.model import SETTLED_STATES
from ..outbox.outcome import NotApplied, Outcome, Unknown
from ..tool_adapters.contract import (
    Evidence,
    FunctionCall,
    HttpRequest,
    NotWritten,
    Prepared,
    unsent_outcome,
)
from .commands import Build, Classify, Encode, Exchange, Fetch, NoTool, Prepare, Raised

Steps = Generator[Any, Any, Recorded]
REQUEST_LIMIT = 20
"""Most harmless requests before or after the effect; an adapter that wants more is broken."""
GIVE_BACK_SECONDS = 5.0
SHUTDOWN = "shutdown"
OWNER_DOUBTFUL = "owner_doubtful"
NOT_STORABLE = "not_storable"
_STILL_OURS = {
    SHUTDOWN: 0.0,
    OWNER_DOUBTFUL: 0.0,
    STALE_READ_SET: 0.0,
    "not_wanted": 0.0,
    "owner_dead": GIVE_BACK_SECONDS,
    "paused": GIVE_BACK_SECONDS,
    "divergence": GIVE_BACK_SECONDS,
    "not_marked": GIVE_BACK_SECONDS,
}
"""Codes of a missing mark under which the row may still be this attempt's, and the delay."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """The effect's request and the handle that the send mark stores."""

    request: HttpRequest | FunctionCall
    handle: Any


def attempt(claim: Claimed) -> Steps:
    """Run one attempt; returns what became of the row.

    Before the mark every trouble gives the row back (or refuses it with proof); after the mark the
    outcome is recorded, whatever it is.
    """
    sent = yield from send_once(claim)
    if isinstance(sent, Recorded):
        return sent
    return (yield from report(claim, sent))


def send_once(claim: Claimed) -> Generator[Any, Any, Outcome | Recorded]:
    """Send the effect once and return its outcome, not recorded yet; Recorded: nothing was sent."""
    ready = yield from _get_ready(claim)
    if isinstance(ready, Recorded):
        return ready
    marked = yield MarkSend(claim, ready.request.digest(), ready.handle)
    if not isinstance(marked, Marked):
        return (yield from _unmarked(claim, marked))
    evidence: Evidence = yield Exchange(claim, ready.request)
    return (yield from conclude(claim, evidence))


def report(claim: Claimed, outcome: Outcome) -> Steps:
    """Record an attempt's outcome and wake the result consumer where the row is settled."""
    recorded: Recorded = yield Record(claim, outcome)
    if recorded.state in SETTLED_STATES:
        yield RingResults()
    return recorded


def conclude(claim: Claimed, evidence: Evidence) -> Generator[Any, Any, Outcome]:
    """Return what the evidence proves, after at most REQUEST_LIMIT harmless follow-up reads."""
    if isinstance(evidence, NotWritten):
        return unsent_outcome(evidence)
    follow_ups: tuple[Evidence, ...] = ()
    answer = yield Classify(claim, evidence, follow_ups)
    while isinstance(answer, HttpRequest | FunctionCall):
        if len(follow_ups) == REQUEST_LIMIT:
            return Unknown("the adapter asked for too many follow-up reads", code="no_conclusion")
        follow_up: Evidence = yield Fetch(claim, answer)
        follow_ups = (*follow_ups, follow_up)
        answer = yield Classify(claim, evidence, follow_ups)
    if isinstance(answer, Raised):
        return Unknown(f"classify raised {answer.error_type}", code="classify_failed")
    outcome: Outcome = answer
    return outcome


def _get_ready(claim: Claimed) -> Generator[Any, Any, _Ready | Recorded]:
    built = yield Build(claim)
    if isinstance(built, NoTool):
        return (yield from _give_back(claim, UNSERVED, 0.0, unready=True))
    if isinstance(built, Raised):
        return (yield from _failed(claim, built, "build_failed"))
    prepared = yield from _prepare(claim)
    if not isinstance(prepared, Prepared):
        return (yield from _failed(claim, prepared, "prepare_failed"))
    request = yield Encode(claim, prepared.handle)
    if isinstance(request, Raised):
        return (yield from _failed(claim, request, "build_failed"))
    return _Ready(request, prepared.handle)


def _prepare(claim: Claimed) -> Generator[Any, Any, Prepared | Raised]:
    answers: tuple[Evidence, ...] = ()
    while len(answers) <= REQUEST_LIMIT:
        wish = yield Prepare(claim, answers)
        if isinstance(wish, Prepared | Raised):
            return wish
        answer: Evidence = yield Fetch(claim, wish)
        answers = (*answers, answer)
    return Raised("TooManyRequests")


def _failed(claim: Claimed, raised: Raised, reason: str) -> Steps:
    """Nothing was sent: a raised NotApplied that is final ends the row, all else gives it back."""
    if isinstance(raised.outcome, NotApplied) and not raised.outcome.transient:
        return (yield from report(claim, raised.outcome))
    wait_seconds = raised.outcome.retry_after_seconds if raised.outcome else None
    return (yield from _give_back(claim, reason, wait_seconds or 0.0, unready=True))


def _unmarked(claim: Claimed, refused: NotMarked) -> Steps:
    """No mark, nothing sent: a row that is still ours goes back, any other moved on by itself."""
    if refused.code == NOT_STORABLE:
        return (yield from _give_back(claim, "prepare_failed", 0.0, unready=True))
    if refused.code in _STILL_OURS:
        seconds = _STILL_OURS[refused.code]
        return (yield from _give_back(claim, refused.code, seconds, unready=False))
    return Recorded(None, None, refused.code)


def _give_back(claim: Claimed, reason: str, delay_seconds: float, *, unready: bool) -> Steps:
    recorded: Recorded = yield GiveBack(claim, reason, delay_seconds, unready)
    return recorded
