"""One tool in several versions, and async tools: what workers of different deploys have.

Loaded by name from outside any package, so it imports none of its neighbours.
Each function is what `ACKBOX_TOOLS=support_versions:NAME` names. Effects are counted at the fake
provider named by ACKBOX_TEST_TOOL_URL.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from ackbox.outbox.contract import idempotent
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.tool_adapters.registry import Tools
from ackbox.tool_adapters.tool_call import ToolCall

TOOL_URL = "ACKBOX_TEST_TOOL_URL"
VERSIONED = "versioned"
LIMIT_SECONDS = 40.0
SHORT_SECONDS = 2.0
KEYED: dict[str, Any] = {
    "key": idempotent(None), "settle_seconds": 0.3, "park_after_seconds": 3.0,
    "timeout_seconds": LIMIT_SECONDS,
}  # fmt: skip


def charge(call: ToolCall) -> str:
    """Take effect once at the fake provider's endpoint that remembers keys."""
    headers = {"Idempotency-Key": call.wire_key}
    url = f"{os.environ[TOOL_URL]}/tickets"
    answer = httpx2.post(url, json={}, headers=headers, timeout=LIMIT_SECONDS, trust_env=False)
    return str(answer.status_code)


def _take_effect(call: ToolCall, version: int, cents: int) -> dict[str, int]:
    charge(call)
    return {"version": version, "cents": cents}


@tool(VERSIONED, **KEYED)
def first(call: ToolCall, *, euro: int) -> dict[str, int]:
    """Take effect."""
    return _take_effect(call, 1, euro * 100)


def _second(call: ToolCall, *, cents: int) -> dict[str, int]:
    return _take_effect(call, 2, cents)


def _in_cents(args: dict[str, Any], from_version: int) -> Mapping[str, Any]:
    assert from_version == 1
    return {"cents": args["euro"] * 100}


def _unable(args: dict[str, Any], from_version: int) -> Mapping[str, Any]:
    raise LookupError("nobody knows the rate")


second: FunctionTool[..., Any] = tool(VERSIONED, version=2, **KEYED)(_second)
upgrading: FunctionTool[..., Any] = tool(VERSIONED, version=2, upgrade=_in_cents, **KEYED)(_second)
failing: FunctionTool[..., Any] = tool(VERSIONED, version=2, upgrade=_unable, **KEYED)(_second)


@tool("neighbour", timeout_seconds=LIMIT_SECONDS, settle_seconds=0.3)
def neighbour(call: ToolCall) -> str:
    """Take effect, as another tool of the same lane."""
    return charge(call)


async def _post(call: ToolCall) -> int:
    client = call.resource(httpx2.AsyncClient)
    headers = {"Idempotency-Key": call.wire_key}
    answer = await client.post(f"{os.environ[TOOL_URL]}/charges", json={}, headers=headers)
    return int(answer.status_code)


@tool("awaiting", timeout_seconds=LIMIT_SECONDS, settle_seconds=0.3)
async def awaiting(call: ToolCall) -> int:
    """Take effect by the client that all calls share."""
    return await _post(call)


@tool("hasty", timeout_seconds=SHORT_SECONDS, settle_seconds=0.3)
async def hasty(call: ToolCall) -> int:
    """Do the same within a short limit."""
    return await _post(call)


@tool("stubborn", timeout_seconds=SHORT_SECONDS, settle_seconds=0.3)
async def stubborn(call: ToolCall, *, gate: str) -> int:
    """Take effect, then heed no cancellation until the gate is open."""
    status = await _post(call)
    while not os.path.exists(gate):
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue
    return status


async def _client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=LIMIT_SECONDS, trust_env=False) as client:
        yield client


def _closed() -> Any:
    raise ConnectionError("the password is secret")


def old() -> Tools:
    """Return what is deployed first."""
    return Tools(first)


def new() -> Tools:
    """Return what is deployed next: the new version alone, which upgrades old rows."""
    return Tools(upgrading)


def blunt() -> Tools:
    """Return a new version that knows nothing of old rows, and another tool."""
    return Tools(second, neighbour)


def broken() -> Tools:
    """Return a new version whose upgrade raises."""
    return Tools(failing)


def both() -> Tools:
    """Return both versions in one process."""
    return Tools(first, second)


def other() -> Tools:
    """Return another tool alone."""
    return Tools(neighbour)


def asynchronous() -> Tools:
    """Return the async tools with the client that they share."""
    return Tools(awaiting, hasty, stubborn, lifespan=_client)


def unopened() -> Tools:
    """Return tools whose lifespan cannot be opened."""
    return Tools(awaiting, lifespan=_closed)
