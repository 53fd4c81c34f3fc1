"""Callbacks registered for a tool see its results as its annotation says."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest

from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied
from ackbox.outbox.told import Committed, CommittedNoResult
from ackbox.planner.bound import AsyncBound, Bound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.tool_adapters.tool_ref import ToolRef

from .planner_support import TOOL, World


@dataclass
class Ticket:
    """What the tool of these tests returns."""

    number: int
    opened: date


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def settle(world: World, result: Any) -> None:
    """Put a step and commit it with a result."""
    intent = world.to(State.AWAITING_ACK, world.put())
    assert world.acknowledge(intent.seq, Applied(ref="T-1", result=result))


def test_a_result_comes_back_as_the_tools_annotation_says(world: World) -> None:
    """In on_bound and after_bound, sync and async; a tool given by name leaves it JSON."""
    plan, seen = Plan(), list[Any]()
    create = ToolRef(TOOL, result=Ticket)

    @plan.on_bound(create)
    async def advance(bound: AsyncBound[Ticket]) -> None:
        if isinstance(bound.told, Committed):
            seen.append(bound.told.result)

    @plan.after_bound(TOOL)
    def hand_over(bound: Bound) -> None:
        if isinstance(bound.told, Committed):
            seen.append(bound.told.result)

    settle(world, {"number": 7, "opened": "2026-01-02"})
    results = ResultConsumer(world.database, plan)
    results.run_once()
    results.close()
    assert seen == [Ticket(7, date(2026, 1, 2)), {"number": 7, "opened": "2026-01-02"}]


def test_a_result_that_cannot_be_read_any_more_binds_all_the_same(world: World) -> None:
    """The effect is not doubted for its result: it is told as not kept, and nothing fails."""
    plan, seen = Plan(), list[Any]()

    @plan.on_bound(ToolRef(TOOL, result=Ticket))
    def advance(bound: Bound[Ticket]) -> None:
        seen.append(bound.told)

    settle(world, {"no": "ticket"})
    assert ResultConsumer(world.database, plan).run_once().bound == 1
    assert [type(told) for told in seen] == [CommittedNoResult]
    assert seen[0].ref == "T-1"
