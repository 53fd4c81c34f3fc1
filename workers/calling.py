"""What an adapter may see of a claimed row.

Pure; may import `outbox` and `tool_adapters` values.
"""

from __future__ import annotations

from ..outbox.commands import Claimed
from ..tool_adapters.contract import Call, CompensationTarget


def call_of(claim: Claimed) -> Call:
    """Return what an adapter may see of a claimed row."""
    return Call(
        namespace=claim.namespace, intent_id=claim.intent_id, generation=claim.generation,
        tool=claim.tool, version=claim.version, wire_key=claim.wire_key, args=claim.args,
        sends=claim.sends, handle=claim.handle, traceparent=claim.traceparent,
        compensates=_target_of(claim),
    )  # fmt: skip


def _target_of(claim: Claimed) -> CompensationTarget | None:
    target = claim.target
    if target is None:
        return None
    return CompensationTarget(target.wire_key, target.args, target.ref, target.result)
