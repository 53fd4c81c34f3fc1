"""A seeded source of choices. Two runs with one seed draw the same on every supported Python.

Pure, standard library only: `random.Random.random` is the one method whose numbers Python promises
to keep, and the only one used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class RandomSource:
    """Numbers from one seed."""

    __slots__ = ("share",)

    def __init__(self, seed: int) -> None:
        self.share = Random(seed).random
        """Return a number in [0, 1)."""

    def below(self, limit: int) -> int:
        """Return a whole number from 0 to limit - 1."""
        return int(self.share() * limit)

    def chance(self, probability: float) -> bool:
        """Return true with a probability."""
        return self.share() < probability

    def one_of(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self.share() * len(items))]
