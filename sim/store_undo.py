"""Answers the pass that undoes several effects, over the in-memory outbox.

May import the pure core of `outbox`.
"""

from __future__ import annotations

from ..outbox.compensate import OrderedCompensation, withdrawal
from ..outbox.model import Actor, Refusal, Row
from ..outbox.records import Write, order
from ..outbox.undo_order import CallOff, FindUndoSteps, OrderUndo, UndoStep
from .store_holds import MemoryCompensations
from .tables import Tables


class MemoryUndos:
    """Looks at the steps to undo, calls off what was not sent, asks for compensations."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def find(self, command: FindUndoSteps) -> tuple[UndoStep, ...]:
        """Return every generation of the named steps as it stands."""
        names = self._tables.names
        seqs = [seq for step in command.steps for seq in names.get((command.namespace, step), ())]
        return tuple(self._step(self._tables.rows[seq]) for seq in seqs)

    def _step(self, row: Row) -> UndoStep:
        rows = self._tables.rows
        undos = self._tables.undos.get(row.seq, ())
        open_undo = None if row.undo is None else rows[row.undo]
        return UndoStep(
            row.seq, self._tables.intents[row.seq].intent_id, row.state, row.settled_at,
            adopted=row.adopted_from is not None, undo_open=open_undo is not None,
            undo_state=rows[undos[-1]].state if undos else None,
            parked=open_undo is not None and open_undo.parked_at is not None,
        )  # fmt: skip

    def call_off(self, command: CallOff) -> bool:
        """Withdraw a row of which nothing was sent."""
        row = self._tables.rows[command.seq]
        move = withdrawal(row)
        if move is None:
            return False
        write = Write(move, Actor.PLANNER, row.contract_id, order("compensate"))
        return bool(self._tables.perform([write]))

    def order(self, command: OrderUndo) -> OrderedCompensation | Refusal:
        """Insert the intent that undoes a row's effect, or say why not."""
        return MemoryCompensations(self._tables).order(command.seq, command.plan, Actor.PLANNER)
