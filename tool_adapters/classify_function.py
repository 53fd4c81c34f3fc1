"""What the end of a function tool proves: returned, raised or overran.

Decides that only `NotApplied`, raised or returned, proves nothing happened; a value is Applied;
everything else is Unknown. Pure: `outbox`, `contract`, `bounded`, `wire`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from ..outbox.contract import Echo
from ..outbox.defaults import DEFAULTS
from ..outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from .bounded import bounded
from .contract import (
    Evidence,
    NotWritten,
    OverLimit,
    RaisedError,
    RaisedOutcome,
    Returned,
    foreign_evidence,
    unsent_outcome,
)
from .wire import wire_forms

RESULT_READ_BYTES = int(DEFAULTS.args_limit_bytes)
"""Largest result that a caller of the adapter sees; what is stored has a lower limit."""


def classify_function(echo: Echo, wire_key: str, evidence: Evidence) -> Outcome:
    """Return what the function's end proves, under the echo that its tool declares."""
    if isinstance(evidence, Returned):
        outcome = outcome_of(evidence.value)
        if isinstance(outcome, Applied | Accepted) and not _echoes(echo, wire_key, outcome):
            return Unknown("a success without our key", "protocol_miss", Answer.COMPLETE)
        return outcome
    if isinstance(evidence, RaisedOutcome):
        return bounded(evidence.outcome, RESULT_READ_BYTES)
    if isinstance(evidence, RaisedError):
        place = f" at {evidence.text}" if evidence.text else ""
        return Unknown(f"the function raised {evidence.error_type}{place}", code="raised")
    if isinstance(evidence, OverLimit):
        return Unknown("the function had not returned at its limit", code="over_limit")
    if isinstance(evidence, NotWritten):
        return unsent_outcome(evidence)
    return foreign_evidence(evidence)


def _echoes(echo: Echo, wire_key: str, outcome: Applied | Accepted) -> bool:
    if echo is Echo.NONE or outcome.key_store:
        return True
    if echo is Echo.REF:
        return outcome.ref is not None
    return _holds_text([outcome.ref, outcome.result], wire_forms(wire_key))


def outcome_of(value: Any) -> Outcome:
    """Return the outcome that a returned value stands for.

    What certainly did not run (an awaitable, a generator) or looks like a slip (a class, an
    exception returned) is Unknown: the effect may have come before it.
    """
    if isinstance(value, Applied | Accepted | NotApplied | Unknown):
        return bounded(value, RESULT_READ_BYTES)
    if isinstance(value, type | BaseException) or _never_ran(value):
        return Unknown(f"the function returned a {type(value).__name__}", code="bad_return")
    return bounded(Applied(result=value), RESULT_READ_BYTES)


def _never_ran(value: Any) -> bool:
    return inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value)


def _holds_text(value: Any, wanted: frozenset[str]) -> bool:
    if isinstance(value, str):
        return value in wanted
    if isinstance(value, Mapping):
        return any(_holds_text(item, wanted) for item in value.values())
    return isinstance(value, list | tuple) and any(_holds_text(item, wanted) for item in value)
