"""A plan's callbacks: what runs inside a bind, after it, and where nothing binds.

Decides only which function belongs to which tool and word. Pure; may import `tool_adapters` and
`outbox`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..outbox.errors import ConfigError
from ..outbox.on_told import check_word

Callback = Callable[[Any], object]
Function = TypeVar("Function", bound=Callback)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions of one plan: by tool, and of on_told by word and tool (None: any tool)."""

    on_bound: dict[str, Callback]
    after_bound: dict[str, Callback]
    on_told: dict[tuple[str, str | None], Callback]

    @property
    def words(self) -> frozenset[str]:
        """The words that some on_told function waits for."""
        return frozenset(word for word, _ in self.on_told)

    @property
    def tools(self) -> frozenset[str]:
        """The tools that are named."""
        named = {tool for _, tool in self.on_told if tool is not None}
        return frozenset({*self.on_bound, *self.after_bound, *named})

    def of_word(self, word: str, tool: str) -> Callback | None:
        """Return the function for a told word: the tool's own before the one for any tool."""
        return self.on_told.get((word, tool)) or self.on_told.get((word, None))


class Plan:
    """Collects the functions that go on with a plan once something is known of a step.

    Each outbox has one plan, and every one of its consumers runs that one: binding happens once,
    whoever does it. A function is `def` or `async def`; all `async def` functions of a consumer
    run on one event loop that lives as long as the process.
    """

    def __init__(self) -> None:
        self._callbacks = Callbacks({}, {}, {})

    def __repr__(self) -> str:
        words = [f"on_told {word}" for word in sorted(self._callbacks.words)]
        return f"Plan({', '.join([*sorted(self._callbacks.tools), *words])})"

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
        name = tool_name(tool)
        return _registration(self._callbacks.on_bound, name, f"on_bound function for {name}")

    def after_bound(self, tool: object) -> Callable[[Function], Function]:
        """Register a function to run after the bind is durable: at least once, never only once."""
        name = tool_name(tool)
        return _registration(self._callbacks.after_bound, name, f"after_bound function for {name}")

    def on_told(self, word: str, *, tool: object = None) -> Callable[[Function], Function]:
        """Register a function for a word that binds nothing: unknown, parked or compensated.

        It runs at least once for every time that the word became true, unless the word has ceased
        to be true before its turn came. `tool` asks for one tool's steps; such a function is
        called instead of the one for any tool. Raises ConfigError for any other word.
        """
        name = None if tool is None else tool_name(tool)
        what = f"on_told function for {check_word(word)}" + (f" of {name}" if name else "")
        return _registration(self._callbacks.on_told, (word, name), what)


Key = TypeVar("Key")


def _registration(
    registered: dict[Key, Callback], key: Key, what: str
) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        if key in registered:
            raise ConfigError(
                f"the plan has an {what} already", next_step="call both from one function"
            )
        registered[key] = function
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
