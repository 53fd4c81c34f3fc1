"""A plan's callbacks: what runs inside a bind, after it, and where nothing binds.

Decides only which function belongs to which tool and word. Pure; may import `tool_adapters` and
`outbox`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, overload

from ..outbox.errors import ConfigError
from ..outbox.intent import ResultReader
from ..outbox.on_told import check_word
from ..outbox.type_variables import R, R_co
from ..tool_adapters.results import Results
from .bound import AsyncBound, Bound

Callback = Callable[[Any], object]
Key = TypeVar("Key")


class TypedTool(Protocol[R_co]):
    """A tool whose results have a type: a function tool or a `ToolRef`."""

    @property
    def results(self) -> Results[R_co]:
        """How its results are read."""


class Registration(Protocol[R]):
    """Registers a function, and returns it as it was. `def` gets a Bound, `async def` the other."""

    @overload
    def __call__(self, function: Callable[[Bound[R]], None], /) -> Callable[[Bound[R]], None]: ...
    @overload
    def __call__(
        self, function: Callable[[AsyncBound[R]], Awaitable[None]], /
    ) -> Callable[[AsyncBound[R]], Awaitable[None]]: ...


@dataclass(frozen=True, slots=True)
class Waiting(Generic[R_co]):
    """A registered function, and how the results that it is shown are read."""

    function: Callback
    read_result: ResultReader[R_co] | None = None


@dataclass(frozen=True, slots=True)
class Callbacks:
    """The functions of one plan: by tool, and of on_told by word and tool (None: any tool)."""

    on_bound: dict[str, Waiting[Any]]
    after_bound: dict[str, Waiting[Any]]
    on_told: dict[tuple[str, str | None], Waiting[Any]]

    @property
    def words(self) -> frozenset[str]:
        """The words that some on_told function waits for."""
        return frozenset(word for word, _ in self.on_told)

    @property
    def tools(self) -> frozenset[str]:
        """The tools that are named."""
        named = {tool for _, tool in self.on_told if tool is not None}
        return frozenset({*self.on_bound, *self.after_bound, *named})

    def of_word(self, word: str, tool: str) -> Waiting[Any] | None:
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

    @overload
    def on_bound(self, tool: TypedTool[R]) -> Registration[R]: ...
    @overload
    def on_bound(self, tool: object) -> Registration[Any]: ...
    def on_bound(self, tool: Any) -> Any:
        """Register a function to run inside the bind's transaction, one row a transaction.

        What it writes through `bound.session`, the next step included, commits with the bind or
        not at all. If it raises, the bind is undone and tried again later. It must be quick, and
        talk to nothing but that database.
        """
        name = tool_name(tool)
        what = f"on_bound function for {name}"
        return _registration(self._callbacks.on_bound, name, what, tool)

    @overload
    def after_bound(self, tool: TypedTool[R]) -> Registration[R]: ...
    @overload
    def after_bound(self, tool: object) -> Registration[Any]: ...
    def after_bound(self, tool: Any) -> Any:
        """Register a function to run after the bind is durable: at least once, never only once."""
        name = tool_name(tool)
        what = f"after_bound function for {name}"
        return _registration(self._callbacks.after_bound, name, what, tool)

    @overload
    def on_told(self, word: str, *, tool: TypedTool[R]) -> Registration[R]: ...
    @overload
    def on_told(self, word: str, *, tool: object = None) -> Registration[Any]: ...
    def on_told(self, word: str, *, tool: Any = None) -> Any:
        """Register a function for a word that binds nothing: unknown, parked or compensated.

        It runs at least once for every time that the word became true, unless the word has ceased
        to be true before its turn came. `tool` asks for one tool's steps; such a function is
        called instead of the one for any tool. Raises ConfigError for any other word.
        """
        name = None if tool is None else tool_name(tool)
        what = f"on_told function for {check_word(word)}" + (f" of {name}" if name else "")
        return _registration(self._callbacks.on_told, (word, name), what, tool)


def _registration(
    registered: dict[Key, Waiting[Any]], key: Key, what: str, tool: object
) -> Callable[[Callback], Callback]:
    results = getattr(tool, "results", None)
    read_result = results.read if isinstance(results, Results) else None

    def register(function: Callback) -> Callback:
        if key in registered:
            raise ConfigError(
                f"the plan has an {what} already", next_step="call both from one function"
            )
        registered[key] = Waiting(function, read_result)
        return function

    return register


def tool_name(tool: object) -> str:
    """Return the name of a tool given as text, as the tool itself or as a reference to it."""
    if isinstance(tool, str):
        return tool
    contract = getattr(tool, "contract", None)
    name = getattr(contract or tool, "tool", None)
    if not isinstance(name, str):
        raise ConfigError(
            f"{type(tool).__name__} names no tool", next_step="give the tool or its name"
        )
    return name
