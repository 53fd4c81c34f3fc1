"""How many attempts each lane of this process may have in flight.

Bounded per lane, so that slow calls of one lane never take the place of another's. Shell: locks.
"""

from __future__ import annotations

import threading
from collections import Counter


class LaneSlots:
    """Counts attempts in flight by lane; `changed` is notified whenever one ends."""

    def __init__(self, slots_per_lane: int) -> None:
        self.slots_per_lane = slots_per_lane
        self._taken: Counter[str] = Counter()
        self.changed = threading.Condition()

    def free(self, lane: str) -> int:
        """Return how many attempts of the lane may be started now."""
        with self.changed:
            return self.slots_per_lane - self._taken[lane]

    def take(self, lane: str, count: int) -> None:
        """Take slots for attempts that were just claimed."""
        with self.changed:
            self._taken[lane] += count

    def release(self, lane: str, count: int = 1) -> None:
        """Give slots back."""
        with self.changed:
            self._taken[lane] -= count
            self.changed.notify_all()

    def taken(self) -> int:
        """Return the attempts in flight over all lanes."""
        with self.changed:
            return sum(self._taken.values())

    def is_idle(self, lane: str) -> bool:
        """Return whether the lane has nothing in flight."""
        with self.changed:
            return self._taken[lane] == 0

    def wait_idle(self, seconds: float) -> bool:
        """Wait until nothing is in flight; False when time is over first."""
        with self.changed:
            return self.changed.wait_for(lambda: sum(self._taken.values()) == 0, seconds)
