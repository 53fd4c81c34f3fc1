"""The time of a virtual world: it moves only when somebody moves it.

Pure; the standard library only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""Where the time of every world begins."""


class VirtualClock:
    """One clock for the store, the tools and every process of a world."""

    __slots__ = ("now",)

    def __init__(self, now: datetime = BEGINNING) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        """Move on by some seconds; time never runs backwards."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        self.now += timedelta(seconds=seconds)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the world began."""
        return (self.now - BEGINNING).total_seconds()
