"""Whether a value came back from storage as it was given, and where it did not.

Decides what counts as the same: equal values of the annotated type; an instant in another zone, a
tuple where a sequence is annotated and a whole number where a float is are the same. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

from .place import Misfit, Place


def check_same(given: Any, back: Any, place: Place) -> None:
    """Raise Misfit with the place of the first difference."""
    found = difference(given, back, place)
    if found is not None:
        raise Misfit(found, "would not come back as it was given")


def difference(given: Any, back: Any, place: Place) -> Place | None:
    """Return the place of the first difference, None where there is none."""
    if isinstance(given, Mapping) and isinstance(back, Mapping):
        if given.keys() != back.keys():
            return place
        pairs = ((place.field(key), given[key], back[key]) for key in given)
        return _first(pairs)
    if isinstance(given, list | tuple) and isinstance(back, list | tuple):
        if len(given) != len(back):
            return place
        return _first(
            (place.item(n), a, b) for n, (a, b) in enumerate(zip(given, back, strict=True))
        )
    if (names := _field_names(given)) is not None:
        if type(given) is not type(back):
            return place
        return _first((place.field(n), getattr(given, n), getattr(back, n)) for n in names)
    return None if _equal(given, back) else place


def _first(pairs: Iterator[tuple[Place, Any, Any]]) -> Place | None:
    for place, given, back in pairs:
        if (found := difference(given, back, place)) is not None:
            return found
    return None


def _field_names(value: Any) -> list[str] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [one.name for one in dataclasses.fields(value)]
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):
        return [*type(value).model_fields, *(value.model_extra or {})]
    return None


def _equal(given: Any, back: Any) -> bool:
    if isinstance(given, datetime) and isinstance(back, datetime):
        # Python calls an instant inside a zone's repeated hour equal to no instant of another zone.
        return given.astimezone(UTC) == back.astimezone(UTC)
    if isinstance(given, time) and isinstance(back, time):
        return _of_clock(given) == _of_clock(back)
    if isinstance(given, Decimal) and isinstance(back, Decimal):
        return given.as_tuple() == back.as_tuple()
    if isinstance(given, Set) and isinstance(back, Set):
        return given == back
    if not isinstance(given, type(back)) and not _is_whole_float(given, back):
        return False
    return bool(given == back)


def _of_clock(value: time) -> tuple[Any, ...]:
    """Return all that a time of day says: Python calls one in a named zone equal to one in none."""
    return value.replace(tzinfo=None), value.fold, value.tzinfo is None, value.utcoffset()


def _is_whole_float(given: Any, back: Any) -> bool:
    return type(given) is int and type(back) is float
