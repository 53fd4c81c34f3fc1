"""The awkward values, each at a tool's own `intent`: refused with the path, or kept exactly."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretBytes, SecretStr, field_validator

from ackbox import BigInt, ToolCall, tool
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import ConfigError, InvalidIntent
from ackbox.outbox.intent import content_of
from ackbox.tool_adapters.contract import Call, IntentDraft
from ackbox.tool_adapters.function import FunctionTool

from .shown_types import Account, Customer, Employee, Line


@tool("tickets.create")
def create(
    call: ToolCall,
    *,
    anything: Any = None,
    amount: Decimal = Decimal("1"),
    when: datetime | None = None,
    labels: Set[str] = frozenset(),
    customer: Customer | None = None,
    account: Account | None = None,
    content: bytes = b"",
    number: int = 0,
    large: BigInt = 0,
    lines: list[Line] | None = None,
) -> None:
    """Take one of each."""


def refused(**args: Any) -> InvalidIntent:
    """Return the refusal of arguments."""
    with pytest.raises(InvalidIntent) as error:
        create.intent(**args)
    return error.value


def received(draft: IntentDraft[Any], by: FunctionTool = create) -> dict[str, Any]:
    """Return what the tool's function gets for a draft."""
    return by.arguments.decode({**draft.args, **draft.defaults})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_in_any(value: float) -> None:
    """Plain pydantic would store null."""
    assert refused(anything={"a": [1, value]}).what.startswith("args.anything.a[1]: NaN and inf")
    model = Customer(name="a", extra={"score": value})
    assert refused(customer=model).what.startswith("args.customer.extra.score: NaN and inf")


def test_decimal_keeps_its_digits() -> None:
    """0.10 stays two digits, in a list of dataclasses too."""
    draft = create.intent(amount=Decimal("0.10"), lines=[Line(Decimal("0.10"))])
    assert draft.args["amount"] == "0.10"
    assert str(received(draft)["amount"]) == "0.10"
    assert str(received(draft)["lines"][0].price) == "0.10"
    error = refused(lines=[Line(Decimal(1)), Line(Decimal(1)), Line(Decimal("NaN"))])
    assert error.what.startswith("args.lines[2].price: NaN")


def test_naive_datetime() -> None:
    """It means another instant on each machine."""
    assert refused(when=datetime(2026, 1, 1)).what.startswith("args.when: a datetime without a ti")
    with pytest.raises(InvalidIntent, match=r"args\.when: a datetime without"):
        create.intent_from_json('{"when": "2026-01-01T00:00:00"}')


def test_set_order() -> None:
    """One stored form, whatever order the process iterates in."""
    names = [f"label-{n}" for n in range(50)]
    drafts = [create.intent(labels=set(names)), create.intent(labels=set(reversed(names)))]
    assert drafts[0].args == drafts[1].args == {"labels": sorted(names)}


def test_subclass_of_a_model() -> None:
    """Its own fields would be dropped."""
    error = refused(customer=Employee(name="a", boss="b"))
    assert error.what.startswith("args.customer: is Employee, and not Customer")


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"account": Account(user="a", password=SecretStr("s3cret"))}, "args.account.password"),
        ({"anything": {"deep": [SecretStr("s3cret")]}}, "args.anything.deep[0]"),
        ({"customer": Customer(name="a", extra=SecretBytes(b"s3cret"))}, "args.customer.extra"),
    ],
)
def test_secrets(args: dict[str, Any], path: str) -> None:
    """Arguments are stored and shown; a secret is the adapter's to look up."""
    error = refused(**args)
    assert error.what.startswith(f"{path}: is a secret")
    assert error.next_step == "name the secret in the adapter"
    assert "s3cret" not in f"{error} {error!r} {error.__cause__!r}"


def test_a_secret_in_the_signature() -> None:
    """Every call of such a tool is refused, with the same step."""

    def log_in(call: ToolCall, *, token: SecretStr) -> None: ...

    made = tool("log.in")(log_in)
    with pytest.raises(InvalidIntent, match=r"args\.token: is a secret") as error:
        made.intent(token=SecretStr("s3cret"))
    assert error.value.next_step == "name the secret in the adapter"
    assert create.intent(account=Account(user="a")).args == {"account": {"user": "a"}}


def test_bytes() -> None:
    """Any bytes, as base64."""
    everything = bytes(range(256))
    assert received(create.intent(content=everything))["content"] == everything


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, -(2**53), 653247040368672768])
def test_numbers_beyond_two_to_the_53(number: int) -> None:
    """Refused as a number, digit-exact as text."""
    assert refused(number=number).what.startswith("args.number: integers beyond 2**53")
    assert refused(anything=[number]).what.startswith("args.anything[0]: integers beyond")
    assert received(create.intent(large=number))["large"] == number
    assert received(create.intent(number=2**53 - 1))["number"] == 2**53 - 1


@pytest.mark.parametrize(("text", "problem"), [("a\x00", "U+0000"), ("\ud83c", "lone surrogate")])
def test_text_that_cannot_be_stored(text: str, problem: str) -> None:
    """Before any SQL, with the path, in a key and in a value."""
    error = refused(customer=Customer(name=text))
    assert error.what.startswith("args.customer.name")
    assert problem in error.what
    assert problem in refused(anything={text: 1}).what


def test_valid_pairs_of_surrogates_are_one_character() -> None:
    """As a model writes an emoji in JSON."""
    draft = create.intent_from_json('{"anything": "\\ud83c\\udf78"}')
    assert draft.args == {"anything": "🍸"}


# Signatures that changed while rows were stored


def first_version(call: ToolCall, *, title: str, line: Line | None = None) -> None:
    """Take what the first deploy took."""


def test_a_default_added_later() -> None:
    """A repeated put is no conflict, and an older row gets the default."""

    def later(call: ToolCall, *, title: str, line: Any = None, priority: str = "normal") -> None:
        """Take one argument more."""

    before, after = tool("t")(first_version), tool("t")(later)
    old, new = before.intent(title="x"), after.intent(title="x")
    assert digest(old) == digest(new)
    stored = {**old.args, **old.defaults}
    after.build(Call("default", "i", 0, "t", 1, "i", stored))
    assert after.arguments.decode(stored) == {"title": "x", "line": None}
    assert new.defaults["priority"] == "normal"


def digest(draft: IntentDraft[Any]) -> str:
    """Return what a repeated put compares."""
    return content_of(
        draft.tool, draft.version, draft.lane, draft.args, draft.defaults, DEFAULTS
    ).fingerprint


def test_a_default_added_to_a_dataclass_later() -> None:
    """The same one level down: what is compared leaves defaults out, what is stored has them."""
    made = tool("t")(first_version)
    draft = made.intent(title="x", line=Line(Decimal("1.0")))
    assert draft.args["line"] == {"price": "1.0"}
    assert draft.defaults["line"] == {"price": "1.0", "tags": [], "parts": [], "note": "none"}
    shorter = {"title": "x", "line": {"price": "1.0"}}
    assert made.arguments.decode(shorter)["line"] == Line(Decimal("1.0"))


def test_a_field_removed_later() -> None:
    """The worker's build fails, and says which one; it is not dropped in silence."""

    def later(
        call: ToolCall, *, line: Line | None = None, customer: Customer | None = None
    ) -> None:
        """Take one argument less."""

    after = tool("t")(later)
    rows: list[tuple[dict[str, Any], str]] = [
        ({"title": "x"}, "args.title: is no argument of this tool"),
        ({"line": {"price": "1", "colour": "red"}}, "args.line.colour: is no field of Line"),
        ({"customer": {"name": "a", "old": 1}}, "args.customer.old: is no field of Customer"),
    ]
    for args, path in rows:
        with pytest.raises(InvalidIntent) as error:
            after.build(Call("default", "i", 0, "t", 1, "i", args))
        assert error.value.what.startswith(path)


# Classes with a will of their own


class Shouting(BaseModel):
    """A model whose validator changes what it is given."""

    title: str

    @field_validator("title")
    @classmethod
    def louder(cls, value: str) -> str:
        """Add a mark."""
        return f"{value}!"


COUNTER = iter(range(1000))


class Minted(BaseModel):
    """A model with a field that is made anew each time, and one that is never shown."""

    id: UUID = Field(default_factory=lambda: UUID(int=next(COUNTER)))
    hidden: str = Field(default="", exclude=True)


@dataclass
class Strict:
    """A dataclass that refuses, with the value in its message."""

    title: str

    def __post_init__(self) -> None:
        if self.title == "s3cret":
            raise ValueError(self.title)


def model_tool(kind: Any) -> FunctionTool[..., Any]:
    """Return a tool that takes one value of a type."""

    def take(call: ToolCall, *, value: Any) -> None: ...

    take.__annotations__["value"] = kind
    return tool("t")(take)


def test_a_validator_that_changes_a_value_again() -> None:
    """Read twice it would be another value."""
    with pytest.raises(InvalidIntent, match=r"args\.value\.title: would not come back"):
        model_tool(Shouting).intent(value=Shouting(title="a"))


def test_a_field_with_a_factory_is_stored_and_not_compared() -> None:
    """The worker sees the value that was made at put; a repeated put is no conflict."""
    made = model_tool(Minted)
    drafts = [made.intent(value=Minted()), made.intent(value=Minted())]
    assert digest(drafts[0]) == digest(drafts[1])
    assert received(drafts[0], made)["value"].id != received(drafts[1], made)["value"].id
    with pytest.raises(InvalidIntent, match=r"args\.value\.hidden: is excluded"):
        made.intent(value=Minted(hidden="x"))


def test_a_class_that_refuses_names_its_path_and_not_its_value() -> None:
    """Its message may hold the value."""
    with pytest.raises(InvalidIntent) as error:
        model_tool(Strict).intent_from_json('{"value": {"title": "s3cret"}}')
    assert error.value.what.startswith("args.value: Strict refuses it (ValueError)")
    assert "s3cret" not in error.value.what


def test_values_that_hold_themselves_are_refused() -> None:
    """With the depth, and without a RecursionError."""
    loop: list[Any] = []
    loop.append(loop)
    assert "nested deeper than 64 levels" in refused(anything=loop).what
    line = Line(Decimal(1))
    line.parts.append(line)
    assert "nested deeper than 64 levels" in refused(lines=[line]).what


@pytest.mark.parametrize("annotation", [object, type(lambda: 0)])
def test_types_without_a_rule(annotation: Any) -> None:
    """`object` is any JSON; what nothing can store is refused where the tool is declared."""
    if annotation is object:
        assert model_tool(object).intent(value=[1]).args == {"value": [1]}
        return
    with pytest.raises(ConfigError, match="takes value, and no rule stores values of function"):
        model_tool(annotation)


def test_annotations_may_be_defined_further_down() -> None:
    """They are read when a value meets them; until then nothing is at fault."""
    made = model_tool("Later")
    with pytest.raises(ConfigError, match="takes value, and name 'Later' is not defined"):
        made.intent(value=1)


def test_annotations_may_name_local_classes() -> None:
    """As a test or a factory of tools writes them."""

    @dataclass
    class Local:
        number: int

    @tool("t")
    def take(call: ToolCall, *, value: Local) -> Local:
        return value

    assert take.intent(value=Local(1)).args == {"value": {"number": 1}}
    assert take.results.read({"number": 2}) == Local(2)
