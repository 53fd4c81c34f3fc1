"""Enums, literals and unions: one of several.

Decides that an enum's member is stored as its value, and that a union is read by its first member
that accepts what is stored; a value that would come back through another member is refused when it
is put. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, Flag
from typing import Any

import rfc8785

from .by_value import encode_by_value
from .differences import difference
from .json_schema import Definitions
from .place import Misfit, Place, Rule, Schema, named, wrong_type
from .scalars import NoneRule

_SIMPLE = (str, int, float, type(None))
"""Values without parts: nothing is gained by remembering what was said of them."""


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """One of a closed number of values, by its canonical JSON."""

    wanted: str
    values: Mapping[bytes, Any]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the value's JSON. Raises Misfit for any that is none of them."""
        for known in self.values.values():
            if type(value) is type(known) and value == known:
                return encode_by_value(known, place)
        raise Misfit(place, f"is none of {self.wanted}")

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value of that JSON. Raises Misfit."""
        try:
            return self.values[rfc8785.dumps(stored)]
        except (KeyError, rfc8785.CanonicalizationError):
            raise Misfit(place, f"is none of {self.wanted}") from None

    def schema(self, definitions: Definitions) -> Schema:
        """Return the values as they are stored."""
        return {"enum": [json.loads(one) for one in self.values]}


def literal_rule(values: Iterable[Any], place: Place) -> ChoiceRule:
    """Return the rule of `Literal[...]`."""
    values = list(values)
    wanted = " | ".join(named(type(one)) if isinstance(one, bytes) else repr(one) for one in values)
    return ChoiceRule(wanted, _by_json(values, place))


def enum_rule(kind: type[Enum], place: Place) -> Rule:
    """Return the rule of an enum. Raises Misfit where a member's value is no JSON."""
    if issubclass(kind, Flag):
        return FlagRule(kind)
    return ChoiceRule(f"the members of {kind.__name__}", _by_json(list(kind), place))


def _by_json(values: Iterable[Any], place: Place) -> dict[bytes, Any]:
    return {rfc8785.dumps(encode_by_value(value, place)): value for value in values}


@dataclass(frozen=True, slots=True)
class FlagRule:
    """Flags, stored as their number."""

    kind: type[Flag]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> int:
        """Return the number. Raises Misfit."""
        if not isinstance(value, self.kind):
            raise wrong_type(place, value, named(self.kind))
        number: int = value.value
        return number

    def decode(self, stored: Any, place: Place) -> Flag:
        """Return the flags. Raises Misfit."""
        if type(stored) is not int:
            raise wrong_type(place, stored, "a whole number")
        try:
            return self.kind(stored)
        except ValueError:
            raise Misfit(place, f"is no combination of {named(self.kind)}") from None

    def schema(self, definitions: Definitions) -> Schema:
        """Return the type of the number."""
        return {"type": "integer", "minimum": 0}


@dataclass(frozen=True, slots=True)
class UnionRule:
    """The first member that gives the same value back."""

    members: tuple[Rule, ...]
    wanted: str

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the form that reads as the same value. Raises Misfit."""
        if isinstance(value, _SIMPLE):
            return self._encode(value, place, only_given)
        asked = (id(self), "encode", only_given)
        return place.once(asked, value, lambda: self._encode(value, place, only_given))

    def _encode(self, value: Any, place: Place, only_given: bool) -> Any:
        misfits = []
        for rule in self.members:
            try:
                stored = rule.encode(value, place)
                back = self.decode(stored, place)
            except Misfit as misfit:
                misfits.append(misfit)
                continue
            if (found := difference(value, back, place)) is None:
                return self._alone(rule, value, place, stored) if only_given else stored
            earlier = f"would come back as an earlier type of {self.wanted}"
            misfits.append(Misfit(found, earlier))
        raise self._plainest(misfits, place)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value. Raises Misfit."""
        if isinstance(stored, _SIMPLE):
            return self._decode(stored, place)
        return place.once((id(self), "decode"), stored, lambda: self._decode(stored, place))

    def _decode(self, stored: Any, place: Place) -> Any:
        misfits = []
        for rule in self.members:
            try:
                return rule.decode(stored, place)
            except Misfit as misfit:
                misfits.append(misfit)
        raise self._plainest(misfits, place)

    def schema(self, definitions: Definitions) -> Schema:
        """Return the members' schemas."""
        return {"anyOf": [rule.schema(definitions) for rule in self.members]}

    def _alone(self, rule: Rule, value: Any, place: Place, stored: Any) -> Any:
        """Return the form without what defaults filled in, unless another value has it too."""
        given = rule.encode(value, place, True)
        try:
            same = difference(value, self.decode(given, place), place) is None
        except Misfit:
            same = False
        return given if same else stored

    def _plainest(self, misfits: list[Misfit], place: Place) -> Misfit:
        """Return what says most: of the member that was most likely meant, else of all."""
        pairs = zip(self.members, misfits, strict=True)
        meant = [misfit for rule, misfit in pairs if not isinstance(rule, NoneRule)]
        telling = [one for one in meant if not one.of_type or one.place.depth > place.depth]
        if len(meant) == 1 or telling:
            return max(telling or meant, key=lambda misfit: misfit.place.depth)
        return Misfit(place, f"is none of {self.wanted}", of_type=True)
