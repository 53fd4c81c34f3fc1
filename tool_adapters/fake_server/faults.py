"""What may go wrong at the fake provider, and which request it happens to.

Pure, standard library only. Faults stand in a list; a request takes the first that fits it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """One way to go wrong. `seconds` of its rule sets delays and the drip's length."""

    DELAY_BEFORE_EFFECT = "delay_before_effect"
    DELAY_AFTER_EFFECT = "delay_after_effect"
    DRIP = "drip"
    """Effect, then the answer byte by byte over `seconds`."""
    DROP_BEFORE_EFFECT = "drop_before_effect"
    DROP_AFTER_EFFECT = "drop_after_effect"
    TOO_MANY_REQUESTS = "too_many_requests"
    """429 with Retry-After, before the key layer; no effect."""
    REFUSED = "refused"
    """422 before the effect."""
    ERROR_BEFORE_EFFECT = "error_before_effect"
    ERROR_AFTER_EFFECT = "error_after_effect"
    STORED_ERROR = "stored_error"
    """500 without effect, kept in the key store and replayed."""
    STORED_REFUSAL = "stored_refusal"
    """422 without effect, kept in the key store and replayed."""
    EMPTY_SUCCESS = "empty_success"
    CUT_SUCCESS = "cut_success"
    """Effect, 201, then the connection ends in the middle of the body."""
    GARBAGE = "garbage"
    """Effect, then bytes that are no HTTP."""
    REDIRECT = "redirect"
    """307 to another path, without effect."""
    LATE_COMMIT = "late_commit"
    """The connection drops at once; the effect comes `seconds` later."""


@dataclass(slots=True)
class FaultRule:
    """One fault for the next `count` fitting requests (None: for all of them)."""

    fault: Fault
    endpoint: str | None = None
    wire_key: str | None = None
    count: int | None = 1
    seconds: float = 1.0
    every: int = 1
    """Only each n-th fitting request meets the fault."""
    seen: int = 0

    def fits(self, endpoint: str, wire_key: str) -> bool:
        """Return whether the request is one of those the rule is for."""
        if self.count == 0:
            return False
        return self.endpoint in (None, endpoint) and self.wire_key in (None, wire_key)

    def take(self) -> bool:
        """Count a fitting request; return whether the fault happens to this one."""
        self.seen += 1
        if self.seen % self.every:
            return False
        if self.count is not None:
            self.count -= 1
        return True


def rule_from_document(document: dict[str, Any]) -> FaultRule:
    """Build a rule from JSON. Raises ValueError or TypeError for what is none."""
    fields = {name: value for name, value in document.items() if name != "seen"}
    return FaultRule(**{**fields, "fault": Fault(fields["fault"])})


class FaultList:
    """The rules in force, oldest first."""

    def __init__(self) -> None:
        self.rules: list[FaultRule] = []

    def next_for(self, endpoint: str, wire_key: str) -> FaultRule | None:
        """Return the rule whose fault happens to this request, used up by one."""
        for rule in self.rules:
            if rule.fits(endpoint, wire_key) and rule.take():
                return rule
        return None

    def document(self) -> list[dict[str, Any]]:
        """Return the rules as JSON."""
        return [asdict(rule) for rule in self.rules]
