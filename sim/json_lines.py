"""On which line each value of a JSON text stands, so that an error can say where.

Pure, standard library only. The text has been parsed before: it is well-formed here.
"""

from __future__ import annotations

import json
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
_SPACE = " \t\r\n"
_DECODER = json.JSONDecoder()


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, from 1 on, of every value by its path."""
    lines: dict[Path, int] = {}
    _value(text, _skip(text, 0), (), lines)
    return lines


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _value(text: str, at: int, path: Path, lines: dict[Path, int]) -> int:
    lines[path] = text.count("\n", 0, at) + 1
    if text[at] == "{":
        return _members(text, at, path, lines)
    if text[at] == "[":
        return _items(text, at, path, lines)
    return _DECODER.raw_decode(text, at)[1]


def _members(text: str, at: int, path: Path, lines: dict[Path, int]) -> int:
    at = _skip(text, at + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        at = _skip(text, _value(text, at, (*path, name), lines))
        at = _skip(text, at + 1) if text[at] == "," else at
    return at + 1


def _items(text: str, at: int, path: Path, lines: dict[Path, int]) -> int:
    at, number = _skip(text, at + 1), 0
    while text[at] != "]":
        at = _skip(text, _value(text, at, (*path, number), lines))
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1
    return at + 1
