"""Whether an effect may be undone now, and the intent that undoes it.

Pure; may import `model`, `guards`, `contract` and `intent`. The adapter says how (tool and
arguments); this file says whether, from the target's row under its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .contract import ProbeStrength
from .defaults import DEFAULTS, Limits
from .guards import is_quiet
from .intent import Content, content_of
from .model import WITHDRAWABLE_STATES, Move, Refusal, Row, State, World

AWAITING_ACK = "awaiting_ack"
NOTHING_TO_UNDO = "nothing_to_undo"
ALREADY_COMPENSATED = "already_compensated"
IS_COMPENSATION = "is_compensation"
NOT_QUIET = "not_quiet"
ENSURE_ABSENT_ONLY = "ensure_absent_only"
NO_HANDLE = "no_handle"
STATEMENT = "statement"
NO_COMPENSATION = "no_compensation"
TOOL_UNKNOWN = "tool_unknown"
"""This process does not know the tool; another one may."""


@dataclass(frozen=True, slots=True)
class CompensationRequest:
    """The intent that undoes a target, checked and digested."""

    content: Content
    ensure_absent: bool = False
    """It finds by exact marker, and proves absence by a strong read."""


@dataclass(frozen=True, slots=True)
class OrderedCompensation:
    """The answer to a request to undo.

    `withdrawn`: nothing had been sent, so the target itself was cancelled and there is no intent.
    `created` False: it was open already, and is returned as it is.
    """

    target: int
    seq: int | None = None
    intent_id: str | None = None
    generation: int | None = None
    created: bool = False
    withdrawn: bool = False


def compensation_request(
    tool: str,
    version: int,
    lane: str,
    args: Mapping[str, Any],
    filled_in: Mapping[str, Any] | None = None,
    *,
    ensure_absent: bool = False,
    limits: Limits = DEFAULTS,
) -> CompensationRequest:
    """Check and digest what an adapter planned. Raises InvalidIntent for bad arguments."""
    content = content_of(tool, version, lane, args, filled_in, limits)
    return CompensationRequest(content, ensure_absent)


def withdrawal(row: Row) -> Move | None:
    """Return the move that answers the request for a row of which nothing was sent, else None."""
    if row.state not in WITHDRAWABLE_STATES:
        return None
    return Move("withdraw.cancel", row.seq, row.state, reason="compensate")


def proven_handle(kind: str, ref: str | None) -> str | None:
    """Return the reference by which an effect may be undone, of the observation that settled it.

    Only what the tool itself has said. A person's reference may be a link or hold a typing error:
    deleting by it would find nothing, and "nothing there" would be taken for undone.
    """
    return None if kind == STATEMENT else ref


def refusal_to_undo(
    row: Row, world: World, request: CompensationRequest, ref: str | None
) -> Refusal | None:
    """Return why the effect of `row` may not be undone by `request` now, None where it may.

    `row` owns its effect, has no open compensation and is not withdrawable; `ref` is the reference
    of the observation that settled it.
    """
    if row.state is State.AWAITING_ACK:
        return Refusal(AWAITING_ACK, "a request is on its way; wait for its outcome")
    if row.state in (State.FAILED, State.CANCELLED):
        return Refusal(NOTHING_TO_UNDO, f"it is {row.state.value}: nothing of it took effect")
    if row.state is State.COMPENSATED:
        return Refusal(ALREADY_COMPENSATED, "its effect was undone before")
    if not is_quiet(row, world.now):
        seconds = (row.quiet_at - world.now).total_seconds() if row.quiet_at else 0.0
        return Refusal(NOT_QUIET, f"a send may still arrive; quiet in {seconds:.0f} s")
    if _proves_absence(world, request):
        return None
    if row.state is State.INDETERMINATE or row.diverged_at is not None:
        return Refusal(ENSURE_ABSENT_ONLY, "nobody knows whether the effect exists")
    if ref is None:
        return Refusal(NO_HANDLE, "nothing is known by which the effect could be undone")
    return None


def _proves_absence(world: World, request: CompensationRequest) -> bool:
    """An index that lags must not end an unknown: the target's own declaration has to allow it."""
    declared = world.contract
    strong = declared is not None and declared.probe is ProbeStrength.STRONG
    return request.ensure_absent and strong and declared is not None and declared.ensure_absent
