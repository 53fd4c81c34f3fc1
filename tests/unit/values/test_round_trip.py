"""Every accepted type comes back as annotated, and has the stored form that its page says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from pydantic import Field

from ackbox import BigInt
from ackbox.tool_adapters.values.annotations import rule_for
from ackbox.tool_adapters.values.place import Misfit, Place
from ackbox.tool_adapters.values.round_trip import round_trip

from .shown_types import (
    Address,
    Box,
    Cat,
    Customer,
    Dog,
    Kind,
    Level,
    Line,
    Numbers,
    Open,
    OrderId,
    Owner,
    Point,
    Priority,
    Rights,
)

ID = UUID("0C8a2a8e-3f5d-4b11-9a07-0d5a3f1c2b44")
IDS = "0c8a2a8e-3f5d-4b11-9a07-0d5a3f1c2b44"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=timezone(timedelta(hours=2)))
AUTUMN = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)

ACCEPTED: list[tuple[Any, Any, Any]] = [
    (type(None), None, None),
    (bool, True, True),
    (int, -3, -3),
    (float, 1e-7, 1e-7),
    (float, 3, 3.0),
    (float, -0.0, 0.0),
    (str, "naïve 🍸", "naïve 🍸"),
    (str, Priority.HIGH, "high"),
    (Any, {"a": [1, None, "x", 1.5, True]}, {"a": [1, None, "x", 1.5, True]}),
    (BigInt, 2**70, "1180591620717411303424"),
    (OrderId, 7, 7),
    (Decimal, Decimal("0.10"), "0.10"),
    (Decimal, Decimal("-1E+3"), "-1E+3"),
    (datetime, NOON, "2026-03-01T10:00:00Z"),
    (datetime, NOON.replace(microsecond=5), "2026-03-01T10:00:00.000005Z"),
    (datetime, AUTUMN, "2026-10-25T01:30:00Z"),
    (date, date(2026, 3, 1), "2026-03-01"),
    (timedelta, timedelta(days=1, hours=2, microseconds=7), "P1DT7200.000007S"),
    (timedelta, timedelta(seconds=-1), "-P0DT1S"),
    (timedelta, timedelta.min, "-P999999999DT0S"),
    (UUID, ID, IDS),
    (bytes, b"\x00\xff", "AP8="),
    (bytearray, bytearray(b"ab"), "YWI="),
    (Priority, Priority.LOW, "low"),
    (Level, Level.TWO, 2),
    (Kind, Kind.DAY, "P1DT0S"),
    (Rights, Rights.READ | Rights.WRITE, 3),
    (Literal["a", 1, Priority.LOW], 1, 1),
    (Literal["a", 1, Priority.LOW], Priority.LOW, "low"),
    (list[Decimal], [Decimal("1.0")], ["1.0"]),
    (list, [1, "a"], [1, "a"]),
    (tuple[int, date], (1, date(2026, 3, 1)), [1, "2026-03-01"]),
    (tuple[int, ...], (1, 2), [1, 2]),
    (tuple[()], (), []),
    (set[str], {"b", "a", "c"}, ["a", "b", "c"]),
    (frozenset[int], frozenset({10, 9}), [10, 9]),
    (Set[int], frozenset({3, 1}), [1, 3]),
    (dict[str, date], {"d": date(2026, 3, 1)}, {"d": "2026-03-01"}),
    (dict[int, str], {-1: "a"}, {"-1": "a"}),
    (dict[Priority, UUID], {Priority.LOW: ID}, {"low": IDS}),
    (Mapping[str, int], {"a": 1}, {"a": 1}),
    (Sequence[int], [1, 2], [1, 2]),
    (Sequence[int], (1, 2), [1, 2]),
    (date | None, None, None),
    (int | str | None, "7", "7"),
    (int | float, 5.0, 5.0),
    (date | int, date(2026, 3, 1), "2026-03-01"),
    (Line, Line(Decimal("1.0"), {"b", "a"}), {"price": "1.0", "tags": ["a", "b"], "parts": [],
                                              "note": "none"}),
    (Box[date], Box(date(2026, 3, 1)), {"content": "2026-03-01"}),
    (Point, Point(1, Decimal("2.50")), [1, "2.50"]),
    (Address, {"street": "a"}, {"street": "a"}),
    (Address, {"street": "a", "since": date(2026, 3, 1)}, {"street": "a", "since": "2026-03-01"}),
    (Customer, Customer(name="a"), {"name": "a"}),
    (Customer, Customer(name="a", mailTo="b", ids={ID}), {"name": "a", "mail_to": "b",
                                                         "ids": [IDS]}),
    (Numbers, Numbers([2, 1]), [2, 1]),
    (Open, Open.model_validate({"known": 1, "more": [1]}), {"known": 1, "more": [1]}),
    (Cat | Dog, Dog(), {"kind": "dog"}),
    (Cat | Dog, Dog(lives=3), {"kind": "dog", "lives": 3}),
    (Owner, Owner(pet=Dog(), worth=Decimal("0.10"), photo=b"\xff", number=2**70,
                  known_for=timedelta(days=1)),
     {"pet": {"kind": "dog"}, "worth": "0.10", "photo": "/w==",
      "number": "1180591620717411303424", "known_for": "P1DT0S"}),
    (Annotated[str, Field(min_length=2)], "ab", "ab"),
    (Annotated[int, "said for a reader"], 1, 1),
    (IPv4Address, IPv4Address("10.0.0.1"), "10.0.0.1"),
]  # fmt: skip


# A set shows itself in another order in each process: ids must not, or no two collect alike.
NAMES = [f"{number}-{row[0]}" for number, row in enumerate(ACCEPTED)]


@pytest.mark.parametrize(("annotation", "value", "stored"), ACCEPTED, ids=NAMES)
def test_a_value_comes_back_as_annotated(annotation: Any, value: Any, stored: Any) -> None:
    """Through JSON, with the one stored form of its type."""
    rule = rule_for(annotation)
    found, _ = round_trip(rule, value, Place("args"))
    assert found == stored
    assert type(found) is type(stored)
    back = rule.decode(found, Place("args"))
    assert type(back) is type(value) or (annotation, type(back)) in LOOSER


LOOSER = {(float, float), (str, str), (Sequence[int], list)}
"""Annotations that say less than the value's own type, and what comes back for them."""


def test_datetimes_come_back_in_utc() -> None:
    """The same instant; the zone that it was written in is not kept."""
    rule = rule_for(datetime)
    assert rule.decode("2026-03-01T12:00:00+02:00", Place("args")).tzinfo is UTC


def test_a_model_keeps_which_fields_were_set() -> None:
    """A tool that sends only what was set, as a PATCH does, sends the same."""
    rule = rule_for(Customer)
    given = Customer(name="a", born=None)
    back = rule.decode(rule.encode(given, Place("args")), Place("args"))
    assert back.model_fields_set == {"name", "born"}


REFUSED: list[tuple[Any, Any, str]] = [
    (int, True, "args: is bool, and not int"),
    (int, 1.0, "args: is float, and not int"),
    (bool, 1, "args: is int, and not bool"),
    (float, "1", "args: is str, and not float"),
    (float, 2**60, "args: integers beyond"),
    (str, 1, "args: is int, and not str"),
    (Decimal, 1, "args: is int, and not Decimal"),
    (Decimal, Decimal("sNaN"), "args: NaN and infinities"),
    (date, NOON, "args: is datetime, and not date"),
    (datetime, datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "args: this datetime"),
    (bytes, "AP8=", "args: is str, and not bytes"),
    (Priority, "low", "args: is none of the members of Priority"),
    (Literal["a", 1], True, "args: is none of 'a' | 1"),
    (list[int], (1,), "args: is tuple, and not list"),
    (list[int], [1, "a"], "args[1]: is str"),
    (tuple[int, int], (1,), "args: has 1 items"),
    (tuple[int, ...], [1], "args: is list, and not tuple"),
    (set[int], [1], "args: is list, and not set"),
    (dict[str, int], {1: 1}, "args[key]: is int, and not str"),
    (dict[str, int], {"a": "b"}, "args.a: is str"),
    (date | str, "2026-03-01", "args: would come back as an earlier type"),
    (int | date, "x", "args: is none of int | date"),
    (Line, {"price": "1"}, "args: is dict, and not Line"),
    (Line, Line(Decimal(1), parts=[Line("x")]), "args.parts[0].price: is str"),  # type: ignore[arg-type]
    (Address, {}, "args.street: is required and missing"),
    (Address, {"street": "a", "floor": 1}, "args.floor: is no field of Address"),
    (Annotated[int, Field(gt=0)], 0, "args: Input should be greater than 0"),
    (IPv4Address, "10.0.0.1", "args: would not come back as it was given"),
]


@pytest.mark.parametrize(("annotation", "value", "problem"), REFUSED, ids=str)
def test_a_value_that_would_change_is_refused_with_its_path(
    annotation: Any, value: Any, problem: str
) -> None:
    """Never coerced."""
    with pytest.raises(Misfit) as refused:
        round_trip(rule_for(annotation), value, Place("args"))
    assert refused.value.refusal().what.startswith(problem)


UNREADABLE: list[tuple[Any, Any]] = [
    (Decimal, "1_0"),
    (Decimal, " 1"),
    (Decimal, "NaN"),
    (datetime, "2026-03-01T12:00:00"),
    (datetime, "20260301T120000Z"),
    (datetime, "2026-13-01T12:00:00Z"),
    (date, "20260301"),
    (timedelta, "P1Y"),
    (timedelta, "PT"),
    (timedelta, "P999999999DT86400000S"),
    (UUID, "{0c8a2a8e3f5d4b119a070d5a3f1c2b44}"),
    (bytes, "A"),
    (bytes, "ä"),
    (BigInt, "1.5"),
    (BigInt, 1),
    (Priority, "middle"),
    (Rights, "1"),
    (Literal["a"], ["a"]),
    (list[int], {"0": 1}),
    (set[int], 1),
    (dict[str, int], []),
    (Point, []),
    (Point, [1, "2", 3]),
    (Line, {"price": "1", "gone": 1}),
    (Line, []),
    (Customer, {"name": "a", "gone": 1}),
    (Customer, {"born": None}),
    (Customer, {"name": "a", "age": 0}),
    (None, 0),
]


@pytest.mark.parametrize(("annotation", "stored"), UNREADABLE, ids=str)
def test_stored_json_of_another_type_is_refused(annotation: Any, stored: Any) -> None:
    """Written by older code, or by a model; by the same pattern on every Python."""
    with pytest.raises(Misfit):
        rule_for(annotation).decode(stored, Place("args"))
