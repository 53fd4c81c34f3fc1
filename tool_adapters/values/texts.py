"""Types that are stored as text, each by one rule that loses nothing.

Decides the text of Decimal, datetime, date, timedelta, UUID, bytes and whole numbers of any size.
Every text that is read here is checked by its own pattern: what Python's constructors accept
differs between its versions. Pure.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from .json_schema import Definitions
from .place import Misfit, Place, Schema, named, wrong_type

_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER = re.compile(r"-?\d{1,4000}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.]\d{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<weeks>\d{1,8})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?"
    r"(?:(?P<seconds>\d{1,14})(?:[.](?P<fraction>\d{1,6}))?S)?)?",
    re.ASCII,
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Unfit(ValueError):
    """A value of the right type that has no text; the message says why, without the value."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """One type with its text. `form` says what the text is, for whoever wrote another."""

    kind: type
    form: str
    write: Callable[[Any], str]
    read: Callable[[str], Any]

    def encode(self, value: Any, place: Place, only_given: bool = False) -> str:
        """Return the text. Raises Misfit."""
        if not isinstance(value, self.kind):
            raise wrong_type(place, value, named(self.kind))
        try:
            return self.write(value)
        except Unfit as error:
            raise Misfit(place, str(error)) from None
        except (ValueError, ArithmeticError) as error:
            raise Misfit(place, f"this {named(self.kind)} has no {self.form}") from error

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value. Raises Misfit."""
        if not isinstance(stored, str):
            raise wrong_type(place, stored, f"text: {self.form}")
        try:
            return self.read(stored)
        except Unfit as error:
            raise Misfit(place, str(error)) from None
        except (ValueError, ArithmeticError):
            raise Misfit(place, f"is no {self.form}") from None

    def schema(self, definitions: Definitions) -> Schema:
        """Return the schema of the text."""
        return dict(TEXT_SCHEMAS[self.kind.__name__])


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError
    return found


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise Unfit("NaN and infinities are not JSON")
    return str(value)


def _write_datetime(value: datetime) -> str:
    if value.utcoffset() is None:
        raise Unfit("a datetime without a time zone means another instant on each machine")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _read_datetime(text: str) -> datetime:
    _matched(_DATETIME, text)
    value = datetime.fromisoformat(text)
    if value.tzinfo is None:
        raise Unfit("a datetime without a time zone means another instant on each machine")
    return value.astimezone(UTC)


def _write_date(value: date) -> str:
    if isinstance(value, datetime):
        raise Unfit("is datetime, and not date")
    return value.isoformat()


def _write_duration(value: timedelta) -> str:
    """Return days and seconds, never months or years, which have no fixed length."""
    sign, size = ("-", -value) if value < timedelta() else ("", value)
    fraction = f".{size.microseconds:06}" if size.microseconds else ""
    return f"{sign}P{size.days}DT{size.seconds}{fraction}S"


def _read_duration(text: str) -> timedelta:
    found = _matched(_DURATION, text)
    if text[-1] in "PT":
        raise ValueError
    parts = {
        name: int(found[name] or 0) for name in ("weeks", "days", "hours", "minutes", "seconds")
    }
    microseconds = int((found["fraction"] or "").ljust(6, "0"))
    size = timedelta(**parts, microseconds=microseconds)
    return -size if found["sign"] else size


def _read_bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)


def _write_bytes(value: bytes | bytearray) -> str:
    return base64.b64encode(value).decode("ascii")


def _write_integer(value: int) -> str:
    if isinstance(value, bool):
        raise Unfit("is bool, and not int")
    return str(int(value))


_BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
TEXT_SCHEMAS: dict[str, Schema] = {
    "int": {"type": "string", "pattern": r"^-?\d+$"},
    "Decimal": {"type": "string", "format": "decimal"},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "timedelta": {"type": "string", "format": "duration"},
    "UUID": {"type": "string", "format": "uuid"},
    "bytes": _BASE64,
    "bytearray": _BASE64,
}
INTEGER_TEXT = TextRule(
    int,
    "whole number as text",
    _write_integer,
    lambda text: int(_matched(_INTEGER, text)[0]),
)
_DECIMAL_TEXT = TextRule(
    Decimal,
    "decimal number as text",
    _write_decimal,
    lambda text: Decimal(_matched(_DECIMAL, text)[0]),
)
_DATE_TEXT = TextRule(
    date,
    "ISO 8601 date",
    _write_date,
    lambda text: date.fromisoformat(_matched(_DATE, text)[0]),
)
TEXT_RULES: dict[type, TextRule] = {
    Decimal: _DECIMAL_TEXT,
    datetime: TextRule(
        datetime, "ISO 8601 date and time with its zone", _write_datetime, _read_datetime
    ),
    date: _DATE_TEXT,
    timedelta: TextRule(timedelta, "ISO 8601 duration", _write_duration, _read_duration),
    UUID: TextRule(UUID, "UUID", str, lambda text: UUID(_matched(_UUID, text)[0])),
    bytes: TextRule(bytes, "base64 text", _write_bytes, _read_bytes),
    bytearray: TextRule(
        bytearray, "base64 text", _write_bytes, lambda text: bytearray(_read_bytes(text))
    ),
}
"""datetime stands before date, of which it is a subclass."""
