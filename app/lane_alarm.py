"""Decides when a late lane is told: at once, then once in a while for as long as it stays late.

Pure; the moments are given. Imports the standard library only.
"""

from __future__ import annotations

LATE_SECONDS = 60.0
"""A ready row older than this makes its lane late."""
REPEAT_SECONDS = 60.0


class LaneAlarm:
    """Remembers when each late lane was told last, so that a poll each second does not repeat."""

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}

    def is_due(self, lane: str, oldest_seconds: float, now: float) -> bool:
        """Return whether to tell of this lane now; a lane that caught up begins anew."""
        if oldest_seconds <= LATE_SECONDS:
            self._told_at.pop(lane, None)
            return False
        told_at = self._told_at.get(lane)
        if told_at is not None and now - told_at < REPEAT_SECONDS:
            return False
        self._told_at[lane] = now
        return True
