"""Encode, decode, compare: nothing is stored that would not come back as it was given.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...outbox.defaults import DEFAULTS
from ...outbox.identity import canonical
from .differences import check_same
from .json_schema import Definitions
from .place import Place, Rule, Schema


def round_trip(rule: Rule, value: Any, place: Place) -> tuple[Any, Any]:
    """Return a value's stored form, and that of what the caller gave of it alone.

    Raises Misfit or InvalidIntent with the path of what cannot be stored or would come back as
    something else.
    """
    stored = rule.encode(value, place)
    canonical(stored, int(DEFAULTS.args_limit_bytes), str(place))
    check_same(value, rule.decode(stored, place), place)
    return stored, rule.encode(value, place, True)


@dataclass(frozen=True, slots=True)
class NamedRule:
    """Values by name, each under a rule of its own."""

    rule_of: Callable[[str], Rule]

    def encode(
        self, value: Mapping[str, Any], place: Place, only_given: bool = False
    ) -> dict[str, Any]:
        """Return the object. Raises Misfit."""
        return {
            name: self.rule_of(name).encode(one, place.field(name), only_given)
            for name, one in value.items()
        }

    def decode(self, stored: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """Return the values by name. Raises Misfit."""
        return {
            name: self.rule_of(name).decode(one, place.field(name)) for name, one in stored.items()
        }

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of any object: which names there are, is decided elsewhere."""
        return {"type": "object"}
