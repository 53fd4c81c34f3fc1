"""What the reaper does to an overdue row, and the reaper's pass.

Pure; may import `model`, `guards`, `backoff` and `commands`. The end of a lease proves nothing
about the effect: an unmarked row is queued again, a marked one becomes indeterminate.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .backoff import backoff_seconds
from .commands import FindOverdue, ReapRows, Ring
from .guards import is_wanted
from .model import WITHDRAWABLE_STATES, Move, Row, State, World


def moves_for(row: Row, world: World) -> tuple[Move, ...]:
    """Return the moves to try on a locked row, in order; none where it is not overdue."""
    if row.state in WITHDRAWABLE_STATES and not is_wanted(row, world.now):
        return (_move(row, "withdraw", "deadline" if row.wanted else "not_wanted"),)
    if world.owner_alive and (row.ack_by is None or row.ack_by > world.now):
        return ()
    if row.state is State.EXECUTING:
        return _lapses(row, world)
    if row.state is State.AWAITING_ACK:
        return (_move(row, "expire", _why(world)),)
    return ()


def _lapses(row: Row, world: World) -> tuple[Move, ...]:
    # A living owner that lost the row says nothing about the row: only a death makes it suspect.
    unready = world.owner_alive
    delay = backoff_seconds(row.suspect_claims + 1, 1.0, world.limits) if row.suspect else 0.0
    lapse = _move(row, "lapse", _why(world), delay, unready)
    reason = "poisoned" if row.suspect else "never_ready"
    return (_move(row, "refuse.poisoned", reason), lapse)


def _why(world: World) -> str:
    return "lease_over" if world.owner_alive else "owner_dead"


def _move(
    row: Row, edge: str, reason: str, delay_seconds: float = 0.0, unready: bool = False
) -> Move:
    return Move(
        edge, row.seq, row.state, reason=reason, delay_seconds=delay_seconds, unready=unready
    )


def reap_pass(batch_limit: int, token_limit: int) -> Generator[Any, Any, int]:
    """Fire expiry edges for one bounded batch; returns how many rows moved.

    Lanes that got rows back are rung at once; the relay's poll would find them too.
    """
    seqs: tuple[int, ...] = yield FindOverdue(batch_limit)
    if not seqs:
        return 0
    edges: tuple[tuple[str, str], ...] = yield ReapRows(seqs)
    for lane in sorted({lane for edge, lane in edges if edge == "lapse"}):
        yield Ring(lane, token_limit)
    return len(edges)
