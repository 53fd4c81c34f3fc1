"""Typed arguments and results through Postgres: what a planner gives is what the function gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from ackbox import (
    Applied,
    BigInt,
    Committed,
    CommittedNoResult,
    Intent,
    Planner,
    Refused,
    ToolCall,
    ToolRef,
    tool,
)
from ackbox.outbox.shell.database import Database

from ..support.process import Process
from ..support.waiting import wait_until


@dataclass
class Line:
    """Part of an argument."""

    price: Decimal
    tags: set[str] = field(default_factory=set)


@dataclass
class Ticket:
    """A result."""

    id: str
    opened: datetime


@dataclass
class LaterTicket:
    """The same result after a deploy that renamed a field."""

    number: str
    opened: datetime


OPENED = datetime(2026, 3, 1, 10, 0, 0, 7, tzinfo=UTC)
GIVEN: dict[str, Any] = {
    "lines": [Line(Decimal("0.10"), {"b", "a"}), Line(Decimal("1E+3"))],
    "due": date(2026, 3, 1),
    "took": timedelta(microseconds=1),
    "ids": frozenset({UUID(int=2), UUID(int=1)}),
    "raw": bytes(range(256)),
    "large": 2**70,
    "ratio": 1e-7,
    "whole": 5.0,
    "extra": {"ﬃ": [1, 2.5, None, "🍸"]},
}


@dataclass
class Stack:
    """A worker's parts and a planner on one database."""

    process: Process
    planner: Planner

    def run(self, intent: Intent[Any]) -> None:
        """Let the worker run what is queued until the intent is committed."""
        self.process.drain()
        wait_until(lambda: self.planner.get(intent).word == "committed")  # type: ignore[union-attr]


Start = Callable[..., Stack]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Give a function that starts a worker with tools, and a planner beside it."""
    started: list[Stack] = []

    def begin(*tools: Any) -> Stack:
        planner = Planner(Database(database_url))
        started.append(Stack(Process(database_url, list(tools)), planner))
        return started[-1]

    yield begin
    for one in started:
        one.process.close()
        one.planner.close()


def test_arguments_and_results_come_back_as_annotated(start: Start) -> None:
    """Through jsonb and back, and typed for whoever put it, again after a restart too."""
    received: list[dict[str, Any]] = []

    @tool("orders.create")
    def order(
        call: ToolCall,
        *,
        lines: list[Line],
        due: date,
        took: timedelta,
        ids: frozenset[UUID],
        raw: bytes,
        large: BigInt,
        ratio: float,
        whole: float,
        extra: Any,
        priority: str = "normal",
    ) -> Ticket:
        received.append({**locals()})
        return Ticket("T-1", OPENED)

    stack = start(order)
    intent = stack.planner.put(order.intent(**GIVEN), run_id="r1", step="order")
    stack.run(intent)
    (got,) = received
    assert {name: got[name] for name in GIVEN} == GIVEN
    assert str(got["lines"][0].price) == "0.10"
    assert type(got["whole"]) is float
    assert got["priority"] == "normal"
    again = stack.planner.put(order.intent(**GIVEN), run_id="r1", step="order")
    assert not again.created
    for name in (intent, again):
        told = stack.planner.wait(name, timeout_seconds=5)
        assert isinstance(told, Committed)
        assert told.result == Ticket("T-1", OPENED)
    untyped = stack.planner.get(("r1", "order"))
    assert isinstance(untyped, Committed)
    assert untyped.result == {"id": "T-1", "opened": "2026-03-01T10:00:00.000007Z"}


def test_a_result_that_is_too_large_never_doubts_the_effect(start: Start) -> None:
    """10 MiB: committed with the reference and a digest, after one effect."""
    effects: list[str] = []

    @tool("reports.write")
    def write(call: ToolCall) -> Applied[str]:
        effects.append(call.wire_key)
        return Applied("R-1", "x" * 10_485_760)

    stack = start(write)
    intent = stack.planner.put(write.intent(), run_id="r1", step="write")
    stack.run(intent)
    told = stack.planner.wait(intent, timeout_seconds=5)
    assert isinstance(told, CommittedNoResult)
    assert (told.word, told.ref, len(told.digest or "")) == ("committed", "R-1", 64)
    assert len(effects) == 1


def test_a_result_class_that_changed_meets_an_older_result(start: Start) -> None:
    """The planner's new code cannot read it, and is told of the effect all the same."""

    @tool("tickets.create")
    def create(call: ToolCall) -> Ticket:
        return Ticket("T-1", OPENED)

    stack = start(create)
    intent = stack.planner.put(create.intent(), run_id="r1", step="open")
    stack.run(intent)
    later = ToolRef("tickets.create", result=LaterTicket)
    again = stack.planner.put(later.intent(), run_id="r1", step="open")
    told = stack.planner.wait(again, timeout_seconds=5)
    assert isinstance(told, CommittedNoResult)
    assert told.digest
    assert told.reason.startswith("result.id: is no field of LaterTicket")


def test_a_default_added_later_is_no_conflict_and_is_filled_in(start: Start) -> None:
    """The row of the older planner runs in the newer worker; other arguments are a conflict."""
    received: list[str] = []

    @tool("tickets.create")
    def before(call: ToolCall, *, title: str) -> None: ...

    @tool("tickets.create")
    def after(call: ToolCall, *, title: str, priority: str = "normal") -> None:
        received.append(f"{title} {priority}")

    stack = start(after)
    old = stack.planner.put(before.intent(title="x"), run_id="r1", step="open")
    new = stack.planner.put(after.intent(title="x"), run_id="r1", step="open")
    assert (old.seq, new.created) == (new.seq, False)
    with pytest.raises(Refused, match="args_conflict"):
        stack.planner.put(after.intent(title="x", priority="high"), run_id="r1", step="open")
    stack.run(old)
    assert received == ["x normal"]


def test_a_field_removed_later_fails_the_build_and_sends_nothing(start: Start) -> None:
    """Given back, so that a worker which still knows the field may run it."""

    @tool("tickets.create")
    def before(call: ToolCall, *, title: str, colour: str) -> None: ...

    @tool("tickets.create")
    def after(call: ToolCall, *, title: str) -> None:
        raise AssertionError

    stack = start(after)
    stack.planner.put(before.intent(title="x", colour="red"), run_id="r1", step="open")
    stack.process.drain()
    given_back = "SELECT count(*) FROM {schema}.event WHERE name = 'give_back'"
    wait_until(lambda: stack.process.outbox.sql(given_back)[0]["count"] == 1)
    assert stack.process.states() == {"queued": 1}
    sends = stack.process.outbox.sql("SELECT sends, unready_since FROM {schema}.intent_state")
    assert sends[0]["sends"] == 0
    assert sends[0]["unready_since"] is not None
