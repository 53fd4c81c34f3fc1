"""Tools of the tests of the bus in memory: without a key, with a key, with a probe."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import ackbox
from ackbox.testing import MemoryBus

DAY = timedelta(days=1)


@dataclass
class Ticket:
    """What the ticket tools return."""

    id: str
    opened_at: datetime


@ackbox.tool("tickets.create")
def create_ticket(call: ackbox.ToolCall, *, title: str, due: datetime) -> Ticket:
    """Open a ticket at a system without keys and without a probe."""
    assert due.tzinfo is UTC
    return Ticket(f"T-{title}", due)


@ackbox.tool("cards.charge", key=ackbox.idempotent(window=DAY))
async def charge(call: ackbox.ToolCall, *, cents: int) -> int:
    """Charge a card at a provider that keeps keys."""
    return cents


def _no_probe_runs(call: ackbox.ToolCall, **_: Any) -> ackbox.Found:
    raise AssertionError("the test has said what the tool knows")


@ackbox.tool("orders.place", probe=ackbox.strong(_no_probe_runs))
def place_order(call: ackbox.ToolCall, *, item: str) -> str:
    """Place an order at a shop whose orders can be looked up."""
    return item


NOON = datetime(2027, 5, 1, 12, tzinfo=UTC)


def put_order(bus: MemoryBus, name: str = "order") -> ackbox.Intent[str]:
    """Put an order for a lamp."""
    return bus.planner.put(place_order.intent(item="lamp"), run_id="r1", step=name)


def put_charge(bus: MemoryBus, name: str = "charge") -> ackbox.Intent[int]:
    """Put a charge of a euro."""
    return bus.planner.put(charge.intent(cents=100), run_id="r1", step=name)
