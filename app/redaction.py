"""What a log line may hold: names, counts, times and states; no arguments, results or secrets.

Three nets, since a log call is easily written without thought: fields whose *name* says that they
hold payload or secrets lose their value; *values* keep only plain types, anything else is reduced
to the name of its class; *texts* lose passwords in URLs, credentials and tracebacks. An exception
is told by its class, its code and its frames; its message and arguments may quote anything.
May import the standard library and `outbox.errors`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, MutableMapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from ..outbox.errors import AckboxError
from .urls import SecretUrl

REDACTED = "[redacted]"
# Whole names that hold a tool's payload.
PAYLOAD_NAMES = frozenset(
    {"args", "arguments", "kwargs", "params", "parameters", "locals", "description", "data"}
    | {"result", "results", "body", "payload", "request", "response", "content", "headers"}
)
# Parts of names that hold secrets.
SECRET_PARTS = (
    *("password", "passwd", "pwd", "secret", "token", "authorization"),
    *("credential", "cookie", "api_key", "apikey", "private_key"),
)
# Names that look like secrets and are counts of ours; only a number passes.
COUNT_NAMES = frozenset({"tokens", "wake_tokens"})

_PLAIN = (datetime, date, time, timedelta, Decimal, PurePath, UUID, SecretUrl)
_DEPTH_LIMIT = 6
_FRAMES_LIMIT = 20
_CAUSES_LIMIT = 5
_SQLSTATE = re.compile(r"[0-9A-Z]{5}")
_ACCOUNT_IN_URL = re.compile(r"://[^\s\"'<>]*@")
_CREDENTIAL = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}")
_NAMED_SECRET = re.compile(
    r"(?i)\b(\w*(?:" + "|".join(SECRET_PARTS) + r")\w*)([\"']?\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):.*", re.DOTALL)


def redact_fields(fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Clean every field of a log entry; names with a leading underscore are the logger's own."""
    for name, value in fields.items():
        if not name.startswith("_"):
            fields[name] = clean_value(value, name)
    return fields


def clean_value(value: Any, name: str = "", depth: int = 0) -> Any:
    """Reduce a value to what may be logged under this name."""
    if _is_secret_name(name, value):
        return REDACTED
    if isinstance(value, BaseException):
        return describe_exception(value)
    if isinstance(value, Enum):
        return clean_value(value.value, name, depth)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return clean_text(value)
    return _clean_object(value, name, depth)


def clean_text(text: str) -> str:
    """Take passwords, credentials and tracebacks out of a text."""
    text = _TRACEBACK.sub(f"{REDACTED} traceback", text)
    text = _ACCOUNT_IN_URL.sub("://***@", text)
    text = _CREDENTIAL.sub(rf"\1 {REDACTED}", text)
    return _NAMED_SECRET.sub(rf"\1\2{REDACTED}", text)


def describe_exception(error: BaseException) -> dict[str, Any]:
    """Tell an exception by class, code, frames and cause; its message only where it is ours."""
    return _describe(error, _CAUSES_LIMIT)


def _describe(error: BaseException, causes_left: int) -> dict[str, Any]:
    told: dict[str, Any] = {"type": f"{type(error).__module__}.{type(error).__qualname__}"}
    told |= _known_details(error)
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_LIMIT:]
    told["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and causes_left > 0:
        told["cause"] = _describe(cause, causes_left - 1)
    return told


def _known_details(error: BaseException) -> dict[str, str]:
    """Pick the details that cannot hold payload."""
    if isinstance(error, AckboxError):
        return {key: clean_text(value) for key, value in error.as_dict().items()}
    state = getattr(error, "sqlstate", None) or getattr(
        getattr(error, "orig", None), "sqlstate", None
    )
    if isinstance(state, str) and _SQLSTATE.fullmatch(state):
        return {"sqlstate": state}
    if isinstance(error, OSError) and isinstance(error.errno, int):
        return {"errno": str(error.errno)}
    return {}


def _is_secret_name(name: str, value: Any) -> bool:
    lowered = name.lower().replace("-", "_")
    if lowered in COUNT_NAMES:
        return not isinstance(value, int)
    return lowered in PAYLOAD_NAMES or any(part in lowered for part in SECRET_PARTS)


def _clean_object(value: Any, name: str, depth: int) -> Any:
    if depth >= _DEPTH_LIMIT:
        return f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        return {
            clean_text(str(key)): clean_value(inner, str(key), depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [clean_value(inner, name, depth + 1) for inner in value]
    if isinstance(value, _PLAIN):
        return clean_text(str(value))
    return f"<{type(value).__name__}>"
