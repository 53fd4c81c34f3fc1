"""What one recorded outcome does to its row: the edge to take and the facts to keep.

Pure; may import `commands`, `model`, `outcome`, `guards`, `contract` and `records`. Both stores
call `decide` on a locked row and then perform what it returns; the guards of the edge are checked
once more by the statement.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .backoff import backoff_seconds
from .commands import Recorded
from .contract import KeyKind
from .guards import is_wanted
from .model import Move, Row, State, World
from .outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from .records import Moved

_EVIDENCE_OPENS = frozenset(
    {State.HELD, State.QUEUED, State.EXECUTING, State.FAILED, State.CANCELLED}
)
_OPEN = frozenset(
    {State.HELD, State.QUEUED, State.EXECUTING, State.AWAITING_ACK, State.INDETERMINATE}
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with a recorded outcome. `move` None: it is kept, and moves nothing."""

    move: Move | None = None
    distrust: bool = False
    """A protocol miss: the intent's key is not trusted any more."""
    cut_off: bool = False
    """One more distinct cut-off success answer was seen."""
    unresolve: bool = False
    """A success answer of an older send is on record while a later one is open."""
    diverge: bool = False
    """The outcome contradicts what the row says: alert, and hold the step."""
    quiet: bool = False
    """The attempt that holds the fence is over although no edge applies."""
    code: str = "recorded"


def decide(
    row: Row, outcome: Outcome, fence: int | None, world: World, known_refs: Collection[str] = ()
) -> Decision:
    """Return what `outcome`, reported under `fence`, does to `row` as it stands under its lock.

    `fence` None is evidence from outside that can quote no attempt. `known_refs` are the effect
    references already recorded for the row and for its compensation: meeting one again is
    agreement, never a divergence.
    """
    if isinstance(outcome, Applied | Accepted):
        return _applied(row, outcome, fence, world, known_refs)
    if isinstance(outcome, NotApplied):
        return _not_applied(row, outcome, fence, world)
    return _unknown(row, outcome, fence)


def recorded(decision: Decision, moved: Moved | None, before: State) -> Recorded:
    """Return the reply to an attempt; `moved` None where no edge was taken from `before`."""
    if moved is not None:
        return Recorded(moved.edge, moved.state, decision.code)
    code = decision.code if decision.move is None else "guard_failed"
    return Recorded(None, before, code)


def _move(row: Row, edge: str, fence: int | None, **said: object) -> Move:
    return Move(edge=edge, seq=row.seq, from_state=row.state, fence=fence, **said)  # type: ignore[arg-type]


def _applied(
    row: Row,
    outcome: Applied | Accepted,
    fence: int | None,
    world: World,
    known_refs: Collection[str],
) -> Decision:
    if row.state in _OPEN:
        own_claim = row.state is State.EXECUTING and fence == row.fence
        if row.sends == 0 or own_claim:
            # An effect without a mark: nothing in the protocol can have caused it.
            return Decision(diverge=True, code="no_mark")
        return Decision(_move(row, "acknowledge", fence, decisive=True, reason="applied"))
    if outcome.ref is not None and outcome.ref in known_refs:
        return Decision(code="agrees", quiet=fence == row.fence)
    if row.state is State.COMMITTED and not _second_effect(row, outcome, fence, world):
        return Decision(code="agrees", quiet=fence == row.fence)
    return Decision(diverge=True, code="divergence")


def _second_effect(row: Row, outcome: Applied | Accepted, fence: int | None, world: World) -> bool:
    """Return whether an Applied for a committed row speaks of another effect than the known one."""
    if outcome.ref is not None:
        return True
    keyless = world.contract is None or world.contract.key.kind is KeyKind.NONE
    return keyless and fence is not None and fence != row.fence


def _not_applied(row: Row, outcome: NotApplied, fence: int | None, world: World) -> Decision:
    if fence != row.fence:
        return Decision(code="stale_fence")
    if row.state is State.EXECUTING:
        return Decision(_refuse(row, outcome, fence)) if not outcome.transient else Decision()
    if row.state not in (State.AWAITING_ACK, State.INDETERMINATE):
        return Decision(code="already_settled")
    if row.unresolved and not outcome.key_store:
        return _no_word_for_earlier_sends(row, fence, outcome)
    if outcome.transient and _may_send_again(row, world):
        edge = "retry" if row.state is State.AWAITING_ACK else "clear.worker"
        return Decision(
            _move(
                row, edge, fence, transient=True, key_store=outcome.key_store, decisive=True,
                delay_seconds=_retry_delay(row, outcome, world), reason=outcome.code,
            )
        )  # fmt: skip
    return Decision(_refuse(row, outcome, fence))


def _retry_delay(row: Row, outcome: NotApplied, world: World) -> float:
    """The tool's own wish counts, up to the cap: it may not keep a row away for ever."""
    own = backoff_seconds(row.sends, world.share, world.limits)
    asked = min(outcome.retry_after_seconds or 0.0, 12 * world.limits.backoff_cap_seconds)
    return max(own, asked)


def _refuse(row: Row, outcome: NotApplied, fence: int | None) -> Move:
    return _move(
        row, "refuse", fence, final=not outcome.transient, transient=outcome.transient,
        key_store=outcome.key_store, decisive=True, reason=outcome.code,
    )  # fmt: skip


def _no_word_for_earlier_sends(row: Row, fence: int | None, outcome: NotApplied) -> Decision:
    """A refusal of the resend proves nothing about the sends before it."""
    if row.state is State.AWAITING_ACK:
        return Decision(_move(row, "lose", fence, decisive=True, reason=outcome.code))
    return Decision(quiet=True, code="unresolved")


def _may_send_again(row: Row, world: World) -> bool:
    contract = world.contract
    left = contract is not None and row.sends < contract.max_sends
    return left and is_wanted(row, world.now) and row.undo is None


def _unknown(row: Row, outcome: Unknown, fence: int | None) -> Decision:
    cut_off = outcome.answer is Answer.CUT_OFF
    distrust = outcome.answer is Answer.COMPLETE or (cut_off and row.cut_offs >= 1)
    own = fence == row.fence
    if own and row.state is State.AWAITING_ACK:
        move = _move(row, "lose", fence, reason=outcome.code)
        return Decision(move, distrust=distrust, cut_off=cut_off)
    success = outcome.answer is not Answer.NONE
    still_open = row.state in (State.AWAITING_ACK, State.INDETERMINATE)
    return Decision(
        distrust=distrust,
        cut_off=cut_off,
        unresolve=success and still_open and not own,
        diverge=success and row.state in _EVIDENCE_OPENS,
        code="recorded" if own else "stale_fence",
    )
