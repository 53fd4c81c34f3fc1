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

from ..outbox.errors import ConfigError, InvalidIntent
from .values.annotations import rule_for
from .values.json_schema import Definitions, closed_object, whole_schema
from .values.place import Misfit, NoRule, Place, Rule, Schema
from .values.round_trip import NamedRule, round_trip
from .values.signatures import Annotations, signature_of

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_ROOT = "args"


class Encoded(NamedTuple):
    """Arguments as JSON: what the caller gave, and whatever is stored beside or instead of it."""

    given: dict[str, Any]
    filled_in: dict[str, Any]

    @classmethod
    def of(cls, given: dict[str, Any], stored: dict[str, Any]) -> Encoded:
        """Return what the caller gave, and what of the stored whole it leaves open."""
        nothing = object()
        return cls(given, {n: v for n, v in stored.items() if given.get(n, nothing) != v})


@dataclass(frozen=True)
class Arguments:
    """The argument names of one tool, in their order, and how each one's values are stored."""

    tool: str
    names: tuple[str, ...]
    required: frozenset[str]
    takes_any_name: bool
    annotation_of: Callable[[str], Any] = field(repr=False)
    python_defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    _rules: dict[str, Rule] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The signature's defaults in their stored form. Raises ConfigError where one has none."""
        return {name: self._default(name, one) for name, one in self.python_defaults.items()}

    def _default(self, name: str, value: Any) -> Any:
        try:
            return round_trip(self._rule(name), value, Place(name))[0]
        except Misfit as misfit:
            raise unfit(self.tool, f"has an unfit default: {misfit.refusal().what}") from misfit
        except InvalidIntent as error:
            raise unfit(self.tool, f"has an unfit default: {error.what}") from error

    def by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by their names. Raises InvalidIntent for too many and for doubled."""
        if len(args) > len(self.names):
            raise self._misnamed("", f"takes {len(self.names)} at most")
        given = dict(zip(self.names, args, strict=False))
        for name in given.keys() & kwargs.keys():
            raise self._misnamed(name, "is given twice")
        return {**given, **kwargs}

    def encode(self, given: Mapping[str, Any]) -> Encoded:
        """Return the given arguments in their stored form.

        Raises InvalidIntent with the path of the first missing, unknown or unfit argument, and of
        one that would come back as anything else than it was given.
        """
        self.check_names(given)
        try:
            stored, alone = round_trip(NamedRule(self._rule), given, Place(_ROOT))
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit
        return Encoded.of(alone, {**self.defaults, **stored})

    def decode(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them. Raises InvalidIntent."""
        self.check_names(stored)
        try:
            return NamedRule(self._rule).decode(stored, Place(_ROOT))
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit

    def json_schema(self) -> Schema:
        """Return the JSON schema of the arguments in their stored form."""
        rules = {name: self._rule(name) for name in self.names}

        def describe(definitions: Definitions) -> Schema:
            schema = closed_object(rules, self.required.__contains__, definitions, self.defaults)
            return {**schema, "additionalProperties": self.takes_any_name}

        return whole_schema(self.tool, describe)

    def check_types(self) -> None:
        """Raise ConfigError for the first argument whose type or default cannot be stored."""
        for name in self.names:
            self._rule(name)
        assert self.defaults is not None

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Raise InvalidIntent unless every required name is there and every name is known."""
        absent = sorted(self.required - set(given))
        if absent:
            raise self._misnamed(absent[0], "is required and missing")
        strange = [] if self.takes_any_name else sorted(map(str, set(given) - set(self.names)))
        if strange:
            raise self._misnamed(strange[0], "is no argument of this tool")

    def _rule(self, name: str) -> Rule:
        known = name if name in self.names else ""
        if known not in self._rules:
            self._rules[known] = self._new_rule(name)
        return self._rules[known]

    def _new_rule(self, name: str) -> Rule:
        try:
            return rule_for(self.annotation_of(name))
        except NameError as error:
            raise unfit(self.tool, f"takes {name}, and {error}", _NotDefined) from error
        except NoRule as error:
            raise unfit(self.tool, f"takes {name}, and {error.what}") from error

    def _refusal(self, misfit: Misfit) -> InvalidIntent:
        return misfit.refusal(f" ({self.tool})")

    def _misnamed(self, name: str, problem: str) -> InvalidIntent:
        names = ", ".join(self.names) or "none"
        place = Place(_ROOT).field(name) if name else Place(_ROOT)
        step = f"put again; the tool's arguments are: {names}"
        return self._refusal(Misfit(place, problem, step))


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
    known = {parameter.name for parameter in named}
    arguments = Arguments(
        tool=tool,
        names=tuple(parameter.name for parameter in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
        takes_any_name=bool(open_ended),
        annotation_of=lambda name: annotations.read(name if name in known else open_ended[0]),
        python_defaults={p.name: p.default for p in named if p.default is not p.empty},
    )
    with suppress(_NotDefined):
        arguments.check_types()
    return arguments


class _NotDefined(ConfigError):
    """An annotation names what is not defined; it may be, by the time that a value meets it."""


def unfit(tool: str, problem: str, kind: type[ConfigError] = ConfigError) -> ConfigError:
    """Return the error for a function that cannot be a tool, or not yet."""
    return kind(
        f"The function of tool {tool} {problem}.",
        next_step="write it as def function(call, *, name: type = default, ...)",
    )
