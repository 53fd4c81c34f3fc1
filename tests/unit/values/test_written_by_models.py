"""What a model writes: schemas that say what is read, strict reading, and references to tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel, Field

from ackbox import BigInt, ToolCall, ToolRef, tool
from ackbox.outbox.errors import ConfigError, InvalidIntent
from ackbox.tool_adapters.function import FunctionTool

from .shown_types import Account, Address, Box, Customer, Line, Owner, Point, Priority

ORIGIN = Point(1)


@tool("orders.create", version=3, lane="slow")
def order(
    call: ToolCall,
    *,
    customer: Customer,
    due: date,
    total: Decimal = Decimal("0.00"),
    number: BigInt = 7,
    lines: list[Line] | None = None,
    place: Point = ORIGIN,
    kept: dict[str, set[Priority]] | None = None,
    short: Annotated[str, Field(max_length=3, description="a code")] = "",
    boxes: tuple[Box[int], Box[str]] | None = None,
) -> Line:
    """Take one of each kind that a schema describes."""
    return Line(total)


WRITTEN = {"customer": {"name": "a", "mail_to": "b"}, "due": "2026-03-01"}


class OrderArgs(TypedDict):
    """The arguments of the same tool as a typed dict."""

    customer: Customer
    due: date
    total: NotRequired[Decimal]


@dataclass
class OrderData:
    """The same as a dataclass."""

    customer: Customer
    due: date
    total: Decimal = Decimal("0.00")


class OrderModel(BaseModel):
    """The same as a pydantic model."""

    customer: Customer
    due: date
    total: Decimal = Decimal("0.00")


REFERENCES: list[ToolRef[..., Any]] = [
    ToolRef("orders.create", args=args, result=Line, version=3, lane="slow")
    for args in (OrderArgs, OrderData, OrderModel)
]


def test_arguments_in_a_model_s_json_are_those_of_a_call() -> None:
    """Read by the same rules, so that both are the same call."""
    written = order.intent_from_json(json.dumps(WRITTEN))
    assert written == order.intent(customer=Customer(name="a", mailTo="b"), due=date(2026, 3, 1))
    assert written.args == WRITTEN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"due": "a", "due": "b"}', "args.due: the key is given twice"),
        ('{"lines": [{"price": "1"}, {"price": "1", "price": "2"}]}', "args.lines[1].price: the k"),
        ('{"total": NaN}', "args.total: NaN and infinities"),
        ('{"total": 1e999}', "args.total: NaN and infinities"),
        ('{"number": 9007199254740993}', "args.number: integers beyond"),
        (f'{{"number": {"9" * 5000}}}', "args.number: integers beyond"),
        ('{"short": "\\ud83c"}', "args.short: text holds a lone surrogate"),
        ('{"short": "\\u0000"}', "args.short: text holds U+0000"),
        ("[1]", "args: is no JSON object"),
        ("{", "args: is no JSON"),
        ('{"due": "2026-03-01",}', "args: is no JSON"),
        ('{"kept": ' + "[" * 100_000 + "]" * 100_000 + "}", "args: is nested too deeply"),
        (json.dumps({**WRITTEN, "total": 0.1}), "args.total: is float, and not text: decimal"),
        (json.dumps({**WRITTEN, "due": "March"}), "args.due: is no ISO 8601 date"),
        (json.dumps({**WRITTEN, "short": "long"}), "args.short: String should have at most 3"),
        (json.dumps({**WRITTEN, "customer": {"name": "a", "age": 0}}), "args.customer.age: Input"),
        (json.dumps({**WRITTEN, "colour": 1}), "args.colour: is no argument"),
        (json.dumps({"customer": {"name": "a"}}), "args.due: is required and missing"),
    ],
    ids=lambda text: text[:40],
)
def test_what_a_model_wrote_wrongly_is_refused_with_its_path(text: str, problem: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidIntent) as error:
        order.intent_from_json(text)
    assert error.value.what.startswith(problem)


def test_a_schema_says_what_is_read() -> None:
    """Text where JSON would lose something, no other keys, and the defaults as they are stored."""
    schema = order.json_schema()
    properties = schema["properties"]
    assert schema["required"] == ["customer", "due"]
    assert schema["additionalProperties"] is False
    assert properties["total"] == {"type": "string", "format": "decimal", "default": "0.00"}
    assert properties["number"] == {"type": "string", "pattern": r"^-?\d+$", "default": "7"}
    assert properties["place"]["default"] == [1, "0.0"]
    assert properties["place"]["minItems"] == 1
    assert properties["short"] == {
        "type": "string", "maxLength": 3, "description": "a code", "default": "",
    }  # fmt: skip
    line = schema["$defs"]["Line"]
    assert line["properties"]["parts"]["items"] == {"$ref": "#/$defs/Line"}
    assert line["required"] == ["price"]
    boxes = properties["boxes"]["anyOf"][0]["prefixItems"]
    assert boxes == [{"$ref": "#/$defs/Box"}, {"$ref": "#/$defs/Box2"}]
    assert schema["$defs"]["Box2"]["properties"]["content"] == {"type": "string"}
    customer = schema["$defs"]["Customer"]
    assert customer["properties"]["age"]["description"] == "in years"
    assert {"mail_to", "name"} < customer["properties"].keys()
    assert json.loads(json.dumps(schema)) == schema


def test_the_schema_of_a_model_says_our_stored_form() -> None:
    """Where pydantic's own JSON differs from it."""

    def take(call: ToolCall, *, owner: Owner) -> None: ...

    schema = tool("t")(take).json_schema()
    properties = schema["$defs"]["Owner"]["properties"]
    shapes = {name: (one.get("type"), one.get("format")) for name, one in properties.items()}
    assert shapes["worth"] == ("string", "decimal")
    assert shapes["known_for"] == ("string", "duration")
    assert shapes["number"] == ("string", None)
    assert properties["photo"]["contentEncoding"] == "base64"
    assert properties["pet"]["oneOf"] == [
        {"$ref": "#/$defs/Owner.Cat"},
        {"$ref": "#/$defs/Owner.Dog"},
    ]
    assert schema["$defs"]["Owner.Dog"]["additionalProperties"] is False
    assert schema["$defs"]["Owner"]["required"] == ["pet"]
    defaults = {name: one["default"] for name, one in properties.items() if "default" in one}
    assert "s3cret" not in repr(ToolRef("t", args=Account).json_schema())
    assert defaults == {"worth": "0.0", "photo": "", "known_for": "P0DT0S", "number": "0"}


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one._args.__name__)
def test_a_reference_makes_the_same_call_as_the_tool(reference: ToolRef[..., Any]) -> None:
    """The same fingerprint, whichever way the arguments are declared."""
    given: dict[str, Any] = {"customer": Customer(name="a", mailTo="b"), "due": date(2026, 3, 1)}
    draft, own = reference.intent(**given), order.intent(**given)
    assert (draft.tool, draft.version, draft.lane, draft.args) == (
        own.tool, own.version, own.lane, own.args,
    )  # fmt: skip
    assert reference.intent_from_json(json.dumps(WRITTEN)) == draft
    more = reference.intent(**given, total=Decimal("0.10"))
    assert more.args["total"] == "0.10"
    assert draft.read_result is not None
    assert draft.read_result({"price": "1"}) == Line(Decimal(1))
    schema = reference.json_schema()
    assert schema["properties"].keys() == {"customer", "due", "total"}
    assert (schema["title"], schema["additionalProperties"]) == ("orders.create", False)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one._args.__name__)
@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({"customer": Customer(name="a")}, "args"),
        ({"customer": Customer(name="a"), "due": date(2026, 3, 1), "colour": 1}, "args"),
        ({"customer": Customer(name="a"), "due": datetime(2026, 3, 1, 12)}, "args.due"),
        ({"customer": Customer(name="a\x00"), "due": date(2026, 3, 1)}, "args.customer.name"),
    ],
)
def test_a_reference_refuses_with_the_path(
    reference: ToolRef[..., Any], args: dict[str, Any], path: str
) -> None:
    """Before anything is stored, as the tool itself would."""
    if reference is REFERENCES[2] and path == "args.customer.name":
        path = "args.customer"
    with pytest.raises(InvalidIntent) as error:
        reference.intent(**args)
    assert error.value.what.startswith(path)


def test_references_without_types() -> None:
    """Any JSON by name; nothing is known of the result."""
    reference = ToolRef("mails.send")
    draft = reference.intent(to="a@example.org", tags=["x"])
    assert draft.args == {"to": "a@example.org", "tags": ["x"]}
    assert draft.read_result is not None
    assert draft.read_result({"any": 1}) == {"any": 1}
    with pytest.raises(InvalidIntent, match=r"args\.when: date is not a JSON type"):
        reference.intent(when=date(2026, 3, 1))
    for wrong in (int, list[int], Point):
        with pytest.raises(ConfigError, match="no dataclass, typed dict or pydantic model"):
            ToolRef("mails.send", args=wrong)
    with pytest.raises(InvalidIntent):
        ToolRef("not a name")


def test_a_schema_alone_is_no_reference() -> None:
    """A model's provider wants an object at the top."""

    def take(call: ToolCall, *, address: Address, **others: Any) -> None: ...

    made: FunctionTool[..., Any] = tool("t")(take)
    schema = made.json_schema()
    assert schema["additionalProperties"] is True
    assert schema["properties"] == {"address": {"$ref": "#/$defs/Address"}}
    assert ToolRef("t", args=Address).json_schema() == {
        "type": "object",
        "title": "t",
        "properties": {
            "street": {"type": "string"},
            "since": {"type": "string", "format": "date"},
        },
        "required": ["street"],
        "additionalProperties": False,
    }
    recursive = ToolRef("t", args=Line).json_schema()
    assert recursive["type"] == "object"
    assert recursive["properties"]["parts"]["items"] == {"$ref": "#/$defs/Line"}
    assert recursive["$defs"]["Line"]["required"] == ["price"]
