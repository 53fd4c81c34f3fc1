"""The send mark: the move that writes it, and what a lost acknowledgement of its COMMIT means.

Pure; may import `commands` and `model`.
"""

from __future__ import annotations

from enum import Enum
from uuid import UUID

from .commands import MarkSend
from .model import Move, State


class AfterLostCommit(Enum):
    """What follows when the row was read again by owner and fence."""

    GO_ON = "go_on"
    """The mark is there."""
    MARK_AGAIN = "mark_again"
    """The row is this attempt's, and unmarked."""
    SEND_NOTHING = "send_nothing"
    """The row is not this attempt's any more, or nobody can say."""


def mark_move(command: MarkSend, owner: UUID) -> Move:
    """Return the move that a process asks for before its effect leaves."""
    claim = command.claim
    return Move(
        "send", claim.seq, State.EXECUTING, fence=claim.fence, owner=owner,
        digest=command.digest, handle=command.handle,
    )  # fmt: skip


def after_lost_commit(state: State | None) -> AfterLostCommit:
    """Return what to do; `state` None where owner and fence found no row.

    Never by the fence alone: another process may have raised it to the same number.
    """
    if state is State.AWAITING_ACK:
        return AfterLostCommit.GO_ON
    return AfterLostCommit.MARK_AGAIN if state is State.EXECUTING else AfterLostCommit.SEND_NOTHING
