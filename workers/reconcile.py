"""One look at an unknown row: probe, then at most one same-key resend, else wait or park.

A generator, like `attempt`; which rung comes next is decided in `outbox.reconcile`. Pure.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from ..outbox.commands import (
    Claimed,
    LookAgain,
    Park,
    Recorded,
    RecordProbe,
    Resend,
    RingResults,
    Unresolved,
)
from ..outbox.defaults import Limits
from ..outbox.model import SETTLED_STATES, State
from ..outbox.outcome import Outcome
from ..outbox.reconcile import (
    ABSENT,
    FOUND,
    INCONCLUSIVE,
    ParkRung,
    ProbeRung,
    ResendRung,
    WaitRung,
    next_rung,
)
from ..tool_adapters.contract import (
    Absent,
    Evidence,
    Found,
    FunctionCall,
    HttpRequest,
    Inconclusive,
    ProbeAnswer,
    Request,
)
from .attempt import GIVE_BACK_SECONDS, REQUEST_LIMIT, conclude, report
from .commands import Encode, Exchange, Fetch, NoTool, Probe, Raised
from .throttle import Admit, Answer, PutOff, note_of


@dataclass(frozen=True, slots=True)
class Draw:
    """What a look needs from outside: the random share of its delay, and the limits."""

    share: float
    limits: Limits
    throttled: bool = False
    """Resends ask the tool's budget and breaker first."""


def reconcile(unresolved: Unresolved, draw: Draw) -> Generator[Any, Any, None]:
    """Walk the ladder once for one row; every path ends with its next look or its settlement."""
    rung = next_rung(unresolved, probed=False, share=draw.share, limits=draw.limits)
    probed = isinstance(rung, ProbeRung)
    if probed:
        if (yield from _probe_rung(unresolved, draw.limits)):
            return
        rung = next_rung(unresolved, probed=True, share=draw.share, limits=draw.limits)
    put_off_seconds = 0.0
    if isinstance(rung, ResendRung):
        refused = yield from _resend_rung(unresolved, draw.throttled)
        if refused is None:
            return
        put_off_seconds = refused
        rung = next_rung(
            unresolved, probed=probed, share=draw.share, limits=draw.limits, resend_refused=True
        )
    match rung:
        case ParkRung(reason=reason, delay_seconds=seconds):
            yield Park(unresolved.claim, reason, seconds)
        case WaitRung(delay_seconds=seconds):
            yield LookAgain(unresolved.claim, max(seconds, put_off_seconds))


def _probe_rung(unresolved: Unresolved, limits: Limits) -> Generator[Any, Any, bool]:
    """Ask the tool and record its answer; True where the row is not unknown any more.

    A process that does not know the tool leaves the row to others and uses up none of its probes;
    past the row's limit it says that a person has to look, since there may be no others.
    """
    answer = yield from _ask(unresolved.claim)
    if isinstance(answer, NoTool):
        if unresolved.too_old or unresolved.parked:
            yield Park(unresolved.claim, "park_after", limits.backoff_cap_seconds)
        else:
            yield LookAgain(unresolved.claim, GIVE_BACK_SECONDS)
        return True
    recorded: Recorded = yield _recorded_as(unresolved, answer)
    if recorded.state in SETTLED_STATES:
        yield RingResults()
    return recorded.state is not State.INDETERMINATE


def _recorded_as(unresolved: Unresolved, answer: ProbeAnswer) -> RecordProbe:
    claim, was_quiet = unresolved.claim, unresolved.quiet
    match answer:
        case Found(ref=ref, result=result, others=others):
            return RecordProbe(claim, FOUND, ref, result, others=others, was_quiet=was_quiet)
        case Absent():
            return RecordProbe(claim, ABSENT, was_quiet=was_quiet)
        case Inconclusive(reason=reason):
            return RecordProbe(claim, INCONCLUSIVE, reason=reason, was_quiet=was_quiet)


def _ask(claim: Claimed) -> Generator[Any, Any, ProbeAnswer | NoTool]:
    answers: tuple[Evidence, ...] = ()
    while len(answers) <= REQUEST_LIMIT:
        answer = yield Probe(claim, answers)
        if isinstance(answer, NoTool):
            return answer
        if isinstance(answer, Raised):
            return Inconclusive(f"the probe raised {answer.error_type}")
        if not isinstance(answer, HttpRequest | FunctionCall):
            found: ProbeAnswer = answer
            return found
        evidence: Evidence = yield Fetch(claim, answer)
        answers = (*answers, evidence)
    return Inconclusive("the probe asked for too many reads")


def _resend_rung(unresolved: Unresolved, throttled: bool) -> Generator[Any, Any, float | None]:
    """Send the same request again and record its outcome.

    Returns None where it was sent, else by how much the next look is put off at least, in seconds.
    """
    claim = unresolved.claim
    request = yield Encode(claim, claim.handle)
    if isinstance(request, NoTool | Raised):
        return 0.0
    if not throttled:
        sent = yield from _resent(claim, request)
        return 0.0 if isinstance(sent, Recorded) else None
    admission: Answer = yield Admit(claim)
    if isinstance(admission, PutOff):
        return admission.delay_seconds
    sent = yield from _resent(claim, request)
    yield note_of(claim, admission, sent)
    return 0.0 if isinstance(sent, Recorded) else None


def _resent(claim: Claimed, request: Request) -> Generator[Any, Any, Outcome | Recorded]:
    """Resend and record; returns the outcome, or Recorded where nothing could be sent."""
    resent = yield Resend(claim, request.digest())
    if not isinstance(resent, Claimed):
        return Recorded(None, None, resent.code)
    evidence: Evidence = yield Exchange(resent, request)
    outcome = yield from conclude(resent, evidence)
    yield from report(resent, outcome)
    return outcome
