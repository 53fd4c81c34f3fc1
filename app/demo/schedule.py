"""What goes wrong in a run, drawn from a seed: the same for ackbox and for bare RQ.

Pure. Kills hit named points of chosen steps. A kill that a neighbour's death made impossible is
aimed again at a step of the reserve, so that the requested number really happens.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from .plan import Step

POINTS = ("before_send", "after_effect", "after_settle", "after_mark")
"""Where a kill hits a call whose unknown outcome settles itself, in turn."""
KEYLESS_POINTS = ("before_send", "after_settle", "after_effect", "before_send", "after_settle")
"""For the keyless tool: mostly where nothing can become unknown."""
SLOW_ANSWER_SECONDS = 0.8
"""A planner runs out of patience before this."""
LATE_ANSWER_SECONDS = 1.5
"""Long enough for a planner to supersede the step before its first result arrives."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything that is planned to go wrong, by step name."""

    kills: dict[str, str]
    impatient: frozenset[str]
    superseded: frozenset[str]
    reserve: tuple[str, ...]
    """The last steps of the plan, given out after all others; missing kills are aimed at them."""

    def answer_seconds(self, name: str) -> float:
        """Return how long the tool keeps its answer back once the effect is done."""
        if name in self.superseded:
            return LATE_ANSWER_SECONDS
        return SLOW_ANSWER_SECONDS if name in self.impatient else 0.0


def most_kills(steps: int) -> int:
    """Return how many kills a plan of that many steps has room for."""
    return max(0, (steps - _superseded_count(steps) - _impatient_count(steps)) * 3 // 4)


def draw_schedule(steps: Sequence[Step], kills: int, seed: int) -> Schedule:
    """Draw what goes wrong. Raises ValueError for more kills than `most_kills`."""
    if kills > most_kills(len(steps)):
        raise ValueError(f"{len(steps)} steps have room for {most_kills(len(steps))} kills")
    draw = random.Random(seed)
    reserve = steps[len(steps) - _reserve_count(kills) :]
    free = list(steps[: len(steps) - len(reserve)])
    superseded = draw.sample(
        [one for one in free if not one.is_keyless], _superseded_count(len(steps))
    )
    free = [one for one in free if one not in superseded]
    impatient = draw.sample(free, min(len(free) - kills, _impatient_count(len(steps))))
    free = [one for one in free if one not in impatient]
    return Schedule(
        kills=aim(draw.sample(free, kills)),
        impatient=frozenset(one.name for one in impatient),
        superseded=frozenset(one.name for one in superseded),
        reserve=tuple(one.name for one in reserve),
    )


def aim(victims: Sequence[Step]) -> dict[str, str]:
    """Return the point of each victim's kill: every point in turn, so that each one occurs."""
    settling, keyless = cycle(POINTS), cycle(KEYLESS_POINTS)
    by_effect = sorted(victims, key=lambda one: one.is_keyless)
    return {one.name: next(keyless if one.is_keyless else settling) for one in by_effect}


def _superseded_count(steps: int) -> int:
    return max(1, steps // 20)


def _impatient_count(steps: int) -> int:
    return max(1, steps // 10)


def _reserve_count(kills: int) -> int:
    return 0 if kills == 0 else 1 + kills // 4
