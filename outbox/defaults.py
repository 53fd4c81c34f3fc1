"""The defaults of every limit, in one table, and the constraints between them.

Pure. The documentation's table is rendered from `Limits`; each limit can be set per tool.
Durations are seconds, sizes are bytes, the rest are counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field


def _limit(default: float, meaning: str) -> float:
    value: float = field(default=default, metadata={"meaning": meaning})
    return value


def _count(default: int, meaning: str) -> int:
    value: int = field(default=default, metadata={"meaning": meaning})
    return value


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one outbox. A tool's contract may override those that `ToolContract` repeats."""

    claim_lease_seconds: float = _limit(30, "a claim without a send mark lapses after this")
    prepare_limit_seconds: float = _limit(20, "all harmless requests before the effect together")
    send_deadline_seconds: float = _limit(5, "from asking for the mark to the first byte")
    call_limit_seconds: float = _limit(30, "first byte of the request to last byte of the answer")
    settle_seconds: float = _limit(60, "how long a request may still take effect at the tool")
    clock_allowance_seconds: float = _limit(5, "slack between deadlines that different parts hold")
    heartbeat_seconds: float = _limit(5, "one beat per worker process")
    dead_after_seconds: float = _limit(20, "a process without a beat for this long is dead")
    term_grace_seconds: float = _limit(35, "how long SIGTERM waits for calls in flight")
    park_after_seconds: float = _limit(900, "an unknown older than this is a person's turn")
    unready_limit_seconds: float = _limit(3600, "no worker could prepare the call for this long")
    gate_limit_seconds: float = _limit(86_400, "an approval that nobody gave")
    retention_seconds: float = _limit(
        30 * 86_400, "final rows keep their details this long or longer"
    )
    redelivery_window_seconds: float = _limit(86_400, "the longest that a planner asks again")
    backoff_base_seconds: float = _limit(1, "first delay; doubles with full jitter")
    backoff_cap_seconds: float = _limit(300, "longest delay")
    lock_timeout_seconds: float = _limit(0.5, "longest wait for another transaction's row lock")
    retry_ratio: float = _limit(0.2, "retries and resends that one first send of a tool pays for")
    retry_floor_seconds: float = _limit(10, "time that pays a tool for one retry or resend more")
    breaker_window_seconds: float = _limit(60, "a tool's outcomes are counted for this long")
    breaker_share: float = _limit(0.5, "share of bad outcomes at which a tool's breaker opens")
    breaker_open_seconds: float = _limit(30, "first time that a breaker stays open; doubles")
    breaker_open_cap_seconds: float = _limit(300, "longest time that a breaker stays open")
    breaker_trial_seconds: float = _limit(90, "a trial send without an outcome is given up")
    retry_burst: int = _count(10, "retries and resends that a tool can save up, and begins with")
    breaker_outcomes: int = _count(5, "fewest outcomes in a window at which a breaker may open")
    max_sends: int = _count(20, "send marks of one intent generation")
    max_resends: int = _count(6, "same-key resends and reconciler's clears")
    max_claims: int = _count(5, "lapses of a row claimed alone before it is poisoned")
    max_probes: int = _count(12, "probes before the row is parked")
    result_limit_bytes: int = _count(65_536, "largest stored result")
    args_limit_bytes: int = _count(1_048_576, "largest stored arguments")


def broken_constraints(limits: Limits) -> list[str]:
    """Return one sentence for each constraint between limits that does not hold."""
    problems = []
    if limits.claim_lease_seconds <= limits.prepare_limit_seconds + limits.clock_allowance_seconds:
        problems.append("claim_lease must be longer than prepare_limit + clock_allowance")
    if limits.dead_after_seconds < 2 * limits.heartbeat_seconds:
        problems.append("dead_after must be at least two heartbeats")
    if limits.retention_seconds < limits.redelivery_window_seconds:
        problems.append("retention must not be shorter than redelivery_window")
    if limits.backoff_cap_seconds < limits.backoff_base_seconds:
        problems.append("backoff_cap must not be shorter than backoff_base")
    return problems + _broken_throttles(limits)


def _broken_throttles(limits: Limits) -> list[str]:
    problems = []
    if not (limits.retry_floor_seconds > 0 and limits.retry_burst >= 1):
        # A budget that nothing fills without first sends would keep the last rows for ever.
        problems.append("retry_floor must be a time above zero, and retry_burst at least 1")
    if not (limits.retry_ratio >= 0 and 0 < limits.breaker_share <= 1):
        problems.append("retry_ratio must not be negative, breaker_share above 0 and at most 1")
    if not 0 < limits.breaker_open_seconds <= limits.breaker_open_cap_seconds:
        problems.append("breaker_open must be above zero and not longer than breaker_open_cap")
    return problems


DEFAULTS = Limits()
