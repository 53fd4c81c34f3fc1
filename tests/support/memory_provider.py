"""A provider that three tools stand for, and that does what each call's arguments say.

The truth about effects stands here, apart from what any bus counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import ackbox
from ackbox import Absent, Found, NotApplied, ToolCall, Tools

KINDS = ("keyless", "keyed", "probed")
BEHAVIOURS = ("ok", "refused", "busy", "lost_before", "lost_after")
"""What a call may meet: it works, is refused, is told to come again, or its answer is lost."""
_SHORT: dict[str, Any] = {
    "timeout_seconds": 2.0, "send_deadline_seconds": 2.0, "settle_seconds": 0.1,
}  # fmt: skip


class Provider:
    """Counts what really happened, by wire key."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._keys: set[str] = set()

    def tools(self) -> Tools:
        """Return the three tools."""
        day = timedelta(days=1)
        return Tools(
            ackbox.tool("keyless", **_SHORT)(self._call("keyless")),
            ackbox.tool("keyed", key=ackbox.idempotent(window=day), **_SHORT)(self._call("keyed")),
            ackbox.tool("probed", probe=ackbox.strong(self.look), **_SHORT)(self._call("probed")),
        )

    def _call(self, kind: str) -> Callable[..., str]:
        def function(call: ToolCall, *, behaviours: list[str]) -> str:
            number = self.calls[call.wire_key]
            self.calls[call.wire_key] += 1
            behaviour = behaviours[number] if number < len(behaviours) else "ok"
            return self._behave(kind, call.wire_key, behaviour)

        return function

    def _behave(self, kind: str, wire_key: str, behaviour: str) -> str:
        if behaviour == "refused":
            raise NotApplied("refused", code="refused")
        if behaviour == "busy":
            raise NotApplied("busy", code="busy", transient=True)
        if behaviour == "lost_before":
            raise ConnectionResetError
        if kind != "keyed" or wire_key not in self._keys:
            self.effects[wire_key] += 1
            self._keys.add(wire_key)
        if behaviour == "lost_after":
            raise TimeoutError
        return f"ref-{wire_key}"

    def look(self, call: ToolCall, *, behaviours: list[str]) -> Found | Absent:
        """Look for the effect, and miss nothing."""
        found = self.effects[call.wire_key]
        return Found(f"ref-{call.wire_key}") if found else Absent()
