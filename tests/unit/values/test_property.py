"""Property: any value of any accepted type comes back from JSON text as it was given.

Types are drawn as trees; the stored form passes through JSON text, as a database returns it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, Union
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ackbox import BigInt
from ackbox.outbox.identity import fingerprint
from ackbox.tool_adapters.values.annotations import rule_for
from ackbox.tool_adapters.values.differences import check_same
from ackbox.tool_adapters.values.place import Misfit, Place
from ackbox.tool_adapters.values.round_trip import round_trip

from .shown_types import Address, Box, Customer, Kind, Level, Line, Point, Priority, Rights

TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12
)  # fmt: skip
SAFE = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBER = st.floats(-1e15, 1e15, allow_nan=False)
AWARE = st.datetimes(
    dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=st.timezones(), allow_imaginary=True
)
DECIMALS = st.decimals(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | SAFE | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
LINES = st.recursive(
    st.builds(Line, DECIMALS, st.sets(TEXT, max_size=3)),
    lambda inner: st.builds(Line, DECIMALS, st.sets(TEXT, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=4,
)
CUSTOMERS = st.builds(
    Customer, name=TEXT, born=st.none() | st.dates(), ids=st.sets(st.uuids(), max_size=3),
    age=st.integers(1, 99), mailTo=TEXT, extra=JSON,
)  # fmt: skip
ADDRESSES = st.fixed_dictionaries({"street": TEXT}, optional={"since": st.dates()})

Typed = tuple[Any, SearchStrategy[Any]]
LEAVES: list[Typed] = [
    (None, st.none()),
    (bool, st.booleans()),
    (int, SAFE),
    (float, NUMBER),
    (str, TEXT),
    (Any, JSON),
    (BigInt, st.integers()),
    (Decimal, DECIMALS),
    (dt.datetime, AWARE),
    (dt.date, st.dates()),
    (dt.timedelta, st.timedeltas()),
    (UUID, st.uuids()),
    (bytes, st.binary(max_size=12)),
    (Priority, st.sampled_from(Priority)),
    (Level, st.sampled_from(Level)),
    (Kind, st.sampled_from(Kind)),
    (Rights, st.sampled_from([Rights.READ, Rights.WRITE, Rights.READ | Rights.WRITE])),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),
    (Line, LINES),
    (Point, st.builds(Point, SAFE, DECIMALS)),
    (Address, ADDRESSES),
    (Customer, CUSTOMERS),
]
HASHABLE = [one for one in LEAVES if one[0] in (int, str, dt.date, UUID, bytes, Priority, Decimal)]
KEYS = [one for one in HASHABLE if one[0] is not Decimal]


def _wrapped(typed: Typed) -> list[Typed]:
    kind, values = typed
    few = st.lists(values, max_size=3)
    return [
        (list[kind], few),  # type: ignore[valid-type]
        (tuple[kind, ...], few.map(tuple)),  # type: ignore[valid-type]
        (tuple[kind, int], st.tuples(values, SAFE)),  # type: ignore[valid-type]
        (Union[kind, None], st.none() | values),  # noqa: UP007
        (Box[kind], st.builds(Box, values)),  # type: ignore[valid-type]
    ]


@st.composite
def typed_values(draw: DrawFn) -> tuple[Any, Any]:
    """Draw a type and a value of it."""
    typed: Typed = draw(st.sampled_from(LEAVES))
    for _ in range(draw(st.integers(0, 2))):
        typed = draw(st.sampled_from(_wrapped(typed)))
    shape = draw(st.sampled_from(["plain", "set", "dict"]))
    if shape == "set":
        kind, values = draw(st.sampled_from(HASHABLE))
        typed = (set[kind], st.sets(values, max_size=4))  # type: ignore[valid-type]
    if shape == "dict":
        key, keys = draw(st.sampled_from(KEYS))
        typed = (dict[key, typed[0]], st.dictionaries(keys, typed[1], max_size=3))  # type: ignore[valid-type]
    return typed[0], draw(typed[1])


THOROUGH = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@THOROUGH
@given(typed_values())
def test_every_accepted_value_survives_json(typed: tuple[Any, Any]) -> None:
    """Same value, same stored form once more, same fingerprint."""
    kind, value = typed
    rule, place = rule_for(kind), Place("args")
    stored, _ = round_trip(rule, value, place)
    back = rule.decode(json.loads(json.dumps(stored)), place)
    check_same(value, back, place)
    again, _ = round_trip(rule, back, place)
    assert again == stored
    assert marked(stored) == marked(again)


def marked(stored: Any) -> str:
    """Return the fingerprint of a value as an argument."""
    return fingerprint("t", {"value": stored}, 2**20)


@THOROUGH
@given(st.sampled_from(LEAVES), JSON)
def test_foreign_json_is_read_or_refused(typed: Typed, stored: Any) -> None:
    """Nothing but a misfit is raised, and what is read can be stored again."""
    rule, place = rule_for(typed[0]), Place("args")
    accepted(lambda: round_trip(rule, rule.decode(stored, place), place))


def accepted(attempt: Callable[[], object]) -> bool:
    """Return whether an attempt ends without a misfit; other errors go on."""
    try:
        attempt()
    except Misfit:
        return False
    return True
