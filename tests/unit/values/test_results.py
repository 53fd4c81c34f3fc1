"""A tool's result: stored by its annotation, read by it again, and never a doubt of the effect."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pydantic import SecretStr

from ackbox import (
    Accepted,
    Applied,
    Committed,
    CommittedNoResult,
    InFlight,
    NotApplied,
    ToolCall,
    tool,
)
from ackbox.outbox.errors import InvalidIntent
from ackbox.outbox.told import ToldOutcome, with_result
from ackbox.tool_adapters.bounded import bounded
from ackbox.tool_adapters.contract import Call, Returned
from ackbox.tool_adapters.function import FunctionTool

from .shown_types import Customer, Employee, Line

LIMIT = 65_536


@dataclass
class Ticket:
    """A result."""

    id: str
    price: Decimal
    opened: datetime


TICKET = Ticket("T-1", Decimal("0.10"), datetime(2026, 1, 1, tzinfo=UTC))
STORED = {"id": "T-1", "price": "0.10", "opened": "2026-01-01T00:00:00Z"}


@tool("tickets.create")
def create(call: ToolCall) -> Ticket:
    """Return a dataclass."""
    return TICKET


def outcome_of(value: Any, by: FunctionTool = create) -> Any:
    """Return what a worker records for a returned value."""
    call = Call("default", "i", 0, "t", 1, "i", {})
    return bounded(by.classify(call, Returned(value), ()), LIMIT)


def told(result: Any) -> Committed:
    """Return what is told of a stored result."""
    return Committed(intent_id="i", generation=0, ref="T-1", result=result, stored_result=result)


def returning(annotation: Any) -> FunctionTool[..., Any]:
    """Return a tool with another return annotation."""

    def function(call: ToolCall) -> Any: ...

    function.__annotations__["return"] = annotation
    return tool("t")(function)


def test_a_result_comes_back_as_annotated() -> None:
    """Through JSON; `as_dict` has the JSON."""
    outcome = outcome_of(TICKET)
    assert outcome == Applied(result=STORED)
    read = with_result(told(outcome.result), create.intent().read_result)
    assert isinstance(read, Committed)
    assert read.result == TICKET
    assert read.as_dict()["result"] == STORED


@pytest.mark.parametrize(
    ("annotation", "value", "outcome"),
    [
        (Applied[Decimal], Applied("T-1", Decimal("1.0")), Applied("T-1", "1.0")),
        (Accepted[Decimal] | NotApplied, Accepted("T-1", Decimal(1)), Accepted("T-1", "1")),
        (Decimal | NotApplied, Decimal(1), Applied(result="1")),
        (Decimal | NotApplied, NotApplied("full"), NotApplied("full")),
        (Applied, Applied(result=(1, {2})), Applied(result=[1, [2]])),
        (Ticket, Applied("T-1"), Applied("T-1")),
        (None, None, Applied()),
        (Any, TICKET, Applied(result=STORED)),
        (Any, Customer(name="a", mailTo="b"), Applied(result={
            "name": "a", "born": None, "ids": [], "age": 1, "mail_to": "b", "extra": None})),
        ("Missing", TICKET, Applied(result=STORED)),
        (int, "no int", Applied(result="no int")),
    ],
)  # fmt: skip
def test_outcomes_and_untrue_annotations(annotation: Any, value: Any, outcome: Any) -> None:
    """An outcome's result is stored by the same rule; what does not fit, by its value."""
    assert outcome_of(value, returning(annotation)) == outcome


@pytest.mark.parametrize(
    "value",
    [
        "x" * 10_485_760,
        {"deep": "x" * 70_000},
        math.nan,
        2**53 + 1,
        datetime(2026, 1, 1),
        {"token": SecretStr("s3cret")},
        Ticket("T-1", Decimal("NaN"), TICKET.opened),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_kept_is_left_out_with_its_digest(value: Any) -> None:
    """A result of 10 MiB, too: the effect happened, and that is what is recorded."""
    for by in (create, returning(Any)):
        outcome = outcome_of(value, by)
        assert isinstance(outcome, Applied)
        assert outcome.result is None
        assert len(outcome.result_digest or "") == 64


@pytest.mark.parametrize(
    "stored",
    [
        {"id": "T-1", "price": "0.10"},
        {**STORED, "colour": "red"},
        {**STORED, "price": 0.1},
        [],
        "T-1",
    ],
)
def test_a_result_class_that_changed(stored: Any) -> None:
    """Stored by older code: the same word, with the reference and a digest."""
    read = with_result(told(stored), create.results.read)
    assert isinstance(read, CommittedNoResult)
    assert (read.word, read.ref) == ("committed", "T-1")
    assert read.digest
    assert read.reason.startswith("result")


def test_no_result_is_no_ticket() -> None:
    """A person said that it landed: nothing can be read as the type."""
    read = with_result(told(None), create.results.read)
    assert isinstance(read, CommittedNoResult)
    assert (read.digest, read.reason) == (None, "no result is known")
    without: ToldOutcome[None] = with_result(told(None), returning(None).results.read)
    assert isinstance(without, Committed)


def test_a_class_that_raises_anything_is_unreadable() -> None:
    """Whatever its constructor does, the waiting planner is told."""

    @dataclass
    class Broken:
        id: str

        def __post_init__(self) -> None:
            raise KeyboardError

    class KeyboardError(Exception):
        pass

    with pytest.raises(InvalidIntent, match="reading it raised KeyboardError"):
        returning(Broken).results.read({"id": "x"})


def test_other_words_and_untyped_names_are_left_alone() -> None:
    """A reader changes nothing but a committed result."""
    waiting = InFlight(intent_id="i", generation=0)
    assert with_result(waiting, create.results.read) is waiting
    committed = told(STORED)
    assert with_result(committed) is committed


def test_a_subclass_is_stored_by_its_value_and_not_told_as_its_base() -> None:
    """The base type would have dropped a field."""
    made = returning(Customer)
    outcome = outcome_of(Employee(name="a", boss="b"), made)
    assert outcome.result["boss"] == "b"
    assert isinstance(with_result(told(outcome.result), made.results.read), CommittedNoResult)


def test_lists_of_results() -> None:
    """Any annotation that an argument may have."""
    made = returning(list[Line])
    lines = [Line(Decimal("1.0"), {"a"})]
    assert made.results.read(outcome_of(lines, made).result) == lines
