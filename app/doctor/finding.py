"""One line of a diagnosis. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "WARN", "FAIL"]
OK: Level = "ok"
WARN: Level = "WARN"
"""Works, but something will wait, or a promise is weaker than it could be."""
FAIL: Level = "FAIL"
"""A promise does not hold, or nothing moves."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `check` is a stable name; `next_step` is what to type or to write."""

    level: Level
    check: str
    text: str
    next_step: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the parts under stable keys."""
        return asdict(self)
