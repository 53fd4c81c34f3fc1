"""Budget and breaker around the sends of one tool, and the attempt that asks them first.

Both are asked before anything of an attempt leaves this process, harmless requests included, and
hear afterwards how the send went. They put off and nothing else: the row goes back with a later
turn, its count of sends as it was, and whatever ends a row ends it as without them. What they are
told is advice: an outcome that is lost with its process costs no correctness.

A generator in the manner of `attempt`. Pure; may import `budget`, `breaker`, `attempt`, `outbox`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from ..outbox.commands import Claimed, GiveBack, Recorded
from ..outbox.defaults import Limits
from ..outbox.outcome import Outcome
from . import breaker as breakers
from . import budget as budgets
from .attempt import Steps, report, send_once
from .breaker import Breaker
from .budget import Budget

BREAKER_OPEN = "breaker_open"
NO_BUDGET = "no_budget"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Budget and breaker of one tool: everything that its processes share about its load."""

    budget: Budget = field(default_factory=Budget)
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True)
class Admission:
    """A send may go on. `again`: it is a retry or a resend, and was paid for."""

    again: bool
    trial: int | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """Nothing may be sent now; ask again after the delay."""

    reason: str
    delay_seconds: float


Answer: TypeAlias = Admission | PutOff


@dataclass(frozen=True, slots=True)
class Admit:
    """Ask the tool's throttle for leave to send. Reply: Admission or PutOff."""

    claim: Claimed

    @property
    def again(self) -> bool:
        """Whether this would not be the first send of its generation."""
        return self.claim.sends > 0


@dataclass(frozen=True, slots=True)
class NoteSend:
    """Tell the tool's throttle how an admitted send went. Reply: None.

    `sent` False: nothing left. `healthy` as `breaker.is_healthy` says; None where nothing is known.
    """

    tool: str
    admission: Admission
    sent: bool
    healthy: bool | None = None


def admit(
    throttle: Throttle, again: bool, share: float, now: datetime, limits: Limits
) -> tuple[Throttle, Answer]:
    """Return the throttle after a send asked for leave, and the answer.

    The breaker is asked first, so that no token is spent on what may not be sent; a trial that
    then gets no token is no trial. `share` in [0, 1] spreads those who wait.
    """
    asked, answer = breakers.admit(throttle.breaker, share, now, limits)
    if isinstance(answer, breakers.Held):
        return throttle, PutOff(BREAKER_OPEN, answer.delay_seconds)
    if not again:
        return replace(throttle, breaker=asked), Admission(False, answer.trial)
    budget, short = budgets.take(throttle.budget, now, limits)
    if short is not None:
        return replace(throttle, budget=budget), PutOff(NO_BUDGET, short.delay_seconds)
    return Throttle(budget, asked), Admission(True, answer.trial)


def note(throttle: Throttle, said: NoteSend, now: datetime, limits: Limits) -> Throttle:
    """Return the throttle after an admitted send is over."""
    healthy = said.healthy if said.sent else None
    breaker = breakers.note(throttle.breaker, healthy, said.admission.trial, now, limits)
    budget = throttle.budget
    if said.sent and not said.admission.again:
        budget = budgets.earn(budget, now, limits)
    elif said.admission.again and not said.sent:
        budget = budgets.give_back(budget, now, limits)
    return Throttle(budget, breaker)


def note_of(claim: Claimed, admission: Admission, sent: Outcome | Recorded) -> NoteSend:
    """Return what to tell after an admitted send: its outcome, or Recorded where nothing left."""
    if isinstance(sent, Recorded):
        return NoteSend(claim.tool, admission, sent=False)
    return NoteSend(claim.tool, admission, sent=True, healthy=breakers.is_healthy(sent))


def throttled_attempt(claim: Claimed) -> Steps:
    """Run one attempt, unless budget or breaker put it off; returns what became of the row."""
    admission: Answer = yield Admit(claim)
    if isinstance(admission, PutOff):
        given: Recorded = yield GiveBack(claim, admission.reason, admission.delay_seconds)
        return given
    sent = yield from send_once(claim)
    recorded = sent if isinstance(sent, Recorded) else (yield from report(claim, sent))
    yield note_of(claim, admission, sent)
    return recorded
