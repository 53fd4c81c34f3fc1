"""Lists, tuples, sets and mappings of other rules' values.

Decides that a set is stored in the order of its items' canonical JSON (its own order differs from
process to process), and that a mapping's keys are stored as their text. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import rfc8785

from .json_schema import Definitions
from .place import Misfit, Place, Rule, Schema, named, wrong_type


@dataclass(frozen=True, slots=True)
class ListRule:
    """A list; `takes` names what may be given for it."""

    item: Rule
    takes: type[Any] | tuple[type[Any], ...] = list
    wanted: str = "list"

    def encode(self, value: Any, place: Place, only_given: bool = False) -> list[Any]:
        """Return the items' forms. Raises Misfit."""
        if not isinstance(value, self.takes):
            raise wrong_type(place, value, self.wanted)
        return _encoded(self.item, value, place, only_given)

    def decode(self, stored: Any, place: Place) -> list[Any]:
        """Return the list. Raises Misfit."""
        return _decoded(self.item, stored, place)

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the list."""
        return {"type": "array", "items": self.item.schema(definitions)}


def sequence_rule(item: Rule) -> ListRule:
    """Return the rule of `Sequence[...]`: a list or a tuple is given, a list comes back."""
    return ListRule(item, (list, tuple), "list or tuple")


@dataclass(frozen=True, slots=True)
class ManyRule:
    """`tuple[T, ...]`: a tuple of any length."""

    item: Rule

    def encode(self, value: Any, place: Place, only_given: bool = False) -> list[Any]:
        """Return the items' forms. Raises Misfit."""
        if not isinstance(value, tuple):
            raise wrong_type(place, value, "tuple")
        return _encoded(self.item, value, place, only_given)

    def decode(self, stored: Any, place: Place) -> tuple[Any, ...]:
        """Return the tuple. Raises Misfit."""
        return tuple(_decoded(self.item, stored, place))

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the list."""
        return {"type": "array", "items": self.item.schema(definitions)}


@dataclass(frozen=True, slots=True)
class TupleRule:
    """`tuple[A, B]`: one rule for each place."""

    items: tuple[Rule, ...]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> list[Any]:
        """Return the items' forms. Raises Misfit."""
        if not isinstance(value, tuple):
            raise wrong_type(place, value, "tuple")
        self._check_length(value, place)
        pairs = enumerate(zip(self.items, value, strict=True))
        return [rule.encode(item, place.item(n), only_given) for n, (rule, item) in pairs]

    def decode(self, stored: Any, place: Place) -> tuple[Any, ...]:
        """Return the tuple. Raises Misfit."""
        self._check_length(_listed(stored, place), place)
        pairs = enumerate(zip(self.items, stored, strict=True))
        return tuple(rule.decode(item, place.item(n)) for n, (rule, item) in pairs)

    def _check_length(self, items: Sequence[Any], place: Place) -> None:
        if len(items) != len(self.items):
            raise Misfit(place, f"has {len(items)} items, and not {len(self.items)}")

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the list."""
        return fixed_list(self.items, len(self.items), definitions)


@dataclass(frozen=True, slots=True)
class SetRule:
    """A set or a frozenset, stored as a sorted list."""

    item: Rule
    kind: type
    takes: type[Set[Any]]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> list[Any]:
        """Return the items' forms, sorted. Raises Misfit."""
        if not isinstance(value, self.takes):
            raise wrong_type(place, value, named(self.takes))
        return in_order(_encoded(self.item, value, place, only_given), place)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the set. Raises Misfit."""
        try:
            return self.kind(_decoded(self.item, stored, place))
        except TypeError as error:
            raise Misfit(place, "holds items that a set cannot hold") from error

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the list."""
        return {"type": "array", "items": self.item.schema(definitions), "uniqueItems": True}


@dataclass(frozen=True, slots=True)
class MappingRule:
    """A dict. Its keys are stored as text; their order is not kept."""

    key: Rule
    value: Rule

    def encode(self, value: Any, place: Place, only_given: bool = False) -> dict[str, Any]:
        """Return the object. Raises Misfit."""
        if not isinstance(value, Mapping):
            raise wrong_type(place, value, "dict")
        stored = {
            self._text(key, place): self.value.encode(item, place.field(key), only_given)
            for key, item in value.items()
        }
        if len(stored) != len(value):
            raise Misfit(place, "two keys have the same text")
        return stored

    def _text(self, key: Any, place: Place) -> str:
        text = self.key.encode(key, Place("[key]", place))
        if not isinstance(text, str):
            raise Misfit(place, f"a key of type {named(type(key))} has no text")
        return text

    def decode(self, stored: Any, place: Place) -> dict[Any, Any]:
        """Return the dict. Raises Misfit."""
        if not isinstance(stored, dict):
            raise wrong_type(place, stored, "an object")
        return {
            self.key.decode(key, place.field(key)): self.value.decode(item, place.field(key))
            for key, item in stored.items()
        }

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the object."""
        return {"type": "object", "additionalProperties": self.value.schema(definitions)}


def fixed_list(items: Sequence[Rule], least: int, definitions: Definitions) -> Schema:
    """Return the schema of a list with a rule for each place."""
    return {
        "type": "array",
        "prefixItems": [rule.schema(definitions) for rule in items],
        "minItems": least,
        "maxItems": len(items),
    }


def in_order(items: list[Any], place: Place) -> list[Any]:
    """Return JSON values in the order of their canonical form. Raises Misfit for what has none."""
    try:
        return sorted(items, key=rfc8785.dumps)
    except rfc8785.CanonicalizationError as error:
        raise Misfit(place, "holds an item that is not JSON") from error


def _encoded(rule: Rule, items: Iterable[Any], place: Place, only_given: bool) -> list[Any]:
    return [rule.encode(item, place.item(n), only_given) for n, item in enumerate(items)]


def _decoded(rule: Rule, stored: Any, place: Place) -> list[Any]:
    return [rule.decode(item, place.item(n)) for n, item in enumerate(_listed(stored, place))]


def _listed(stored: Any, place: Place) -> list[Any]:
    if not isinstance(stored, list):
        raise wrong_type(place, stored, "a list")
    return stored
