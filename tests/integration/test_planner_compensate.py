"""Undoing a step from the planner's side, and telling effects without a reference."""

from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.outbox.errors import Refused
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied
from ackbox.outbox.told import Cancelled, Committed, Failed, InFlight
from ackbox.tool_adapters.contract import CompensationPlan, CompensationTarget
from ackbox.tool_adapters.function import tool
from ackbox.tool_adapters.registry import Tools

from .planner_support import TOOL, World


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def close_ticket(target: CompensationTarget) -> CompensationPlan:
    """Undo a ticket by its reference."""
    return CompensationPlan("tickets.close", {"id": target.ref})


@tool(TOOL, compensation=close_ticket)
def create_ticket(call: Any, *, title: str) -> None:
    """Create a ticket."""


@tool("tickets.close", version=3, lane="slow")
def delete_ticket(call: Any, *, id: str) -> None:
    """Close a ticket."""


TOOLS = Tools(create_ticket, delete_ticket)


def test_compensate_inserts_one_open_compensation(world: World) -> None:
    """It has an id and a key of its own, and a repeated request returns it."""
    done = world.to(State.COMMITTED, world.put())
    undo = world.planner.compensate(done, tools=TOOLS)
    assert isinstance(undo, Intent)
    assert (undo.intent_id, undo.created, undo.lane) == (f"{done.intent_id}~undo0", True, "slow")
    again = world.planner.compensate(("r1", "open"), tools=TOOLS)
    assert isinstance(again, Intent)
    assert (again.seq, again.created) == (undo.seq, False)
    told = world.planner.get(done)
    assert isinstance(told, InFlight)
    assert told.reason == "compensating"
    args = world.one("SELECT args FROM {s}.intent WHERE seq = :seq", seq=undo.seq)
    assert args == {"id": f"T-{done.seq}"}
    with pytest.raises(Refused, match="is_compensation"):
        world.planner.compensate(undo, tools=TOOLS)


def test_what_was_not_sent_is_withdrawn_instead(world: World) -> None:
    """Nothing happened, so there is nothing to undo, and no intent is inserted."""
    intent = world.put()
    assert isinstance(world.planner.compensate(intent, tools=Tools()), Cancelled)
    assert world.one("SELECT count(*) FROM {s}.intent") == 1


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.AWAITING_ACK, "awaiting_ack"),
        (State.FAILED, "nothing_to_undo"),
        (State.INDETERMINATE, "not_quiet"),
    ],
)
def test_what_cannot_be_undone_is_refused(world: World, state: State, code: str) -> None:
    """Each reason has its own code, and nothing is inserted."""
    intent = world.to(state, world.put())
    with pytest.raises(Refused) as error:
        world.planner.compensate(intent, tools=TOOLS)
    assert error.value.code == code
    assert world.one("SELECT count(*) FROM {s}.intent") == 1


def test_compensating_needs_the_tool_and_a_way(world: World) -> None:
    """A tool that this planner does not know, one without an undo, and a step that is not there."""

    @tool(TOOL)
    def without_undo(call: Any, *, title: str) -> None:
        """Create a ticket that nobody can close."""

    done = world.to(State.COMMITTED, world.put())
    for tools, code in (
        (Tools(), "tool_unknown"),
        (Tools(without_undo), "no_compensation"),
    ):
        with pytest.raises(Refused) as error:
            world.planner.compensate(done, tools=tools)
        assert error.value.code == code
    with pytest.raises(Refused, match="not_found"):
        world.planner.compensate(("r1", "nowhere"), tools=TOOLS)


def test_proof_without_a_reference_is_committed_all_the_same(world: World) -> None:
    """An Applied without a handle binds and is told with what is known."""
    intent = world.to(State.AWAITING_ACK, world.put())
    world.acknowledge(intent.seq, Applied())
    told = world.planner.wait(intent, timeout_seconds=10)
    assert isinstance(told, Committed)
    assert (told.ref, told.result) == (None, None)
    failed = world.to(State.FAILED, world.put("other"))
    assert isinstance(world.planner.wait(failed, timeout_seconds=10), Failed)
