"""Arguments of a function tool: which names its signature takes, and their stored JSON form.

Decides whether a caller's arguments are legal, before anything is stored, so that a worker never
meets a call that the function cannot take: they are encoded, decoded again and compared. Pure:
`outbox`, `values` and the standard library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError, InvalidIntent
from ..outbox.identity import canonical
from .values.annotations import rule_for
from .values.differences import check_same
from .values.place import Misfit, NoRule, Place, Rule
from .values.records import missing
from .values.signatures import Annotations, signature_of

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ROOT = "args"


class Encoded(NamedTuple):
    """Arguments as JSON: what the caller gave, and whatever is stored beside or instead of it."""

    given: dict[str, Any]
    filled_in: dict[str, Any]


@dataclass(frozen=True)
class Arguments:
    """The argument names of one tool, in their order, and how each one's values are stored."""

    tool: str
    names: tuple[str, ...]
    required: frozenset[str]
    takes_any_name: bool
    rule_of: Callable[[str], Rule] = field(repr=False)
    python_defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _rules: dict[str, Rule] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The signature's defaults in their stored form. Raises ConfigError where one has none."""
        return {name: self._default(name, one) for name, one in self.python_defaults.items()}

    def _default(self, name: str, value: Any) -> Any:
        try:
            stored = self._rule(name).encode(value, Place(name))
            canonical(stored, int(DEFAULTS.args_limit_bytes), name)
        except Misfit as misfit:
            raise unfit(self.tool, f"has an unfit default: {misfit.refusal().what}") from misfit
        except InvalidIntent as error:
            raise unfit(self.tool, f"has an unfit default: {error.what}") from error
        return stored

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by their names. Raises InvalidIntent for too many and for doubled."""
        if len(args) > len(self.names):
            raise self._refusal(Misfit(Place(_ROOT), f"takes {len(self.names)} at most"))
        given = dict(zip(self.names, args, strict=False))
        for name in given.keys() & kwargs.keys():
            raise self._refusal(Misfit(Place(_ROOT).field(name), "is given twice"))
        return {**given, **kwargs}

    def encode(self, given: Mapping[str, Any]) -> Encoded:
        """Return the given arguments in their stored form.

        Raises InvalidIntent with the path of the first missing, unknown or unfit argument, and of
        one that would come back as anything else than it was given.
        """
        self.check_names(given)
        root = Place(_ROOT)
        try:
            stored = {n: self._rule(n).encode(v, root.field(n)) for n, v in given.items()}
            canonical(stored, int(DEFAULTS.args_limit_bytes))
            back = {n: self._rule(n).decode(v, root.field(n)) for n, v in stored.items()}
            for name, value in given.items():
                check_same(value, back[name], root.field(name))
            alone = {n: self._rule(n).encode(v, root.field(n), True) for n, v in given.items()}
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit
        others = {n: v for n, v in self.defaults.items() if n not in given}
        return Encoded(alone, {**others, **{n: v for n, v in stored.items() if v != alone[n]}})

    def decode(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them. Raises InvalidIntent."""
        self.check_names(stored)
        root = Place(_ROOT)
        try:
            return {n: self._rule(n).decode(v, root.field(n)) for n, v in stored.items()}
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit

    def check_types(self) -> None:
        """Raise ConfigError for the first argument whose type or default cannot be stored."""
        for name in self.names:
            self._rule(name)
        assert self.defaults is not None

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Raise InvalidIntent unless every required name is there and every name is known."""
        absent = sorted(self.required - set(given))
        if absent:
            raise self._refusal(missing(Place(_ROOT), absent[0]))
        strange = [] if self.takes_any_name else sorted(map(str, set(given) - set(self.names)))
        if strange:
            raise self._refusal(
                Misfit(Place(_ROOT).field(strange[0]), "is no argument of this tool")
            )

    def _rule(self, name: str) -> Rule:
        rule = self._rules.get(name)
        if rule is None:
            rule = self._rules[name] = self.rule_of(name)
        return rule

    def _refusal(self, misfit: Misfit) -> InvalidIntent:
        names = ", ".join(self.names) or "none"
        about_names = misfit.place.depth <= 1 and misfit.next_step is None
        if about_names:
            misfit.next_step = f"put again; the tool's arguments are: {names}"
        return misfit.refusal(f" ({self.tool})")


def read_signature(tool: str, function: Callable[..., Any], annotations: Annotations) -> Arguments:
    """Return the arguments of `def function(call, *, name, ...)`.

    Raises ConfigError for a function that cannot be called with its arguments by name, or whose
    annotations name a type that nothing can store.
    """
    parameters = list(signature_of(function).parameters.values())
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise unfit(tool, "must take the call as its first positional parameter")
    others = parameters[1:]
    named = [parameter for parameter in others if parameter.kind in _NAMED]
    open_ended = [p.name for p in others if p.kind is p.VAR_KEYWORD]
    if len(named) + len(open_ended) != len(others):
        raise unfit(tool, "must take every argument by name")
    rules = _Rules(tool, annotations, {p.name for p in named}, open_ended)
    arguments = Arguments(
        tool=tool,
        names=tuple(parameter.name for parameter in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
        takes_any_name=bool(open_ended),
        rule_of=rules.of,
        python_defaults={p.name: p.default for p in named if p.default is not p.empty},
    )
    with suppress(_NotDefined):
        arguments.check_types()
    return arguments


class _NotDefined(ConfigError):
    """An annotation names what is not defined; it may be, by the time that a value meets it."""


class _Rules:
    """The rules of one signature; an annotation that cannot be read yet is read when it is met."""

    def __init__(
        self, tool: str, annotations: Annotations, names: set[str], open_ended: list[str]
    ) -> None:
        self._tool = tool
        self._annotations = annotations
        self._names = names
        self._others = open_ended[0] if open_ended else ""

    def of(self, name: str) -> Rule:
        """Return the rule of an argument. Raises ConfigError where its type has none."""
        place = name if name in self._names else self._others
        try:
            return rule_for(self._annotations.read(place))
        except NameError as error:
            raise unfit(self._tool, f"takes {place}, and {error}", _NotDefined) from error
        except NoRule as error:
            raise unfit(self._tool, f"takes {place}, and {error.what}") from error


def unfit(tool: str, problem: str, kind: type[ConfigError] = ConfigError) -> ConfigError:
    """Return the error for a function that cannot be a tool, or not yet."""
    return kind(
        f"The function of tool {tool} {problem}.",
        next_step="write it as def function(call, *, name: type = default, ...)",
    )
