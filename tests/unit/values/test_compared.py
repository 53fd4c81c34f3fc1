"""What a caller gave is compared by its stored form, never by what its class calls equal.

Two steps that would do something else must not have one fingerprint: the second put would
silently return the first intent.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from datetime import time
from decimal import Decimal
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel, Field, field_validator
from pydantic_core import PydanticCustomError

from ackbox import ToolCall, tool
from ackbox.outbox.errors import InvalidIntent
from ackbox.outbox.intent import content_of
from ackbox.tool_adapters.function import FunctionTool

SECRET = "".join(("hunt", "er2"))
"""Put together, so that a source line in a traceback does not hold it."""


@dataclass
class Money:
    """A class that says of one field that it does not count."""

    amount: int
    note: str = field(default="", compare=False)


@dataclass
class Order:
    """Defaults that Python calls equal to other values."""

    money: Money = field(default_factory=lambda: Money(1))
    price: Decimal = Decimal("1.0")
    urgent: int | bool = 1


class Box(BaseModel):
    """A model whose defaults can be changed in place."""

    items: list[int] = []
    labels: list[str] = Field(default_factory=list)


class Cat(BaseModel):
    """One animal."""

    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    """The other one."""

    kind: Literal["dog"] = "dog"


class Card(BaseModel):
    """A model whose validator quotes the value under a type of its own."""

    number: str

    @field_validator("number")
    @classmethod
    def _refuse(cls, value: str) -> str:
        raise PydanticCustomError("bad_card", "card {number} is bad", {"number": value})


@dataclass
class Checked:
    """A dataclass whose check quotes the value."""

    number: str

    def __post_init__(self) -> None:
        raise ValueError(self.number)


def taking(annotation: Any) -> FunctionTool[..., Any]:
    """Return a tool with one argument of that type."""

    def function(call: ToolCall, value: Any) -> None:
        """Do nothing."""

    function.__annotations__ = {"value": annotation}
    return tool("compared")(function)


def fingerprint(annotation: Any, value: Any) -> str:
    """Return the fingerprint of a value as an argument."""
    draft = taking(annotation).intent(value=value)
    return content_of(draft.tool, 1, draft.lane, draft.args, draft.defaults).fingerprint


def changed(**items: Any) -> Box:
    """Return a model with lists that were added to, which no assignment shows."""
    box = Box()
    for name, item in items.items():
        getattr(box, name).append(item)
    return box


@pytest.mark.parametrize(
    ("annotation", "one", "other"),
    [
        (Order, Order(Money(1, "a")), Order(Money(1, "b"))),
        (Order, Order(price=Decimal("1.00")), Order()),
        (Order, Order(urgent=True), Order()),
        (Box, changed(items=1), changed(items=2)),
        (Box, changed(items=1), Box()),
        (Box, changed(labels="a"), Box()),
        (dict[str, int] | Money, {"amount": 1}, Money(1)),
        (Cat | Dog, Cat(), Dog()),
    ],
)
def test_other_values_have_other_fingerprints(annotation: Any, one: Any, other: Any) -> None:
    """Although Python, or their class, calls them equal."""
    assert fingerprint(annotation, one) != fingerprint(annotation, other)


def test_what_equals_its_default_is_not_compared() -> None:
    """So that a default that is written out is no conflict."""
    assert fingerprint(Order, Order(Money(1), Decimal("1.0"), 1)) == fingerprint(Order, Order())


@pytest.mark.parametrize("value", [time(1, 2, tzinfo=ZoneInfo("Europe/Berlin")), time(1, fold=1)])
def test_a_time_of_day_that_would_lose_something_is_refused(value: time) -> None:
    """A named zone has no offset without a date, so that Python calls such a time naive."""
    with pytest.raises(InvalidIntent, match=r"args\.value: would not come back"):
        taking(time).intent(value=value)


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (Card, {"number": SECRET}),
        (Checked, {"number": SECRET}),
        (Annotated[str, Field(max_length=2)], SECRET),
    ],
)
def test_no_traceback_of_a_refusal_shows_the_value(annotation: Any, given: Any) -> None:
    """Neither the refusal nor what stands behind it in a traceback, which services log."""
    with pytest.raises(InvalidIntent) as error:
        taking(annotation).arguments.decode({"value": given})
    assert SECRET not in "".join(traceback.format_exception(error.value))
