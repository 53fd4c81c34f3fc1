"""Orders the compensation of a step for a planner that knows the step's tool.

Decides how the tool's adapter is asked; whether an effect may be undone is decided under the
target's lock in the outbox. Shell.
"""

from __future__ import annotations

from sqlalchemy import Connection

from ...outbox.commands import Target
from ...outbox.compensate import (
    NO_HANDLE,
    TOOL_UNKNOWN,
    CompensationRequest,
    OrderedCompensation,
    compensation_request,
)
from ...outbox.defaults import Limits
from ...outbox.intent import Address, Intent
from ...outbox.model import WITHDRAWABLE_STATES, Actor, Refusal
from ...outbox.shell.compensation_store import order_compensation, undo_target
from ...outbox.shell.planner_store import PlannerStore, intent_of
from ...outbox.shell.rows import RowReader
from ...outbox.shell.statements import Statements
from ...tool_adapters.contract import CompensationTarget, NoHandle
from ...tool_adapters.registry import Registry


class Compensator:
    """Compensations asked for by one planner."""

    def __init__(self, statements: Statements, limits: Limits, store: PlannerStore) -> None:
        self._statements = statements
        self._reader = RowReader(statements, limits)
        self._limits = limits
        self._store = store

    def order(
        self, connection: Connection, address: Address, tools: Registry
    ) -> Intent | Refusal | None:
        """Return the compensation's intent, or a refusal; None where nothing had been sent.

        In that last case the step itself was called off.
        """
        intent = self._target(connection, address)
        if intent is None:
            return Refusal("not_found")
        found = undo_target(connection, self._statements, intent.seq)
        if found is None:
            return Refusal("not_found")
        if found.state in WITHDRAWABLE_STATES:
            answer = self._store.cancel(connection, address)
            return answer if isinstance(answer, Refusal) else None
        plan = _plan(tools, found.tool, found.version, found.target, self._limits)
        if isinstance(plan, Refusal):
            return plan
        ordered = order_compensation(
            connection, self._statements, self._reader,
            seq=intent.seq, plan=plan, actor=Actor.PLANNER,
        )  # fmt: skip
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


def _plan(
    tools: Registry, tool: str, version: int, target: Target, limits: Limits
) -> CompensationRequest | Refusal:
    """Ask the tool's adapter how the effect is undone."""
    adapter = tools.lookup(tool, version) or tools.latest(tool)
    if adapter is None:
        return Refusal(TOOL_UNKNOWN, f"this planner does not know {tool}")
    plan = adapter.compensation(
        CompensationTarget(target.wire_key, target.args, target.ref, target.result)
    )
    if isinstance(plan, NoHandle):
        return Refusal(NO_HANDLE, f"{tool} knows no way to undo this effect")
    undo = tools.latest(plan.tool)
    undo_version, lane = (undo.contract.version, undo.contract.lane) if undo else (1, "default")
    return compensation_request(
        plan.tool, undo_version, lane, plan.args,
        ensure_absent=plan.ensure_absent, limits=limits,
    )  # fmt: skip
