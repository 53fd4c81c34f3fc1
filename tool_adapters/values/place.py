"""Where in the arguments or in a result a value stands, and what is wrong with it there.

Decides how a path is written (`args.items[2].price`) and that no value is ever part of a message.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import rfc8785

from ...outbox.errors import ConfigError, InvalidIntent
from ...outbox.identity import DEPTH_LIMIT

if TYPE_CHECKING:
    from .json_schema import Definitions

Schema: TypeAlias = dict[str, Any]
T = TypeVar("T")


class Place:
    """One place below a root. Its text is made only where something is wrong there."""

    __slots__ = ("_known", "_parent", "_step", "depth")

    def __init__(self, step: str, parent: Place | None = None) -> None:
        self._step = step
        self._parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self._known: dict[Any, tuple[Any, Any, Misfit | None]]
        self._known = {} if parent is None else parent._known

    def once(self, asked: tuple[Any, ...], value: Any, make: Callable[[], T]) -> T:
        """Return what `make` gives of a value, asked once below this place's root.

        Types of a union that have a part in common would otherwise each look at all of that part,
        and so twice as often at each level below. Raises Misfit, the same one each time.
        """
        key = (id(value), *asked)
        if key not in self._known:
            try:
                self._known[key] = (value, make(), None)
            except Misfit as misfit:
                self._known[key] = (value, None, misfit)
        _, made, refused = self._known[key]
        if refused is not None:
            raise refused.with_traceback(None)
        answer: T = made
        return answer

    def __str__(self) -> str:
        return f"{self._parent or ''}{self._step}"

    def field(self, name: object) -> Place:
        """Return the place of a named part."""
        return self._below(f".{name}")

    def item(self, index: int) -> Place:
        """Return the place of a numbered part."""
        return self._below(f"[{index}]")

    def _below(self, step: str) -> Place:
        # One level is kept back for what stands around the root when the whole is checked.
        if self.depth >= DEPTH_LIMIT:
            raise Misfit(self, f"nested deeper than {DEPTH_LIMIT} levels")
        return Place(step, self)


class Misfit(Exception):
    """A value that its rule cannot store, or a stored one that is none of its type.

    `of_type`: the value's type is another one, so that nothing can be said of the value itself.
    """

    def __init__(
        self, place: Place, problem: str, next_step: str | None = None, of_type: bool = False
    ) -> None:
        super().__init__(problem)
        self.of_type = of_type
        self.place = place
        self.problem = problem
        self.next_step = next_step

    def refusal(self, context: str = "") -> InvalidIntent:
        """Return it as the error that callers see."""
        path = str(self.place)
        shown = path if len(path) <= _PATH_LIMIT else f"{path[:_PATH_LIMIT]}..."
        return InvalidIntent(
            f"{shown}: {self.problem}{context}",
            next_step=self.next_step or "change the value and put again",
        )


_PATH_LIMIT = 200


class NoRule(ConfigError):
    """A type whose values nothing here can store."""


class Rule(Protocol):
    """How the values of one annotation are stored, and read back."""

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the JSON form. Raises Misfit. `only_given` leaves out what defaults filled in."""

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value of a JSON form. Raises Misfit."""

    def schema(self, definitions: Definitions) -> Schema:
        """Return the JSON schema of what `decode` reads."""


RuleFor = Callable[[Any], Rule]
"""From an annotation to its rule."""


def same_form(rule: Rule, one: Any, other: Any, place: Place) -> bool:
    """Return whether two values are stored as the same JSON. Raises Misfit for an unfit `one`.

    Python's own equality would lie here: 1 equals True, 1.0 equals 1.00, and a class may say of
    fields that they do not count.
    """
    if one is other:
        return True
    form = rule.encode(one, place)
    try:
        return rfc8785.dumps(form) == rfc8785.dumps(rule.encode(other, place))
    except (Misfit, rfc8785.CanonicalizationError):
        return False


def wrong_type(place: Place, value: Any, wanted: str) -> Misfit:
    """Return the misfit of a value of another type than the annotation's."""
    return Misfit(place, f"is {named(type(value))}, and not {wanted}", of_type=True)


def no_rule(kind: Any, why: str) -> NoRule:
    """Return the error for an annotation that no argument or result can have."""
    return NoRule(
        f"no rule stores values of {named(kind)}: {why}",
        next_step="annotate with a type of docs/reference/arguments.md",
    )


def named(kind: Any) -> str:
    """Return a type's short name."""
    return getattr(kind, "__name__", None) or str(kind)
