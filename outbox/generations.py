"""What a planner's put, supersede and cancel are answered, from the step as its locks show it.

Decides nothing about edges: it names the move to try, and the table's guards judge it. Both stores
ask it. Pure; may import `model` and `intent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .intent import Draft, Intent
from .model import SETTLED_STATES, WITHDRAWABLE_STATES, Move, Refusal, Row, State

NOT_FOUND = Refusal("not_found", "no such intent")
SUPERSEDED = "superseded"
CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Stored:
    """What `put` looks at in a generation that stands under an id already."""

    intent: Intent
    fingerprint: str
    live: bool


def answer_stored(draft: Draft, found: Sequence[Stored], *, keep: bool) -> Intent | Refusal:
    """Return what a put of an id in use is answered; `found` is generation 0 and the live one.

    `keep` takes the live generation as it is; else the content has to be that of generation 0.
    """
    if not found:
        return Refusal("not_visible", "the id is taken by a row that cannot be read yet")
    if keep:
        return next(one.intent for one in found if one.live)
    oldest = found[0]
    return oldest.intent if oldest.fingerprint == draft.fingerprint else args_conflict()


def args_conflict() -> Refusal:
    """Return the refusal for another content under an id that is in use."""
    return Refusal("args_conflict", "the id is stored with another tool or other arguments")


def release_of(seq: int) -> Move:
    """Return the move that lets a new generation go at once where nothing stands in its way."""
    return Move("release", seq, State.HELD, reason="nothing_to_wait_for")


def answer_late_supersede(
    from_generation: int, before: Stored | None, after: Stored | None, asked: str | None
) -> Intent | Refusal:
    """Answer a supersede whose turn has passed: its own earlier success, or a refusal.

    `before` and `after` are generations `from_generation` and the next; `asked` is the fingerprint
    that was given, None for the same call again.
    """
    if before is not None and after is not None:
        wanted = before.fingerprint if asked is None else asked
        if after.fingerprint == wanted:
            return after.intent
    return Refusal("stale_generation", f"generation {from_generation} is not live")


def answer_cancel(live: Row | None, generation: int | None) -> State | Refusal | None:
    """Return what a cancel is answered without any write; None where there is one to try.

    Then `withdrawal_of` comes first, and the recorded cancel where it gives nothing.
    """
    if live is None or generation not in (None, live.generation):
        return Refusal("stale_generation", "a later generation is live")
    if live.state is State.COMMITTED:
        return Refusal("use_compensate", "the effect has happened")
    return live.state if live.state in SETTLED_STATES else None


def withdrawal_of(row: Row, reason: str) -> Move | None:
    """Return the move that cancels a row of which nothing was sent, None where a send may be open.

    Its observation is `records.order(reason)`.
    """
    if row.state not in WITHDRAWABLE_STATES:
        return None
    return Move("withdraw.cancel", row.seq, row.state, fence=row.fence, reason=reason)
