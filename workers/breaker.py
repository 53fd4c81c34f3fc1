"""The circuit breaker of one tool: closed, open, half-open, by how its last sends went.

It saves a tool that does not work from being called, and never decides an outcome: while it is
open, rows wait and nothing is sent. When its time is over one trial is sent, and the trial's
outcome alone closes it or opens it for twice as long. Only what says something about the tool's
health counts: a refusal for good is an answer of a healthy tool. Counts add up in any order, so
that many processes may share one breaker. Pure; may import `outbox` values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from ..outbox.defaults import Limits
from ..outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome


class Phase(StrEnum):
    """What a breaker does with a send."""

    CLOSED = "closed"
    """In: at first, and after a trial that went well. Out: too many bad outcomes."""
    OPEN = "open"
    """In: too many bad outcomes, or a bad trial. Out: its time is over."""
    HALF_OPEN = "half_open"
    """In: its time is over. Out: the outcome of the one trial."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """Where a tool's breaker stands."""

    good: int = 0
    bad: int = 0
    since: datetime | None = None
    """When the counting of `good` and `bad` began."""
    open_until: datetime | None = None
    """None: closed."""
    openings: int = 0
    """How often it opened without closing in between."""
    trial: int = 0
    """The number of the latest trial; its outcome counts only while it is the latest."""
    trial_until: datetime | None = None
    """Until then nobody else tries; None: no trial is under way."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The send may go on. `trial` is its number where its outcome decides the breaker."""

    trial: int | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing may be sent for so many seconds."""

    delay_seconds: float


def is_healthy(outcome: Outcome) -> bool | None:
    """Return what an outcome says about the tool's health; None where it says nothing.

    An answer that is complete but lacks our key is about the key, and a request that was too late
    to be written is about this side.
    """
    match outcome:
        case Applied() | Accepted():
            return True
        case NotApplied(code="not_written"):
            return None
        case NotApplied(transient=transient):
            return not transient
        case _:
            return None if outcome.answer is Answer.COMPLETE else False


def phase(breaker: Breaker, now: datetime) -> Phase:
    """Return what the breaker does now."""
    if breaker.open_until is None:
        return Phase.CLOSED
    return Phase.OPEN if now < breaker.open_until else Phase.HALF_OPEN


def admit(
    breaker: Breaker, share: float, now: datetime, limits: Limits
) -> tuple[Breaker, Admitted | Held]:
    """Return the breaker after a send asked for its leave, and the answer.

    `share` in [0, 1] spreads those who wait, so that they do not come back all at once.
    """
    match phase(breaker, now):
        case Phase.CLOSED:
            return breaker, Admitted()
        case Phase.HALF_OPEN if breaker.trial_until is None or breaker.trial_until <= now:
            until = now + timedelta(seconds=limits.breaker_trial_seconds)
            number = breaker.trial + 1
            return replace(breaker, trial=number, trial_until=until), Admitted(number)
        case _:
            return breaker, Held(_wait_seconds(breaker, share, now, limits))


def _wait_seconds(breaker: Breaker, share: float, now: datetime, limits: Limits) -> float:
    moments = [breaker.open_until, breaker.trial_until]
    left = max((moment - now).total_seconds() for moment in moments if moment is not None)
    return max(left, 0.0) + limits.breaker_open_seconds * min(max(share, 0.0), 1.0)


def note(
    breaker: Breaker, healthy: bool | None, trial: int | None, now: datetime, limits: Limits
) -> Breaker:
    """Return the breaker after a send is over; `trial` is the number that it was admitted with.

    `healthy` None: nothing was sent, or its outcome says nothing. A trial ends by that too, and
    the next one may begin. While it is open, outcomes of sends from before decide nothing.
    """
    if breaker.open_until is not None:
        latest = trial == breaker.trial and breaker.trial_until is not None
        return _after_trial(breaker, healthy, now, limits) if latest else breaker
    if healthy is None:
        return breaker
    counted = _counted(breaker, healthy, now, limits)
    total = counted.good + counted.bad
    too_many = total >= limits.breaker_outcomes and counted.bad >= limits.breaker_share * total
    return _opened(counted, now, limits) if too_many else counted


def _counted(breaker: Breaker, healthy: bool, now: datetime, limits: Limits) -> Breaker:
    window = timedelta(seconds=limits.breaker_window_seconds)
    if breaker.since is None or now - breaker.since >= window:
        breaker = replace(breaker, good=0, bad=0, since=now)
    if healthy:
        return replace(breaker, good=breaker.good + 1)
    return replace(breaker, bad=breaker.bad + 1)


def _after_trial(breaker: Breaker, healthy: bool | None, now: datetime, limits: Limits) -> Breaker:
    if healthy is None:
        return replace(breaker, trial_until=None)
    if healthy:
        # The number goes on, so that no outcome of an earlier trial is taken for a later one's.
        return Breaker(trial=breaker.trial)
    return _opened(breaker, now, limits)


def _opened(breaker: Breaker, now: datetime, limits: Limits) -> Breaker:
    doublings = min(breaker.openings, 30)
    seconds = min(limits.breaker_open_cap_seconds, limits.breaker_open_seconds * 2.0**doublings)
    return Breaker(
        open_until=now + timedelta(seconds=seconds), openings=breaker.openings + 1,
        trial=breaker.trial,
    )  # fmt: skip
