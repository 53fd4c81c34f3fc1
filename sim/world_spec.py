"""What a world consists of: tools, processes, limits. A trace's head, and a search's parameters.

May import `outbox.defaults` and `tool_specs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ..outbox.defaults import DEFAULTS, Limits
from .tool_specs import SPEC_FIELDS, ToolSpec


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """A world before anything has happened in it."""

    tools: tuple[ToolSpec, ...]
    workers: tuple[str, ...] = ("w1", "w2")
    reconcilers: tuple[str, ...] = ("r1",)
    limits: Limits = DEFAULTS
    hands_over: bool = True
    """The plan has `after_bound` functions, so that what is bound is handed over."""
    unserved: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tools that a worker does not know, by worker."""
    throttled: bool = False
    """Sends ask the retry budget and the breaker of their tool first."""

    def document(self) -> dict[str, Any]:
        """Return the world as JSON; what has its default value is left out."""
        shown: dict[str, Any] = {
            "tools": {tool.name: _changed(tool, ToolSpec(tool.name)) for tool in self.tools},
            "workers": list(self.workers),
            "reconcilers": list(self.reconcilers),
        }
        limits = _changed(self.limits, DEFAULTS)
        if limits:
            shown["limits"] = limits
        if not self.hands_over:
            shown["hands_over"] = False
        if self.unserved:
            shown["unserved"] = {name: list(tools) for name, tools in self.unserved.items()}
        if self.throttled:
            shown["throttled"] = True
        return shown


def _changed(value: Any, default: Any) -> dict[str, Any]:
    names = [one.name for one in fields(value)]
    pairs = [(name, getattr(value, name)) for name in names if name != "name"]
    return {name: found for name, found in pairs if found != getattr(default, name)}


def world_of(document: Mapping[str, Any]) -> WorldSpec:
    """Return the world that a checked document describes."""
    tools = tuple(ToolSpec(name, **dict(options)) for name, options in document["tools"].items())
    unserved = {name: tuple(tools) for name, tools in document.get("unserved", {}).items()}
    return WorldSpec(
        tools=tools,
        workers=tuple(document.get("workers", ("w1", "w2"))),
        reconcilers=tuple(document.get("reconcilers", ("r1",))),
        limits=replace(DEFAULTS, **document.get("limits", {})),
        hands_over=document.get("hands_over", True),
        unserved=unserved,
        throttled=document.get("throttled", False),
    )


TOOL_OPTIONS: Mapping[str, str] = {
    name: kind for name, kind in SPEC_FIELDS.items() if name != "name"
}
LIMIT_NAMES = frozenset(one.name for one in fields(Limits))
