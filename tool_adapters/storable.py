"""Making what a tool answered fit for storage, without ever doubting the effect for it.

Pure: `outbox` and the standard library. A result that JSON or Postgres cannot hold becomes None;
a reference or reason loses the characters that cannot be stored.
"""

from __future__ import annotations

import math
from dataclasses import asdict, is_dataclass
from typing import Any

from ..outbox.defaults import DEFAULTS
from ..outbox.errors import InvalidIntent
from ..outbox.identity import canonical

TEXT_LIMIT = 1000
"""Longest stored reason or reference, in characters."""


def storable(value: Any) -> Any:
    """Return the result as JSON, or None where it is none."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    elif callable(dump := getattr(value, "model_dump", None)):
        value = dump(mode="json")
    try:
        canonical(value, int(DEFAULTS.args_limit_bytes), "result")
    except InvalidIntent:
        return None
    return value


def storable_text(value: Any) -> str:
    """Return the value as text without NUL and lone surrogates, cut to the limit."""
    text = str(value)[:TEXT_LIMIT].replace("\x00", "\ufffd")
    return text.encode("utf-8", "replace").decode()


def storable_seconds(value: Any) -> float | None:
    """Return a finite, not negative number of seconds, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(float(value), 0.0)
