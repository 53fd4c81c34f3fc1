"""Dataclasses, typed dicts and named tuples: fields with a rule each.

Decides that a dataclass is stored with all its fields, so that a later default changes nothing of
what was put, and compared without those that equal their default; that a field which the code does
not know is refused; and that a subclass is another type. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NotRequired, Required, get_origin, get_type_hints

from .containers import fixed_list
from .json_schema import Definitions, closed_object, stored_default
from .place import Misfit, Place, Rule, RuleFor, Schema, named, no_rule, same_form, wrong_type


def hints_of(kind: Any) -> dict[str, Any]:
    """Return a class's annotations. Raises NoRule where one names nothing known."""
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise no_rule(kind, f"{error}; define it where the class stands") from error


@dataclass(frozen=True)
class DataclassRule:
    """A dataclass, stored as an object. Its fields' rules are made at their first use, since a
    class may hold itself.
    """

    kind: type[Any]
    rule_for: RuleFor = field(repr=False)
    annotation: Any = None
    """What was written, where the class is generic and its arguments make another type of it."""

    @cached_property
    def _fields(self) -> dict[str, dataclasses.Field[Any]]:
        return {one.name: one for one in dataclasses.fields(self.kind) if one.init}

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        hints = hints_of(self.kind)
        return {name: self.rule_for(hints[name]) for name in self._fields}

    def encode(self, value: Any, place: Place, only_given: bool = False) -> dict[str, Any]:
        """Return the object. Raises Misfit."""
        if type(value) is not self.kind:
            raise wrong_type(place, value, named(self.kind))
        values = {name: getattr(value, name) for name in self._rules}
        return {
            name: self._rules[name].encode(item, place.field(name), only_given)
            for name, item in values.items()
            if not (only_given and self._is_default(name, item, place))
        }

    def _is_default(self, name: str, value: Any, place: Place) -> bool:
        if self._is_required(name):
            return False
        known, place = self._fields[name], place.field(name)
        made = known.default_factory
        default = known.default if made is dataclasses.MISSING else made()
        return same_form(self._rules[name], value, default, place)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the instance. Raises Misfit."""
        values = decoded_fields(self._rules, stored, place, named(self.kind))
        for name in self._fields:
            if name not in values and self._is_required(name):
                raise missing(place, name)
        return made(self.kind, place, (), values)

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the object."""
        return definitions.reference(
            self.annotation or self.kind, lambda: self._described(definitions)
        )

    def _described(self, definitions: Definitions) -> Schema:
        defaults = {
            name: stored_default(self._rules[name], known.default)
            for name, known in self._fields.items()
            if known.default is not dataclasses.MISSING
        }
        return closed_object(self._rules, self._is_required, definitions, defaults)

    def _is_required(self, name: str) -> bool:
        known = self._fields[name]
        return (known.default, known.default_factory) == (dataclasses.MISSING,) * 2


@dataclass(frozen=True)
class TypedDictRule:
    """A typed dict, stored with the keys that it has."""

    kind: Any
    rule_for: RuleFor = field(repr=False)
    annotation: Any = None
    """What was written, where the class is generic and its arguments make another type of it."""

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return hints_of(self.kind)

    @cached_property
    def _required(self) -> frozenset[str]:
        """The keys that must be there.

        Under postponed annotations the class's own attribute misses what single keys say.
        """
        origins = {name: get_origin(hint) for name, hint in self._hints.items()}
        return frozenset(
            name
            for name, origin in origins.items()
            if origin is Required
            or (origin is not NotRequired and name in self.kind.__required_keys__)
        )

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {name: self.rule_for(one) for name, one in self._hints.items()}

    def encode(self, value: Any, place: Place, only_given: bool = False) -> dict[str, Any]:
        """Return the object. Raises Misfit."""
        if not isinstance(value, dict):
            raise wrong_type(place, value, named(self.kind))
        self._check(value, place)
        return {
            name: self._rules[name].encode(item, place.field(name), only_given)
            for name, item in value.items()
        }

    def decode(self, stored: Any, place: Place) -> dict[str, Any]:
        """Return the dict. Raises Misfit."""
        values = decoded_fields(self._rules, stored, place, named(self.kind))
        self._check(values, place)
        return values

    def _check(self, value: Mapping[str, Any], place: Place) -> None:
        for name in self._required:
            if name not in value:
                raise missing(place, name)
        for name in value:
            if name not in self._rules:
                raise unknown(place, name, named(self.kind))

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the object."""
        return definitions.reference(
            self.annotation or self.kind,
            lambda: closed_object(self._rules, self._required.__contains__, definitions),
        )


@dataclass(frozen=True)
class NamedTupleRule:
    """A named tuple, stored as the list that it is; fields with defaults may be missing."""

    kind: Any
    rule_for: RuleFor = field(repr=False)

    @cached_property
    def _rules(self) -> list[Rule]:
        hints = hints_of(self.kind)
        return [self.rule_for(hints.get(name, Any)) for name in self.kind._fields]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> list[Any]:
        """Return the list. Raises Misfit."""
        if type(value) is not self.kind:
            raise wrong_type(place, value, named(self.kind))
        pairs = enumerate(zip(self._rules, value, strict=True))
        return [rule.encode(item, place.item(n), only_given) for n, (rule, item) in pairs]

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the named tuple. Raises Misfit."""
        if not isinstance(stored, list):
            raise wrong_type(place, stored, "a list")
        if not self._least <= len(stored) <= len(self._rules):
            raise Misfit(place, f"has {len(stored)} items, and {named(self.kind)} has others")
        pairs = enumerate(zip(self._rules, stored, strict=False))
        return self.kind(*(rule.decode(item, place.item(n)) for n, (rule, item) in pairs))

    @property
    def _least(self) -> int:
        return len(self._rules) - len(self.kind._field_defaults)

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the list."""
        return fixed_list(self._rules, self._least, definitions)


def decoded_fields(
    rules: Mapping[str, Rule], stored: Any, place: Place, kind: str
) -> dict[str, Any]:
    """Return the values of a stored object. Raises Misfit for a key without a rule."""
    if not isinstance(stored, dict):
        raise wrong_type(place, stored, "an object")
    for name in stored:
        if name not in rules:
            raise unknown(place, name, kind)
    return {name: rules[name].decode(item, place.field(name)) for name, item in stored.items()}


def made(kind: Any, place: Place, args: tuple[Any, ...], values: Mapping[str, Any]) -> Any:
    """Return an instance. Raises Misfit where the class's own check refuses the values.

    Its message is left out: it may hold them.
    """
    try:
        return kind(*args, **values)
    except (ValueError, TypeError, ArithmeticError, LookupError, AssertionError) as error:
        raise Misfit(place, f"{named(kind)} refuses it ({type(error).__name__})") from None


def missing(place: Place, name: str) -> Misfit:
    """Return the misfit of a required part that is not there."""
    return Misfit(place.field(name), "is required and missing")


def unknown(place: Place, name: str, kind: str) -> Misfit:
    """Return the misfit of a part that the code does not know: it was removed, or never there."""
    return Misfit(place.field(name), f"is no field of {kind}")
