"""Unions and generic classes that hold themselves: each part is looked at few times.

Trees of expressions are what models write; every type of such a union begins like the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar

import pytest
from pydantic import BaseModel

from ackbox import ToolCall, tool
from ackbox.tool_adapters.function import FunctionTool

DEPTH = 10
V = TypeVar("V")


@dataclass
class Leaf:
    """Counts how often it is made."""

    made: ClassVar[int] = 0
    name: str

    def __post_init__(self) -> None:
        Leaf.made += 1


@dataclass
class And:
    """One expression."""

    left: And | Or | Leaf
    kind: Literal["and"] = "and"


@dataclass
class Or:
    """The other one, which the first is tried for before."""

    left: And | Or | Leaf
    kind: Literal["or"] = "or"


class AllOf(TypedDict):
    """The same as a typed dict."""

    left: AllOf | AnyOf | Leaf
    kind: Literal["all"]


class AnyOf(TypedDict):
    """The other one."""

    left: AllOf | AnyOf | Leaf
    kind: Literal["any"]


class Every(BaseModel):
    """The same as a model."""

    left: Every | Some | Leaf
    kind: Literal["every"] = "every"


class Some(BaseModel):
    """The other one."""

    left: Every | Some | Leaf
    kind: Literal["some"] = "some"


@dataclass
class Node(Generic[V]):
    """A generic class that holds itself."""

    value: V
    following: Node[V] | None = None


@dataclass
class Pair(Generic[V]):
    """A generic class whose variable goes on to other types."""

    items: list[V]
    node: Node[V]


def taking(annotation: Any) -> FunctionTool[..., Any]:
    """Return a tool with one argument of that type."""

    def function(call: ToolCall, value: Any) -> None:
        """Do nothing."""

    function.__annotations__ = {"value": annotation}
    return tool("nested")(function)


def received(annotation: Any, value: Any) -> Any:
    """Return what the function gets."""
    adapter = taking(annotation)
    draft = adapter.intent(value=value)
    return adapter.arguments.decode({**draft.args, **draft.defaults})["value"]


@pytest.mark.parametrize(
    ("annotation", "around"),
    [
        (And | Or, Or),
        (AllOf | AnyOf, lambda inner: {"left": inner, "kind": "any"}),
        (Every | Some, lambda inner: Some(left=inner)),
    ],
)
def test_the_work_does_not_double_at_each_level(annotation: Any, around: Any) -> None:
    """Else a tree of twelve levels took seconds, and one of thirty hung planner and worker."""
    value: Any = Leaf("a")
    for _ in range(DEPTH):
        value = around(value)
    before = Leaf.made
    assert received(annotation, value) == value
    assert Leaf.made - before <= 4 * DEPTH


def test_generic_classes_inside_generic_classes() -> None:
    """A variable stands for what the outermost class was given."""
    assert received(Node[int], Node(1, Node(2))) == Node(1, Node(2))
    assert received(Pair[int], Pair([1], Node(2))) == Pair([1], Node(2))
