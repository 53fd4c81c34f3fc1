"""The consumer's side of one outbox: bind settled rows, hand bound ones over.

Each statement is in the caller's transaction. May import the pure core and SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..commands import BindAnswer
from ..intent import Intent
from ..model import Actor
from .moves import Note, note
from .statements import Statements

SETTLED = "settled"
BOUND = "bound"


@dataclass(frozen=True, slots=True)
class TakenBatch:
    """A leased batch: its rows in order, each with its tool. `tries` guards the lease."""

    batch_id: int
    rows: tuple[tuple[int, str], ...]
    tries: int


class BindStore:
    """Batches of settled and of bound rows."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def due(self, connection: Connection, stage: str, limit: int) -> tuple[int, ...]:
        """Return batches of a stage whose turn has come."""
        rows = self._execute(connection, "settled_due", {"stage": stage, "limit": limit})
        return tuple(row["batch_id"] for row in rows)

    def bind_together(self, connection: Connection, batch_ids: Collection[int]) -> BindAnswer:
        """Bind whole batches in one statement and forget them."""
        values = {"batch_ids": sorted(batch_ids)}
        rows = self._execute(connection, "bind_together", values)
        rest = [row["seq"] for row in rows if not row["bound"]]
        return self._answer(connection, len(rows) - len(rest), 0, rest)

    def bind_rows(
        self, connection: Connection, seqs: Sequence[int], hand_over: Collection[str]
    ) -> BindAnswer:
        """Bind rows; those whose tool is in `hand_over` get a batch of the next stage."""
        if not seqs:
            return BindAnswer()
        values = {"seqs": sorted(seqs), "tools": sorted(hand_over)}
        rows = self._execute(connection, "bind_rows", values)
        bound = {row["seq"] for row in rows}
        waiting = sum(row["waiting"] for row in rows)
        rest = [seq for seq in seqs if seq not in bound]
        return self._answer(connection, len(bound), waiting, rest)

    def _answer(
        self, connection: Connection, bound: int, waiting: int, rest: Sequence[int]
    ) -> BindAnswer:
        answers: list[str] = []
        if rest:
            rows = self._execute(connection, "bind_rest", {"seqs": sorted(rest)})
            answers = [row["answer"] for row in rows]
        return BindAnswer(
            bound=bound,
            stale=answers.count("stale"),
            duplicate=answers.count("duplicate"),
            waiting=waiting,
        )

    def take(
        self, connection: Connection, batch_id: int, stage: str, lease_seconds: float
    ) -> TakenBatch | None:
        """Lease a batch that is due; None where another consumer has it."""
        values = {"batch_id": batch_id, "stage": stage, "lease_seconds": lease_seconds}
        rows = self._execute(connection, "take_batch", values)
        if not rows:
            return None
        pairs = tuple((row["seq"], row["tool"]) for row in rows)
        return TakenBatch(batch_id, pairs, rows[0]["tries"])

    def finish(
        self, connection: Connection, batch: TakenBatch, left: Sequence[int], delay_seconds: float
    ) -> None:
        """Forget a leased batch, or keep what is left of it for later."""
        values = {
            "batch_id": batch.batch_id,
            "tries": batch.tries,
            "seqs": sorted(left),
            "delay_seconds": delay_seconds,
        }
        self._execute(connection, "finish_batch", values)

    def lease_hand_over(self, connection: Connection, seq: int, lease_seconds: float) -> bool:
        """Take the right to hand one row over; False where it is done or somebody is at it."""
        values = {"seq": seq, "lease_seconds": lease_seconds}
        return bool(self._execute(connection, "lease_hand_over", values))

    def handed(self, connection: Connection, seq: int) -> bool:
        """Record that the row's callback returned; False where that was on record."""
        return bool(self._execute(connection, "handed", {"seq": seq}))

    def hand_later(self, connection: Connection, seq: int) -> None:
        """Let go of a row whose callback raised."""
        self._execute(connection, "hand_later", {"seq": seq})

    def hand_unheard(
        self, connection: Connection, seqs: Collection[int], kept_seconds: float
    ) -> None:
        """End the wait of rows that were bound so long ago and that nothing waits for."""
        values = {"seqs": sorted(seqs), "kept_seconds": kept_seconds}
        self._execute(connection, "hand_unheard", values)

    def unhanded(self, connection: Connection, seqs: Collection[int]) -> list[int]:
        """Return which of the rows still wait for their hand-over."""
        rows = self._execute(connection, "unhanded", {"seqs": sorted(seqs)})
        return [row["seq"] for row in rows]

    def intents(self, connection: Connection, seqs: Collection[int]) -> dict[int, Intent]:
        """Return the rows as intents."""
        rows = self._execute(connection, "bound_rows", {"seqs": sorted(seqs)})
        return {row["seq"]: Intent(**row) for row in rows}

    def still_bound(self, connection: Connection, seq: int) -> bool:
        """Return whether this transaction still holds the row's bind.

        Raises SQLAlchemyError where a statement failed in it, or somebody ended it.
        """
        return bool(self._execute(connection, "still_bound", {"seq": seq}))

    def note_failed(self, connection: Connection, seq: int, name: str, error_type: str) -> None:
        """Put a callback that raised on record, without its message: that may hold anything."""
        note(connection, self._statements, [Note(seq, name, Actor.OUTBOX, reason=error_type)])

    def _execute(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())
