"""Reading JSON that a model or a person wrote, without guessing what was meant.

Decides that a key given twice, a number that is none, and one that would lose digits are refused
with their path. Pure.
"""

from __future__ import annotations

import json
from typing import Any

from ...outbox.identity import canonical
from .place import Misfit, Place

_LONGEST_SAFE_NUMBER = 20
_TOO_LARGE = 2**53


def parse_object(text: str, root: str, limit_bytes: int) -> dict[str, Any]:
    """Return the JSON object of a text. Raises InvalidIntent with the path of what is refused."""
    place = Place(root)
    try:
        read = json.loads(text, object_pairs_hook=_Pairs, parse_int=_whole, strict=True)
        value = _without_pairs(read, place)
    except json.JSONDecodeError as error:
        raise Misfit(place, f"is no JSON: {error.msg} at character {error.pos}").refusal() from None
    except RecursionError:
        raise Misfit(place, "is nested too deeply").refusal() from None
    except Misfit as misfit:
        raise misfit.refusal() from misfit
    if not isinstance(value, dict):
        raise Misfit(place, "is no JSON object").refusal()
    canonical(value, limit_bytes, root)
    return value


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written: with every key, doubled ones included."""


def _whole(digits: str) -> int:
    """Return a whole number; one that is far too long stays too large to be stored."""
    return int(digits) if len(digits) <= _LONGEST_SAFE_NUMBER else _TOO_LARGE


def _without_pairs(value: Any, place: Place) -> Any:
    if isinstance(value, _Pairs):
        return _object(value, place)
    if isinstance(value, list):
        return [_without_pairs(item, place.item(n)) for n, item in enumerate(value)]
    return value


def _object(pairs: _Pairs, place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in pairs:
        if key in found:
            raise Misfit(place.field(key), "the key is given twice")
        found[key] = _without_pairs(item, place.field(key))
    return found
