"""Binding settled rows to the plan, and handing bound ones over: which batch is looked at when.

Pure generators over `commands`; may import `model`. A row is bound once, by the condition of
`transitions.BIND`; what it must wait for (an undo, a divergence) is not waited for here: whoever
ends it asks anew.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from .commands import BindAnswer, BindBatch, FindBound, FindSettled, HandOverBatch
from .model import Row

STALE = "stale"
DUPLICATE = "duplicate"
WAITING = "waiting"


def answer_unbound(row: Row) -> str:
    """Return why a settled row was not bound; the statement bind_rest says the same.

    WAITING: an undo or a divergence is open, and whoever ends it asks anew.
    """
    if not row.live:
        return STALE
    return DUPLICATE if row.bound_at is not None else WAITING


@dataclass(frozen=True, slots=True)
class BindTogether:
    """Bind several batches in one statement; only where no callback waits. Reply: BindAnswer."""

    batch_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BindReport:
    """What one pass did. `full`: it met its limit, so another pass may find more."""

    bound: int = 0
    stale: int = 0
    duplicate: int = 0
    handed: int = 0
    full: bool = False


def bind_pass(
    limit: int, *, together: bool = False, hands_over: bool = True
) -> Generator[Any, Any, BindReport]:
    """Bind due batches in the order they settled, then hand bound rows over.

    `together` is for a plan without any callback: nothing of one batch can hold up another. Where
    handing over has a loop of its own, no slow callback holds up a bind (`hands_over`).
    """
    settled: tuple[int, ...] = yield FindSettled(limit)
    answers: list[BindAnswer] = []
    if together and settled:
        answers.append((yield BindTogether(settled)))
    elif not together:
        for batch_id in settled:
            answers.append((yield BindBatch(batch_id)))
    handed = (yield from hand_over_pass(limit)) if hands_over and not together else 0
    return BindReport(
        bound=sum(answer.bound for answer in answers),
        stale=sum(answer.stale for answer in answers),
        duplicate=sum(answer.duplicate for answer in answers),
        handed=handed,
        full=len(settled) >= limit,
    )


def hand_over_pass(limit: int) -> Generator[Any, Any, int]:
    """Run the after_bound callbacks of what is bound and not handed over yet."""
    bound: tuple[int, ...] = yield FindBound(limit)
    handed = 0
    for batch_id in bound:
        handed += yield HandOverBatch(batch_id)
    return handed
