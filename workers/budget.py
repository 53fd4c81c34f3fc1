"""The retry budget of one tool: how many retries and resends its first sends pay for.

A broken provider must not get a multiple of its usual load. Each first send earns a share of a
token, a retry or resend costs a whole one, and time earns one now and then, so that a tool with
few first sends comes to its end too. An empty budget puts a row off; it refuses nothing, and what
is put off counts as no send. One budget is shared by every process that serves the tool. Pure; may
import `outbox.defaults`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..outbox.defaults import Limits

_ENOUGH = 1.0 - 1e-9
"""Shares of a token add up to a whole one but for the rounding."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a tool's budget stands. `tokens` None: nothing was ever asked of it, so it is full."""

    tokens: float | None = None
    counted_at: datetime | None = None
    """Until when time's own share is in `tokens`."""
    line_until: datetime | None = None
    """When the last one of those who were put off is paid for, if by time alone."""


@dataclass(frozen=True, slots=True)
class Short:
    """Nothing was taken; after so many seconds time alone has paid for those before and this."""

    delay_seconds: float


def filled(budget: Budget, now: datetime, limits: Limits) -> Budget:
    """Return the budget with what time has earned until now; a clock set back earns nothing."""
    full = float(limits.retry_burst)
    if budget.tokens is None or budget.counted_at is None:
        return replace(budget, tokens=full, counted_at=now)
    seconds = max((now - budget.counted_at).total_seconds(), 0.0)
    tokens = min(full, budget.tokens + seconds / limits.retry_floor_seconds)
    return replace(budget, tokens=tokens, counted_at=max(now, budget.counted_at))


def earn(budget: Budget, now: datetime, limits: Limits) -> Budget:
    """Return the budget after a first send."""
    return _given(budget, limits.retry_ratio, now, limits)


def give_back(budget: Budget, now: datetime, limits: Limits) -> Budget:
    """Return the budget after a retry that was paid for and then not sent."""
    return _given(budget, 1.0, now, limits)


def _given(budget: Budget, tokens: float, now: datetime, limits: Limits) -> Budget:
    present = filled(budget, now, limits)
    assert present.tokens is not None
    return replace(present, tokens=min(float(limits.retry_burst), present.tokens + tokens))


def take(budget: Budget, now: datetime, limits: Limits) -> tuple[Budget, Short | None]:
    """Return the budget after a retry or resend asked for its token, and None where it got one.

    Who gets none stands in line, so that a long line does not come back all at once; nobody waits
    longer than the longest back-off before asking again.
    """
    present = filled(budget, now, limits)
    assert present.tokens is not None
    if present.tokens >= _ENOUGH:
        return replace(present, tokens=max(present.tokens - 1.0, 0.0)), None
    floor = timedelta(seconds=limits.retry_floor_seconds)
    turn = now + floor * (1.0 - present.tokens)
    if present.line_until is not None and present.line_until > now:
        turn = present.line_until + floor
    turn = min(turn, now + timedelta(seconds=limits.backoff_cap_seconds))
    return replace(present, line_until=turn), Short((turn - now).total_seconds())
