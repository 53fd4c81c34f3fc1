"""What of two replies is compared, and how a difference is told.

Words for people, and what a call was asked to do or has answered, stay out of every complaint.
May import the pure core and `sim`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

_SECRET = frozenset({"args", "result", "document", "detail", "handle"})
"""Compared like everything else, and never printed."""
_FOR_PEOPLE = frozenset({"next_step", "seconds_left"})


class Difference(Exception):
    """The two stores do not answer or stand alike."""


def plain(value: Any) -> Any:
    """Return a value as lists, dictionaries and words, so that equal facts are equal."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in sorted(value.items(), key=_word)}
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        found = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
        # Words of a refusal count seconds; its code says what was refused.
        hidden = _FOR_PEOPLE | ({"detail"} if "code" in found else set())
        return {name: one for name, one in found.items() if name not in hidden}
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if type(value).__name__ == "Decimal" else value


def _word(pair: tuple[Any, Any]) -> str:
    return str(pair[0])


def require_same(what: str, memory: Any, postgres: Any) -> None:
    """Raise Difference where two values are not the same."""
    for place, one, other in differences(plain(memory), plain(postgres)):
        shown = "" if _SECRET & set(place) else f": memory {one!r}, postgres {other!r}"
        raise Difference(f"{what} {'.'.join(place)}".rstrip() + f" differs{shown}")


def differences(
    one: Any, other: Any, place: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    """Yield (place, value, other value) of the smallest parts that are not the same."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            yield from differences(one.get(name), other.get(name), (*place, name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, (*place, str(number)))
    else:
        yield place, one, other
