"""Storing a value by what it is, where no annotation says more: results, enum and literal values.

Decides the same texts as the rules for annotations; what comes back from it is JSON. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Set
from enum import Enum
from typing import Any

from .containers import in_order
from .place import Misfit, Place
from .scalars import SECRET, SECRET_STEP, is_secret, no_json, text_key
from .texts import TEXT_RULES


def encode_by_value(value: Any, place: Place) -> Any:
    """Return the JSON form of a value of any type that has one. Raises Misfit."""
    if value is None or isinstance(value, bool):
        return value
    if is_secret(type(value)):
        raise Misfit(place, SECRET, SECRET_STEP)
    if isinstance(value, Enum):
        return encode_by_value(value.value, place)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    for kind, rule in TEXT_RULES.items():
        if isinstance(value, kind):
            return rule.encode(value, place)
    return _encode_parts(value, place)


def _encode_parts(value: Any, place: Place) -> Any:
    if isinstance(value, dict):
        return {
            text_key(key, place): encode_by_value(item, place.field(key))
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return _items(value, place)
    if isinstance(value, Set):
        return in_order(_items(value, place), place)
    if (parts := _parts(value)) is not None:
        return {name: encode_by_value(item, place.field(name)) for name, item in parts.items()}
    raise no_json(value, place)


def _items(value: Iterable[Any], place: Place) -> list[Any]:
    return [encode_by_value(item, place.item(n)) for n, item in enumerate(value)]


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass or of a pydantic model, None for anything else."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if not callable(getattr(value, "model_dump", None)):
        return None
    declared = {
        name: getattr(value, name)
        for name, field in type(value).model_fields.items()
        if not field.exclude
    }
    return {**declared, **(value.model_extra or {})}
