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
from ..outbox.model import Refusal
from .contract import CompensationTarget, NoHandle
from .registry import Registry


def plan_compensation(
    registry: Registry, tool: str, version: int, target: Target
) -> CompensationRequest | Refusal:
    """Return the request that undoes a target. Raises InvalidIntent for an adapter's bad args."""
    adapter = registry.lookup(tool, version)
    if adapter is None:
        return Refusal(TOOL_UNKNOWN, f"{tool} version {version} is not known here")
    if not adapter.contract.compensates:
        return Refusal(NO_COMPENSATION, f"{tool} declares no compensation")
    seen = CompensationTarget(target.wire_key, target.args, target.ref, target.result)
    plan = adapter.compensation(seen)
    if isinstance(plan, NoHandle):
        return Refusal(NO_HANDLE, "nothing is known by which the effect could be undone")
    undoing = registry.latest(plan.tool)
    if undoing is None:
        return Refusal(TOOL_UNKNOWN, f"{plan.tool} is not known here")
    contract = undoing.contract
    return compensation_request(
        plan.tool, contract.version, contract.lane, plan.args, ensure_absent=plan.ensure_absent
    )
