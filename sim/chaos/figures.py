"""What a workload came to, counted at the virtual tools and on the rows at the end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of one workload; sums of several add up member by member."""

    intents: int = 0
    deliveries: int = 0
    attempts: int = 0
    """Requests for an effect that reached the tool, refused and repeated ones included."""
    reads: int = 0
    """Harmless questions to the tool."""
    effects: int = 0
    duplicates: int = 0
    """Standing effects of a step beyond its first."""
    resolved: int = 0
    """Intents that are committed, each with its evidence."""
    parked: int = 0
    """Intents in front of a person."""
    failed: int = 0
    """Intents whose failure is proven."""
    cancelled: int = 0
    compensated: int = 0

    def __add__(self, other: Figures) -> Figures:
        """Return the sum, member by member."""
        names = [one.name for one in fields(self)]
        return Figures(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def amplification(self) -> float:
        """Attempts per intent. Says little without `completion`: work may have been shed."""
        return round(self.attempts / self.intents, 4) if self.intents else 0.0

    @property
    def completion(self) -> float:
        """The share of intents that are committed."""
        return round(self.resolved / self.intents, 4) if self.intents else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts with stable keys, and both ratios."""
        ratios = {"amplification": self.amplification, "completion": self.completion}
        return asdict(self) | ratios


def total(parts: Iterable[Figures]) -> Figures:
    """Return the sum of all parts."""
    summed = Figures()
    for part in parts:
        summed += part
    return summed
