"""The reaper's and the relay's side of one outbox: overdue rows, ready lanes, housekeeping.

May import the pure core and the store. Any number of reapers and relays may run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import DBAPIError

from ..commands import ReadyLane
from ..defaults import Limits
from ..model import SETTLED_STATES, Actor, Move
from ..reap import moves_for
from ..transitions import EDGE
from .database import Database, LockTimeout
from .moves import Moved, Write, order, perform
from .rows import Locked, RowReader
from .statements import Statements

TIDY_STATEMENTS = 100
"""Most statements of one tidying: with the reaper's limit 20,000 batches every two seconds."""


class ReapStore:
    """Finds and moves overdue rows; finds lanes with ready rows."""

    def __init__(self, database: Database, statements: Statements, limits: Limits) -> None:
        self._database = database
        self._statements = statements
        self._reader = RowReader(statements, limits)

    def ready_lanes(self, row_limit: int) -> tuple[ReadyLane, ...]:
        """Return lanes with claimable rows; each lane's count stops at `row_limit`."""
        rows = self._rows("ready_lanes", {"row_limit": row_limit})
        return tuple(ReadyLane(row["lane"], row["ready"], float(row["oldest"])) for row in rows)

    def find_overdue(self, limit: int) -> tuple[int, ...]:
        """Return at most `limit` seqs that look overdue; nothing is locked."""
        return tuple(row["seq"] for row in self._rows("find_overdue", {"batch_limit": limit}))

    def reap(self, seqs: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Move overdue rows, each judged under its lock; returns (edge, lane) of those moved."""
        if not seqs:
            return ()
        try:
            return self._database.run(lambda connection: self._reap(connection, seqs))
        except (DBAPIError, LockTimeout):
            if len(seqs) == 1:
                # Somebody holds this row right now; the next pass looks at it again.
                return ()
        return tuple(moved for seq in seqs for moved in self.reap([seq]))

    def _reap(self, connection: Connection, seqs: Sequence[int]) -> tuple[tuple[str, str], ...]:
        locked = self._reader.lock(connection, seqs)
        tries = {seq: list(moves_for(found.row, found.world)) for seq, found in locked.items()}
        done: dict[int, Moved] = {}
        while any(tries.values()):
            writes = [_write(moves.pop(0), locked[seq]) for seq, moves in tries.items() if moves]
            done |= perform(connection, self._statements, writes)
            tries = {seq: moves for seq, moves in tries.items() if seq not in done}
        return tuple((moved.edge, locked[seq].row.lane) for seq, moved in sorted(done.items()))

    def tidy(self, limit: int) -> int:
        """Forget closed claim batches and heartbeat rows of long ended processes.

        At most `limit` batches a statement, but as many statements as it takes, up to a bound:
        every claim leaves a batch, and each one left behind makes the next `find_overdue` slower.
        """
        self._rows("retire_workers", {})
        total = 0
        for _ in range(TIDY_STATEMENTS):
            closed = len(self._rows("close_batches", {"batch_limit": limit}))
            total += closed
            if closed < limit:
                break
        return total

    def _rows(self, name: str, values: Mapping[str, Any]) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return self._database.run(
            lambda connection: list(connection.execute(statement, {**limits, **values}).mappings())
        )


def _write(move: Move, found: Locked) -> Write:
    settles = EDGE[move.edge].target in SETTLED_STATES
    seen = order(move.reason or move.edge) if settles else None
    return Write(move, Actor.REAPER, found.row.contract_id, seen)
