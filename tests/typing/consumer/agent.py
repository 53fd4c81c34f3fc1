"""A consumer's planner and tools, typed as its author would type them; checked, never run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypedDict, assert_never, assert_type

from ackbox import (
    Accepted,
    Applied,
    AsyncPlanner,
    AwaitingApproval,
    Cancelled,
    Committed,
    CommittedNoResult,
    Compensated,
    Failed,
    FunctionTool,
    InFlight,
    Intent,
    IntentDraft,
    NotApplied,
    Planner,
    Superseded,
    ToldOutcome,
    ToolCall,
    ToolRef,
    UnknownOutcome,
    tool,
)


@dataclass
class Ticket:
    """What the ticket tool returns."""

    id: str


@tool("tickets.create", timeout_seconds=20)
def create_ticket(call: ToolCall, *, title: str, priority: str = "normal") -> Ticket:
    """Open a ticket."""
    return Ticket(f"{call.wire_key}:{title}:{priority}")


@tool("refunds.create")
async def refund(call: ToolCall, *, amount: Decimal, due: datetime) -> Applied[Decimal]:
    """Pay back; the outcome is returned, with the tool's own reference."""
    return Applied(ref=f"{call.wire_key}:{due}", result=amount)


@tool("mails.send")
def send_mail(call: ToolCall, *, to: str) -> Accepted[None] | NotApplied:
    """Send a mail, which the tool finishes later."""
    return Accepted(ref=call.wire_key) if to else NotApplied("no address")


@tool("tickets.find")
def find_ticket(call: ToolCall, *, number: int) -> Ticket | NotApplied:
    """Return a value, or the proof that there is none."""
    return Ticket(str(number)) if number else NotApplied(call.wire_key)


class CloseArgs(TypedDict):
    """The arguments of a tool whose code lives elsewhere."""

    ticket: str


@dataclass
class AssignArgs:
    """The same as a dataclass."""

    ticket: str
    to: str = "nobody"


close_ticket = ToolRef("tickets.close", args=CloseArgs, result=Ticket)
assign_ticket = ToolRef("tickets.assign", args=AssignArgs, result=Ticket, version=2)


def said(told: ToldOutcome[Ticket]) -> str:
    """Name every told outcome; a new one would make this function fail its check."""
    match told:
        case Committed(result=ticket):
            return ticket.id
        case CommittedNoResult(ref=ref):
            return f"done, and its result is not known here ({ref})"
        case InFlight() | AwaitingApproval():
            return "ask again later"
        case Failed() | Cancelled() | Superseded():
            return "nothing happened"
        case UnknownOutcome(next_step=step):
            return f"do not retry: {step}"
        case Compensated():
            return "undone"
        case _:
            assert_never(told)


def run(planner: Planner) -> str:
    """Put and wait, with the types that a checker must see."""
    draft = create_ticket.intent(title="VPN down")
    assert_type(draft, IntentDraft[Ticket])
    intent = planner.put(draft, run_id="r1", step="open")
    assert_type(intent, Intent[Ticket])
    told = planner.wait(intent, timeout_seconds=30)
    assert_type(told, ToldOutcome[Ticket])
    assigned = planner.put(assign_ticket.intent(ticket="T-1", to="me"), run_id="r1", step="assign")
    assert_type(assigned, Intent[Ticket])
    closed = planner.put(close_ticket.intent(ticket="T-1"), run_id="r1", step="close")
    assert_type(closed, Intent[Ticket])
    replaced = planner.supersede(intent, 0, create_ticket.intent(title="VPN up"))
    assert_type(replaced, Intent[Ticket])
    assert_type(find_ticket.intent(number=1), IntentDraft[Ticket])
    written = create_ticket.intent_from_json('{"title": "VPN down"}')
    assert_type(written, IntentDraft[Ticket])
    return said(told)


async def run_async(planner: AsyncPlanner) -> Decimal | None:
    """The same on an event loop, for a tool that returns an outcome."""
    draft = refund.intent(amount=Decimal("0.10"), due=datetime.now().astimezone())
    intent = await planner.put(draft, run_id="r1", step="refund")
    match await planner.wait(intent, timeout_seconds=30):
        case Committed(result=amount):
            assert_type(amount, Decimal)
            return amount
        case told:
            assert told.word
            return None


def named(planner: Planner) -> list[FunctionTool]:
    """Names without a type give what is stored; a tool's type may be left open."""
    mail = planner.put("mails.send", {"to": "a@example.org"}, run_id="r1", step="mail")
    sent = planner.put(send_mail.intent(to="a@example.org"), run_id="r1", step="mail-2")
    assert_type(sent, Intent[None])
    assert planner.get(mail) == planner.get(("r1", "mail"))
    return [create_ticket, refund, send_mail]
