"""What is counted at the end of a run, and what counts as a duplicate or as lost.

Pure. The effects come from the tools' side alone; the words are what the planner is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...outbox.told import Committed, CommittedNoResult, Told, UnknownOutcome
from .plan import Step

NOT_HAPPENED = frozenset({"failed", "cancelled", "superseded", "compensated"})


@dataclass(frozen=True, slots=True)
class Counts:
    """What one side did to the steps it accepted, counted at the tools."""

    effects: int
    duplicates: int
    lost: int
    lost_steps: tuple[str, ...] = ()
    doubled_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How one step stands: what the planner is told, and whether a person's turn has come."""

    told: Told | None
    finished: bool
    bound: bool

    @property
    def word(self) -> str:
        """The told word; `not_stored` where the planner knows no such step."""
        return "not_stored" if self.told is None else self.told.word

    @property
    def parked(self) -> bool:
        """Whether the step is unknown and waits for a person."""
        return isinstance(self.told, UnknownOutcome) and self.finished

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to the step by itself."""
        needs_bind = isinstance(self.told, Committed | CommittedNoResult)
        return self.finished and (self.bound or not needs_bind)


@dataclass(frozen=True, slots=True)
class Figures:
    """The demo's result; `as_dict` has the keys that `--json` prints."""

    steps: int
    ackbox: Counts
    committed: int
    unknown: int
    stale_rejected: int
    kills: int
    naive: Counts
    remarks: tuple[str, ...] = field(default=())

    @property
    def is_good(self) -> bool:
        """Whether ackbox lost nothing and doubled nothing."""
        return self.ackbox.duplicates == 0 and self.ackbox.lost == 0

    def as_dict(self) -> dict[str, Any]:
        """Return the figures under stable keys."""
        return {
            "steps": self.steps,
            "effects": self.ackbox.effects,
            "duplicates": self.ackbox.duplicates,
            "lost": self.ackbox.lost,
            "committed": self.committed,
            "unknown": self.unknown,
            "stale_rejected": self.stale_rejected,
            "kills": self.kills,
            "naive": {"effects": self.naive.effects, "duplicates": self.naive.duplicates},
        }


def count_ackbox(
    steps: Sequence[Step], effects: Mapping[str, int], endings: Mapping[str, Ending]
) -> Counts:
    """Count by intent_id. Lost: neither final nor parked, or told committed without an effect.

    Only the keyless tool may park: a parked step of another tool counts as lost.
    """
    lost = [one.name for one in steps if _is_lost(one, effects, endings[one.name])]
    return _counts(steps, effects, lost)


def count_naive(steps: Sequence[Step], effects: Mapping[str, int]) -> Counts:
    """Count by intent_id. Lost: no effect at all."""
    return _counts(steps, effects, [one.name for one in steps if not effects.get(one.intent_id)])


def _is_lost(step: Step, effects: Mapping[str, int], ending: Ending) -> bool:
    if ending.word == Committed.word:
        return not effects.get(step.intent_id) or not ending.bound
    if ending.parked:
        return not step.is_keyless
    return ending.word not in NOT_HAPPENED


def _counts(steps: Sequence[Step], effects: Mapping[str, int], lost: Sequence[str]) -> Counts:
    numbers = {one.name: effects.get(one.intent_id, 0) for one in steps}
    return Counts(
        effects=sum(numbers.values()),
        duplicates=sum(max(0, number - 1) for number in numbers.values()),
        lost=len(lost),
        lost_steps=tuple(lost),
        doubled_steps=tuple(name for name, number in numbers.items() if number > 1),
    )
