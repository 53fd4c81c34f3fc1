"""Orders the compensation of a step for a planner that knows the step's tool.

Decides nothing itself: the tool's adapter says how, and the outbox decides under the target's
lock whether the effect may be undone. Shell.
"""

from __future__ import annotations

from sqlalchemy import Connection

from ...outbox.compensate import CompensationRequest, OrderedCompensation
from ...outbox.defaults import Limits
from ...outbox.intent import Address, Intent
from ...outbox.model import WITHDRAWABLE_STATES, Actor, Refusal
from ...outbox.shell.compensation_store import UndoTarget, order_compensation, undo_target
from ...outbox.shell.planner_store import intent_of
from ...outbox.shell.rows import RowReader
from ...outbox.shell.statements import Statements
from ...tool_adapters.compensating import plan_compensation
from ...tool_adapters.registry import Tools
from .seam import StepStore, UndoStore


class DatabaseUndos:
    """The compensations of an outbox in Postgres."""

    def __init__(self, statements: Statements, limits: Limits) -> None:
        self._statements = statements
        self._reader = RowReader(statements, limits)

    def undo_target(self, connection: Connection, seq: int) -> UndoTarget | None:
        """Return whose effect a compensation of a row would undo."""
        return undo_target(connection, self._statements, seq)

    def order(
        self, connection: Connection, seq: int, plan: CompensationRequest
    ) -> OrderedCompensation | Refusal:
        """Insert the intent that undoes a row's effect, or say why not."""
        return order_compensation(
            connection, self._statements, self._reader,
            seq=seq, plan=plan, actor=Actor.PLANNER,
        )  # fmt: skip


class Compensator:
    """Compensations asked for by one planner."""

    def __init__(self, store: StepStore, undos: UndoStore) -> None:
        self._store = store
        self._undos = undos

    def order(
        self, connection: Connection, address: Address, tools: Tools
    ) -> Intent | Refusal | None:
        """Return the compensation's intent, or a refusal; None where nothing had been sent.

        In that last case the step itself was called off.
        """
        intent = self._target(connection, address)
        if intent is None:
            return Refusal("not_found")
        found = self._undos.undo_target(connection, intent.seq)
        if found is None:
            return Refusal("not_found")
        if found.state in WITHDRAWABLE_STATES:
            answer = self._store.cancel(connection, address)
            return answer if isinstance(answer, Refusal) else None
        plan = plan_compensation(tools, found.tool, found.version, found.target)
        if isinstance(plan, Refusal):
            return plan
        ordered = self._undos.order(connection, intent.seq, plan)
        return (
            ordered if isinstance(ordered, Refusal) else self._ordered(connection, address, ordered)
        )

    def _target(self, connection: Connection, address: Address) -> Intent | None:
        if address.generation is None:
            return self._store.find(connection, (address.namespace, address.intent_id))
        row = self._store.generation(connection, address, address.generation)
        return intent_of(row, created=False) if row is not None else None

    def _ordered(
        self, connection: Connection, address: Address, ordered: OrderedCompensation
    ) -> Intent | None:
        if ordered.withdrawn or ordered.intent_id is None or ordered.generation is None:
            return None
        undo = Address(address.namespace, ordered.intent_id)
        row = self._store.generation(connection, undo, ordered.generation)
        assert row is not None, "the compensation was inserted or found in this transaction"
        return intent_of(row, created=ordered.created)
