"""The in-process tool that the throughput benchmark calls: it does nothing."""

from __future__ import annotations

from typing import Any

from ..tool_adapters.function import tool

LANE = "bench"


@tool("bench.noop", lane=LANE, timeout_seconds=5, settle_seconds=1)
def noop(_call: Any, *, n: int) -> int:
    """Return the argument."""
    return n
