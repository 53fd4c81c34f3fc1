"""How an effect is undone, as its own adapter plans it.

Pure; shared by planners and the outbox's own passes. Whether it may be undone now is decided
by the store, under the target's lock.
"""

from __future__ import annotations

from ..outbox.commands import Target
from ..outbox.compensate import (
    NO_COMPENSATION,
    NO_HANDLE,
    TOOL_UNKNOWN,
    CompensationRequest,
    compensation_request,
)
from ..outbox.errors import InvalidIntent
from ..outbox.model import Refusal
from .contract import CompensationPlan, CompensationTarget, NoHandle
from .registry import Tools, upgraded_args

PLAN_FAILED = "plan_failed"
"""The adapter could not say how its effect is undone: a person's turn."""


def plan_compensation(
    registry: Tools, tool: str, version: int, target: Target
) -> CompensationRequest | Refusal:
    """Return the request that undoes a target, or why its adapter gives none.

    An adapter that raises, or plans arguments that cannot be stored, is a refusal too: it must not
    end the pass that asked.
    """
    adapter = registry.lookup(tool, version) or registry.latest(tool)
    if adapter is None:
        return Refusal(TOOL_UNKNOWN, f"{tool} is not known here")
    if not adapter.contract.compensates:
        return Refusal(NO_COMPENSATION, f"{tool} declares no compensation")
    try:
        args = upgraded_args(adapter, target.args, version)
        plan = adapter.compensation(
            CompensationTarget(target.wire_key, args, target.ref, target.result)
        )
    except Exception as error:  # noqa: BLE001 - a tool author's code: raising is an answer
        return Refusal(PLAN_FAILED, f"compensation of {tool} raised {type(error).__name__}")
    if isinstance(plan, NoHandle):
        return Refusal(NO_HANDLE, "nothing is known by which the effect could be undone")
    return _request(registry, plan)


def _request(registry: Tools, plan: CompensationPlan) -> CompensationRequest | Refusal:
    undoing = registry.latest(plan.tool)
    if undoing is None:
        return Refusal(TOOL_UNKNOWN, f"{plan.tool} is not known here")
    contract = undoing.contract
    try:
        return compensation_request(
            plan.tool, contract.version, contract.lane, plan.args, plan.filled_in,
            ensure_absent=plan.ensure_absent,
        )  # fmt: skip
    except InvalidIntent as error:
        return Refusal(PLAN_FAILED, error.what)
