"""What a workload meets: deliveries of each intent, and fault and latency of each of its tries.

A try is a request that has left for the tool, counted per intent over all callers from 1 on.
Intents go by their names, `intent-0` and so on, which are part of the labels. Pure; may
import `draws`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import floor

from .draws import share

OK = "ok"
ERROR = "error"
"""The tool refuses the request: nothing happens, and its answer says so."""
TIMEOUT = "timeout"
"""The effect happens and the answer is lost."""
LOST = "lost"
"""The request is lost on its way: nothing happens and nobody is told."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of one seed. `overrides` sets the fault of single tries, for every intent."""

    seed: int = 1
    deliveries_range: tuple[int, int] = (1, 1)
    error_rate: float = 0.0
    timeout_rate: float = 0.0
    latency_range: tuple[float, float] = (0.0, 0.0)
    """In seconds."""
    slow_tries: int | None = None
    """How many tries of an intent have a latency, the others being quick; None: all."""
    overrides: Mapping[int, str] = field(default_factory=dict)
    outage_range: tuple[float, float] = (0.0, 0.0)
    """From when to when the tool is out, in seconds of the world."""
    outage: str = ERROR
    """What becomes of every request that leaves while the tool is out."""

    def is_out(self, seconds: float) -> bool:
        """Return whether the tool is out at a moment of the world."""
        return self.outage_range[0] <= seconds < self.outage_range[1]

    def deliveries(self, intent: str) -> int:
        """Return how often an intent is delivered; at least once."""
        least, most = self.deliveries_range
        drawn = share(self.seed, f"deliveries:{intent}")
        return max(1, least + floor(drawn * (most - least + 1)))

    def fault(self, intent: str, number: int) -> str:
        """Return what becomes of the intent's n-th try."""
        if number in self.overrides:
            return self.overrides[number]
        drawn = share(self.seed, f"fault:{intent}:{number}")
        if drawn < self.error_rate:
            return ERROR
        return TIMEOUT if drawn < self.error_rate + self.timeout_rate else OK

    def latency_seconds(self, intent: str, number: int) -> float:
        """Return how long the n-th try travels; whole milliseconds."""
        if self.slow_tries is not None and number > self.slow_tries:
            return 0.0
        least, most = (1000.0 * seconds for seconds in self.latency_range)
        drawn = share(self.seed, f"latency:{intent}:{number}")
        return floor(least + drawn * (most - least) + 0.5) / 1000.0
