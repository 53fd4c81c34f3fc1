"""Making what a tool answered fit for storage, without ever doubting the effect for it.

Pure: `outbox` and the standard library. A result that JSON or Postgres cannot hold becomes None;
a reference or reason loses the characters that cannot be stored.
"""

from __future__ import annotations

import math
from typing import Any

from ..outbox.defaults import DEFAULTS
from ..outbox.identity import canonical
from .values.by_value import encode_by_value
from .values.place import Place

TEXT_LIMIT = 1000
"""Longest stored reason or reference, in characters."""


def storable(value: Any) -> Any:
    """Return the result as JSON, or None where it is none."""
    try:
        plain = encode_by_value(value, Place("result"))
        canonical(plain, int(DEFAULTS.args_limit_bytes), "result")
    except Exception:  # noqa: BLE001 - a tool's own object: whatever it raises
        return None
    return plain


def storable_text(value: Any) -> str:
    """Return the value as text without NUL and lone surrogates, cut to the limit."""
    try:
        text = str(value)[:TEXT_LIMIT]
    except Exception:  # noqa: BLE001 - a tool's own object again
        text = f"<{type(value).__name__}>"
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def storable_seconds(value: Any) -> float | None:
    """Return a finite, not negative number of seconds, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(float(value), 0.0)
