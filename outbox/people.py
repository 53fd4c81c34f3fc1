"""What a person may say about a row, and what it asks for. Every statement is on record.

Pure; may import `model`, `guards`, `transitions` and `outcome`. A statement quotes the fence that
the person saw: if the row has moved on meanwhile, it is refused and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from .model import Move, Refusal, Row, State, World
from .outcome import Applied, NotApplied, Outcome
from .transitions import refusal_of

REASON_MISSING = "reason_missing"
STALE_DIVERGENCE = "stale_divergence"
NO_DIVERGENCE = "no_divergence"
RESOLVE_FIRST = "resolve_first"
GUARD_FAILED = "guard_failed"


@dataclass(frozen=True, slots=True)
class Said:
    """Who speaks about which row, why, and the fence that they saw (None only where held)."""

    seq: int
    actor_name: str
    reason: str
    fence: int | None = None


class Verdict(StrEnum):
    """What a person found out about the effect that a divergence speaks of."""

    STANDS = "stands"
    """It exists, and may stay."""
    UNDONE = "undone"
    """It was undone by hand."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement that was taken: the edge (None for a closed divergence), the row after it."""

    seq: int
    edge: str | None
    state: State
    fence: int

    def as_dict(self) -> dict[str, Any]:
        """Return the answer with stable keys."""
        return {
            "seq": self.seq,
            "edge": self.edge,
            "state": self.state.value,
            "fence": self.fence,
        }


@dataclass(frozen=True, slots=True)
class Denied(Refusal):
    """A statement that was refused; nothing was changed. `next_step` is what to run instead."""

    seconds_left: float | None = None
    next_step: str = field(default="ackbox show")

    def as_dict(self) -> dict[str, Any]:
        """Return the refusal with stable keys."""
        return {
            "code": self.code,
            "detail": self.detail,
            "seconds_left": self.seconds_left,
            "next_step": self.next_step,
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """The move that a statement asks for, and the outcome that is kept for it."""

    move: Move
    outcome: Outcome | None = None


def landed(row: Row, said: Said, ref: str) -> Wish:
    """It landed: the effect exists under `ref`."""
    return Wish(_move(row, said, "acknowledge.person"), Applied(ref))


def not_landed(
    row: Row,
    said: Said,
    *,
    requeue: bool = False,
    may_duplicate: bool = False,
    drop_handle: bool = False,
) -> Wish:
    """It did not land: it failed, or is queued again."""
    if not requeue:
        nothing = NotApplied(said.reason, code="person")
        return Wish(_move(row, said, "refuse.person"), nothing)
    move = Move(
        "clear.person", row.seq, row.state, fence=said.fence, reason=said.reason,
        may_duplicate=may_duplicate, drop_handle=drop_handle,
    )  # fmt: skip
    return Wish(move, NotApplied(said.reason, code="person", transient=True))


def undone(row: Row, said: Said) -> Wish:
    """It was undone by hand."""
    nothing = NotApplied(said.reason, code="undone_by_hand")
    return Wish(_move(row, said, "compensate.person"), nothing)


def release(row: Row, said: Said, *, may_duplicate: bool, divergence: datetime | None) -> Wish:
    """Let a held row go although something stands in its way."""
    move = Move(
        "release.person", row.seq, row.state, fence=said.fence, reason=said.reason,
        may_duplicate=may_duplicate, divergence=divergence,
    )  # fmt: skip
    return Wish(move)


@dataclass(frozen=True, slots=True)
class Relative:
    """A row that shares divergences with the one spoken about: of its step, or undoing one of it.

    `divergence` is the number of its latest divergence event.
    """

    seq: int
    compensates: int | None
    divergence: int | None
    row: Row


def latest_divergence(family: Sequence[Relative]) -> int | None:
    """Return the number of the latest divergence on record: the one that has to be quoted."""
    numbers = [one.divergence for one in family if one.divergence is not None]
    return max(numbers, default=None)


def decide_release(
    row: Row,
    said: Said,
    world: World,
    intent_id: str,
    family: Sequence[Relative],
    *,
    may_duplicate: bool,
    divergence: int | None,
) -> Wish | Denied:
    """Return the release that a person asks for, or why it is denied."""
    if said.fence is not None and said.fence != row.fence:
        return explained(row, Refusal("stale_fence"), world, intent_id)
    quoted = divergence is not None and divergence == latest_divergence(family)
    if divergence is not None and not quoted:
        return stale_divergence(intent_id)
    seen = row.diverged_at if quoted else None
    wish = release(row, said, may_duplicate=may_duplicate, divergence=seen)
    return denial(row, wish, world, intent_id) or wish


def refusal_to_close(
    family: Sequence[Relative], divergence: int, verdict: Verdict, intent_id: str
) -> Denied | None:
    """Return why a divergence may not be closed so, None where it may."""
    show = f"ackbox show {intent_id}"
    if not any(one.row.diverged_at is not None for one in family):
        return Denied(NO_DIVERGENCE, "none is open", None, show)
    if divergence != latest_divergence(family):
        return stale_divergence(intent_id)
    if verdict is Verdict.STANDS and _undid_a_standing_target(family, divergence):
        return Denied(
            RESOLVE_FIRST, "the compensation took effect, its target still stands",
            None, f"ackbox resolve {intent_id} --undone",
        )  # fmt: skip
    return None


def _undid_a_standing_target(family: Sequence[Relative], divergence: int) -> bool:
    spoken_of = next(one for one in family if one.divergence == divergence)
    if spoken_of.compensates is None:
        return False
    target = next(one.row for one in family if one.seq == spoken_of.compensates)
    return spoken_of.row.state is not State.COMMITTED and target.state is State.COMMITTED


def risks(wish: Wish) -> dict[str, Any] | None:
    """Return the risks that a statement takes on, for its event; None where there is none."""
    risks = {"may_duplicate": wish.move.may_duplicate, "drop_handle": wish.move.drop_handle}
    taken = {name: True for name, risked in risks.items() if risked}
    return taken or None


def stale_divergence(intent_id: str) -> Denied:
    """Return the denial of a statement that does not quote the latest divergence."""
    detail = "it is not the latest divergence on record: there is more to see"
    return Denied(STALE_DIVERGENCE, detail, None, f"ackbox show {intent_id}")


def _move(row: Row, said: Said, edge: str) -> Move:
    return Move(edge, row.seq, row.state, fence=said.fence, reason=said.reason)


def denial(row: Row, wish: Wish, world: World, intent_id: str) -> Denied | None:
    """Return why the wish is refused on this row, in words for a person, None where it is not."""
    refused = refusal_of(row, wish.move, world)
    if refused is None:
        return None
    return explained(row, refused, world, intent_id)


def explained(row: Row, refused: Refusal, world: World, intent_id: str) -> Denied:
    """Put a refusal into words: what is in the way, for how long, and what to run next."""
    show = f"ackbox show {intent_id}"
    if refused.code == "not_quiet" and row.quiet_at is not None:
        seconds = max((row.quiet_at - world.now).total_seconds(), 0.0)
        detail = f"a send may still arrive; quiet in {seconds:.0f} s"
        return Denied("not_quiet", detail, seconds, show)
    return Denied(refused.code, _DETAILS.get(refused.code, refused.detail).format(
        state=row.state.value, fence=row.fence
    ), None, _NEXT.get(refused.code, "ackbox show {id}").format(id=intent_id))  # fmt: skip


_DETAILS = {
    "stale_fence": "the row has moved on since you looked; its fence is {fence} now",
    "illegal_transition": "the row is {state}: this statement does not fit it",
    "not_wanted": "it was called off or its deadline has passed; it is not sent again",
    "undo_open": "a compensation of it is open",
    "may_duplicate": "the tool may no longer recognise the key: the effect could happen twice",
    "earlier_generation": "an earlier generation took effect or is not settled",
    "awaiting_approval": "it still waits for an approval",
    "divergence": "it has an open divergence, which a release has to quote",
    "not_owner": "it adopted the effect of an earlier generation; speak about that one",
}
_NEXT = {
    "may_duplicate": "ackbox resolve {id} --not-landed --requeue --may-duplicate",
    "earlier_generation": "ackbox release {id} --may-duplicate",
}
