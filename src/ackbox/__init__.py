"""ackbox: a transactional outbox worker system for AI-agent tool calls.

The public names, each imported at its first use: `import ackbox` by itself imports nothing else,
opens nothing and starts nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .outbox.contract import Echo, Key, client_id, idempotent
    from .outbox.defaults import Limits
    from .outbox.errors import (
        AckboxError,
        ConfigError,
        InvalidIntent,
        ProtocolViolation,
        Refused,
        StoreUnavailable,
    )
    from .outbox.identity import mint_intent_id
    from .outbox.intent import Draft, Intent
    from .outbox.outcome import Accepted, Applied, NotApplied, Unknown
    from .outbox.told import (
        AlsoHappened,
        AwaitingApproval,
        Cancelled,
        CancelRecorded,
        Committed,
        CommittedNoResult,
        Compensated,
        Failed,
        InFlight,
        Superseded,
        Told,
        ToldOutcome,
        UnknownOutcome,
    )
    from .planner.bound import AsyncBound, Bound
    from .planner.options import PutOptions
    from .planner.plan import Plan
    from .planner.shell.async_planner import AsyncPlanner
    from .planner.shell.planner import Planner
    from .tool_adapters.contract import (
        Absent,
        CompensationPlan,
        CompensationTarget,
        Found,
        Inconclusive,
        IntentDraft,
        NoHandle,
    )
    from .tool_adapters.function import FunctionTool, strong, tool, weak
    from .tool_adapters.registry import Tools
    from .tool_adapters.tool_call import ToolCall
    from .tool_adapters.tool_ref import ToolRef
    from .tool_adapters.values.annotations import BigInt

_PLACES = {
    "outbox.contract": "Echo Key client_id idempotent",
    "outbox.defaults": "Limits",
    "outbox.errors": (
        "AckboxError ConfigError InvalidIntent ProtocolViolation Refused StoreUnavailable"
    ),
    "outbox.identity": "mint_intent_id",
    "outbox.intent": "Draft Intent",
    "outbox.outcome": "Accepted Applied NotApplied Unknown",
    "outbox.told": (
        "AlsoHappened AwaitingApproval CancelRecorded Cancelled Committed CommittedNoResult"
        " Compensated Failed InFlight Superseded Told ToldOutcome UnknownOutcome"
    ),
    "planner.bound": "AsyncBound Bound",
    "planner.options": "PutOptions",
    "planner.plan": "Plan",
    "planner.shell.async_planner": "AsyncPlanner",
    "planner.shell.planner": "Planner",
    "tool_adapters.contract": (
        "Absent CompensationPlan CompensationTarget Found Inconclusive IntentDraft NoHandle"
    ),
    "tool_adapters.function": "FunctionTool strong tool weak",
    "tool_adapters.registry": "Tools",
    "tool_adapters.tool_call": "ToolCall",
    "tool_adapters.tool_ref": "ToolRef",
    "tool_adapters.values.annotations": "BigInt",
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}

__all__ = [
    "Absent",
    "Accepted",
    "AckboxError",
    "AlsoHappened",
    "Applied",
    "AsyncBound",
    "AsyncPlanner",
    "AwaitingApproval",
    "BigInt",
    "Bound",
    "CancelRecorded",
    "Cancelled",
    "Committed",
    "CommittedNoResult",
    "Compensated",
    "CompensationPlan",
    "CompensationTarget",
    "ConfigError",
    "Draft",
    "Echo",
    "Failed",
    "Found",
    "FunctionTool",
    "InFlight",
    "Inconclusive",
    "Intent",
    "IntentDraft",
    "InvalidIntent",
    "Key",
    "Limits",
    "NoHandle",
    "NotApplied",
    "Plan",
    "Planner",
    "ProtocolViolation",
    "PutOptions",
    "Refused",
    "StoreUnavailable",
    "Superseded",
    "Told",
    "ToldOutcome",
    "ToolCall",
    "ToolRef",
    "Tools",
    "Unknown",
    "UnknownOutcome",
    "client_id",
    "idempotent",
    "mint_intent_id",
    "strong",
    "tool",
    "weak",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for an Any

    def __getattr__(name: str) -> Any:
        """Import a public name at its first use."""
        place = _PLACE_OF.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{place}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *__all__})
