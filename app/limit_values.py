"""Reads the setting `limits`: which of the protocol's limits differ from their defaults.

One setting for all of them, so that a file (a table), the environment and a flag
(`name=value,name=value`) say the same. Raises ValueError, which the settings turn into an error
that names the source.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..outbox.contract import ToolContract
from ..outbox.defaults import Limits

_COUNTS = {field.name for field in fields(Limits) if field.type == "int"}
_NAMES = {field.name for field in fields(Limits)}
# A row keeps the declaration that it was claimed under, so these stand in the tool's code. The
# allowance is in both: the outbox's own deadlines are checked against it too.
_OF_TOOLS = {field.name for field in fields(ToolContract)} & _NAMES - {"clock_allowance_seconds"}


def limit_values(value: Any) -> dict[str, float | int]:
    """Return limits by name. Durations are seconds, sizes bytes; none may be negative."""
    pairs = value.items() if isinstance(value, Mapping) else _pairs(str(value))
    return {_known(str(name)): _number(str(name), raw) for name, raw in pairs}


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, raw = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not name=value")
        pairs.append((name.strip(), raw.strip()))
    return pairs


def _known(name: str) -> str:
    if name not in _NAMES:
        near = difflib.get_close_matches(name, _NAMES, 1)
        hint = f", did you mean {near[0]}" if near else ""
        raise ValueError(f"no limit is called {name!r}{hint}")
    if name in _OF_TOOLS:
        raise ValueError(f"{name} belongs to each tool: declare it there")
    return name


def _number(name: str, raw: Any) -> float | int:
    try:
        number = int(raw) if name in _COUNTS else float(raw)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} takes a number, not {raw!r}") from error
    if not 0 <= number < float("inf"):
        raise ValueError(f"{name} may not be {number}")
    return number
