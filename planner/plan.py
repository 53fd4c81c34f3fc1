"""A plan's callbacks: what runs inside a bind, and what runs after it.

Decides only which function belongs to which tool. Pure; may import `tool_adapters` and `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..outbox.errors import ConfigError
from ..outbox.intent import Intent
from ..outbox.told import Told


class BoundView(Protocol):
    """What a callback gets: the intent and what is told of it.

    `session` and `connection` stand in the bind's own transaction, and only `on_bound` has them.
    Commit nothing on them: the consumer commits the bind and what the callback wrote together.
    """

    @property
    def intent(self) -> Intent:
        """The bound intent."""

    @property
    def told(self) -> Told:
        """What the planner is told of it."""

    @property
    def connection(self) -> Any:
        """The SQLAlchemy Connection of the bind's transaction. Raises ConfigError after it."""

    @property
    def session(self) -> Any:
        """A SQLAlchemy Session on that connection. Raises ConfigError after the bind."""


Callback = Callable[[Any], object]
Function = TypeVar("Function", bound=Callback)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions of one plan by tool."""

    on_bound: dict[str, Callback]
    after_bound: dict[str, Callback]


class Plan:
    """Collects the functions that go on with a plan once a step's outcome is bound.

    Each outbox has one plan, and every one of its consumers runs that one: binding happens once,
    whoever does it.
    """

    def __init__(self) -> None:
        self._callbacks = Callbacks({}, {})

    def __repr__(self) -> str:
        tools = sorted({*self._callbacks.on_bound, *self._callbacks.after_bound})
        return f"Plan({', '.join(tools)})"

    @property
    def callbacks(self) -> Callbacks:
        """The registered functions."""
        return self._callbacks

    @property
    def waits(self) -> bool:
        """Whether any function waits for a bind."""
        return bool(self._callbacks.on_bound or self._callbacks.after_bound)

    def on_bound(self, tool: object) -> Callable[[Function], Function]:
        """Register a function to run inside the bind's transaction, one row a transaction.

        What it writes through `bound.session`, the next step included, commits with the bind or
        not at all. If it raises, the bind is undone and tried again later. It must be quick, and
        talk to nothing but that database.
        """
        return _registration(self._callbacks.on_bound, tool, "on_bound")

    def after_bound(self, tool: object) -> Callable[[Function], Function]:
        """Register a function to run after the bind is durable: at least once, never only once."""
        return _registration(self._callbacks.after_bound, tool, "after_bound")


def _registration(
    registered: dict[str, Callback], tool: object, kind: str
) -> Callable[[Function], Function]:
    name = tool_name(tool)

    def register(function: Function) -> Function:
        if name in registered:
            raise ConfigError(
                f"the plan has an {kind} function for {name} already",
                next_step=f"call both from one {kind} function",
            )
        registered[name] = function
        return function

    return register


def tool_name(tool: object) -> str:
    """Return the name of a tool given as text or as the tool itself."""
    if isinstance(tool, str):
        return tool
    contract = getattr(tool, "contract", None)
    name = getattr(contract, "tool", None)
    if not isinstance(name, str):
        raise ConfigError(
            f"{type(tool).__name__} names no tool", next_step="give the tool or its name"
        )
    return name
