"""Which edge an unsent attempt takes: back to the queue, called off, or refused by a limit.

Pure; may import `commands`, `model`, `guards` and `backoff`. Decided on the locked row; never by a
count of claims, since load must not end a row.
"""

from __future__ import annotations

from .backoff import backoff_seconds
from .commands import GiveBack
from .guards import is_wanted
from .model import Move, Row, State, World

UNSERVED = "no_worker_for_tool"
UNREADY_REASONS = frozenset({"prepare_failed", "build_failed", UNSERVED})
STALE_READ_SET = "stale_read_set"


def moves_of(command: GiveBack, row: Row, world: World) -> tuple[Move, ...]:
    """Return `moves_for` a command; none where the row is not this attempt's unmarked one."""
    fence = command.claim.fence
    if row.state is not State.EXECUTING or row.fence != fence:
        return ()
    return moves_for(row, fence, command.reason, command.delay_seconds, world)


def moves_for(
    row: Row, fence: int, reason: str, delay_seconds: float, world: World
) -> tuple[Move, ...]:
    """Return the moves to try in order; the first whose guards hold is taken.

    The kinds in UNREADY_REASONS are bounded by `unready_limit`: the wait grows with the time that
    the row has been unready, and past the limit the row is refused with the reason. A row whose
    tool this worker lacks is free again at once the first time: from then on claims leave it to
    whoever has the tool, if there is anybody.
    """
    if not is_wanted(row, world.now) or reason == STALE_READ_SET:
        return (_move(row, "withdraw.worker", fence, reason),)
    if reason not in UNREADY_REASONS:
        return (_move(row, "give_back", fence, reason, delay_seconds),)
    delay_seconds = max(delay_seconds, _unready_delay(row, reason, world))
    back = _move(row, "give_back", fence, reason, delay_seconds, True)
    if not _past_limit(row, world):
        return (back,)
    limit = "refuse.unserved" if reason == UNSERVED else "refuse.unready"
    return (_move(row, limit, fence, reason), back)


def _move(
    row: Row, edge: str, fence: int, reason: str, delay_seconds: float = 0.0, unready: bool = False
) -> Move:
    return Move(
        edge, row.seq, row.state, fence=fence, owner=row.owner, reason=reason,
        delay_seconds=delay_seconds, unready=unready,
    )  # fmt: skip


def _unready_seconds(row: Row, world: World) -> float:
    if row.unready_since is None:
        return 0.0
    return (world.now - row.unready_since).total_seconds()


def _unready_delay(row: Row, reason: str, world: World) -> float:
    if reason == UNSERVED and row.unready_since is None:
        return 0.0
    bound = backoff_seconds(6, 1.0, world.limits)
    return min(max(_unready_seconds(row, world), world.limits.backoff_base_seconds), bound)


def _past_limit(row: Row, world: World) -> bool:
    return _unready_seconds(row, world) >= world.limits.unready_limit_seconds
