"""Reading an HTTP answer: headers, JSON pointers, Retry-After, and whether our key came back.

Decides nothing about outcomes (`classify_http` does). Pure: the standard library, `wire` and
`contract`. A wish to wait is read without a clock: a date counts from the answer's own `Date`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from .contract import Headers, HttpEvidence
from .storable import storable_text
from .wire import wire_forms

RETRY_AFTER_LIMIT_SECONDS = 3600.0
"""Longest wish of a tool that is followed: a row must not vanish from sight for days."""

MISSING: Any = object()
"""What a JSON pointer yields where nothing stands."""


@dataclass(frozen=True, slots=True)
class EchoHeader:
    """The tool repeats the wire key, or a derived form, in this header of a 2xx."""

    name: str


@dataclass(frozen=True, slots=True)
class EchoField:
    """The tool repeats the wire key, or a derived form, at this JSON pointer of the body."""

    pointer: str


@dataclass(frozen=True, slots=True)
class EchoRef:
    """The tool's contract says that an object id at this JSON pointer means the key counted."""

    pointer: str


EchoPlace: TypeAlias = EchoHeader | EchoField | EchoRef


def header(headers: Headers, name: str) -> str | None:
    """Return the first header of that name, or None."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def json_body(evidence: HttpEvidence) -> Any:
    """Return the parsed body, or MISSING where it is empty, cut off, encoded or no JSON.

    Only an object or a list counts: a number that was cut off still looks like a number.
    """
    encoding = header(evidence.headers, "content-encoding")
    if not evidence.body or encoding not in (None, "identity"):
        return MISSING
    try:
        value = json.loads(evidence.body)
    except (ValueError, RecursionError):
        return MISSING
    return value if isinstance(value, dict | list) else MISSING


def _step(value: Any, token: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(token, MISSING)
    if isinstance(value, list) and token.isascii() and token.isdigit():
        return value[int(token)] if int(token) < len(value) else MISSING
    return MISSING


def at_pointer(document: Any, pointer: str) -> Any:
    """Return what stands at an RFC 6901 JSON pointer, or MISSING."""
    value = document
    for token in pointer.split("/")[1:]:
        if value is MISSING:
            return MISSING
        value = _step(value, token.replace("~1", "/").replace("~0", "~"))
    return value


def reference_at(document: Any, pointer: str | None) -> str | None:
    """Return the object id at the pointer as text, or None where there is no usable one."""
    if pointer is None or document is MISSING:
        return None
    value = at_pointer(document, pointer)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return storable_text(value) or None


def carries_echo(place: EchoPlace, wire_key: str, evidence: HttpEvidence, document: Any) -> bool:
    """Return whether the answer shows, in the declared place, that the tool saw our key."""
    if isinstance(place, EchoHeader):
        return header(evidence.headers, place.name) in wire_forms(wire_key)
    if document is MISSING:
        return False
    if isinstance(place, EchoRef):
        return reference_at(document, place.pointer) is not None
    value = at_pointer(document, place.pointer)
    return isinstance(value, str) and value in wire_forms(wire_key)


def is_true(value: str | None) -> bool:
    """Return whether a replay header's value says yes."""
    return value is not None and value.strip().lower() in ("true", "1", "yes", "?1")


def _seconds_until(date_text: str, headers: Headers) -> float | None:
    reference = header(headers, "date")
    if reference is None:
        return None
    try:
        wait = parsedate_to_datetime(date_text) - parsedate_to_datetime(reference)
    except (ValueError, TypeError, OverflowError):
        return None
    return wait.total_seconds()


def retry_after_seconds(headers: Headers) -> float | None:
    """Return the tool's wish to wait, bounded to an hour, or None for none or nonsense."""
    text = header(headers, "retry-after")
    if text is None:
        return None
    try:
        seconds: float | None = float(text)
    except ValueError:
        seconds = _seconds_until(text, headers)
    if seconds is None or not math.isfinite(seconds):
        return None
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT_SECONDS)
