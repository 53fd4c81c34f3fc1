"""Names and digests: intent ids, wire keys, fingerprints, and the rules for stored arguments.

Pure; may import `errors`, `rfc8785` and the standard library. Raises `InvalidIntent` for anything
that cannot be stored and sent without changing on the way.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import uuid
from collections.abc import Mapping
from typing import Any

import rfc8785

from .errors import InvalidIntent

DEFAULT_NAMESPACE = "default"
NAME_LIMIT = 200
"""Longest namespace plus intent_id: with the derived suffixes it still fits a 255 byte header."""
SAFE_INTEGER = 2**53 - 1
DEPTH_LIMIT = 64
"""Deepest nesting of stored JSON; readers recurse, so an unbounded one could end a worker."""
_NAME = re.compile(r"[A-Za-z0-9._:-]+")
RESULTS = "results"
"""The name that the result queue has among the lanes' queues."""
_LANE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DERIVED = re.compile(r"[A-Za-z0-9._:-]+(~undo\d+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NEXT = "ackbox put --help"


def check_name(value: object, what: str) -> str:
    """Return `value` if it is made of [A-Za-z0-9._:-] only; raises InvalidIntent otherwise."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidIntent(
            f"{what} {value!r} may hold letters, digits and . _ : - only, and is not empty",
            next_step=_NEXT,
        )
    return value


def check_identity(namespace: str, intent_id: str) -> None:
    """Raise InvalidIntent unless both names are well-formed and short enough together."""
    check_name(namespace, "namespace")
    check_name(intent_id, "intent_id")
    if len(namespace) + len(intent_id) > NAME_LIMIT:
        raise InvalidIntent(
            f"namespace and intent_id together are longer than {NAME_LIMIT} characters",
            next_step="shorten the run_id or the step name",
        )


def is_lane_name(lane: object) -> bool:
    """Return whether a lane can have a queue: letters, digits, `_`, `-`; and not `results`."""
    return isinstance(lane, str) and lane != RESULTS and _LANE.fullmatch(lane) is not None


def is_derived(intent_id: str) -> bool:
    """Return whether the id is a compensation's (`<id>~undo<generation>`)."""
    return "~" in intent_id and _DERIVED.fullmatch(intent_id) is not None


def undo_id(intent_id: str, generation: int) -> str:
    """Return the id of the compensation of one generation."""
    return f"{intent_id}~undo{generation}"


def wire_key(namespace: str, intent_id: str, generation: int) -> str:
    """Return the Idempotency-Key of one (intent_id, generation): the same for ever.

    A default-namespace key never begins with `~`, so keys of two namespaces never meet.
    """
    front = "" if namespace == DEFAULT_NAMESPACE else f"~{namespace}~"
    back = f"~g{generation}" if generation else ""
    return f"{front}{intent_id}{back}"


def mint_intent_id(namespace: str, run_id: str, step: str) -> str:
    """Return the deterministic id of a planner's step: a lower-case UUID with version-4 bits.

    A planner that restarts mints the same id again. Only names of the plan go in: never a message
    id, a tool-call id, a time or the arguments.
    """
    text = json.dumps([namespace, run_id, step], separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def canonical(value: Any, limit_bytes: int, root: str = "args") -> bytes:
    """Return the RFC 8785 form of a JSON value.

    Raises InvalidIntent with the path of the value for what JSON or a tool could change: NaN,
    infinities, integers beyond 2**53, NUL, lone surrogates, other types, more than `limit_bytes`.
    """
    _check_value(value, root)
    encoded = rfc8785.dumps(value)
    if len(encoded) > limit_bytes:
        raise InvalidIntent(
            f"{root} take {len(encoded)} bytes, the limit is {limit_bytes}",
            next_step="store the data elsewhere and pass its reference",
        )
    return encoded


def fingerprint(tool: str, args: Mapping[str, Any], limit_bytes: int) -> str:
    """Return the SHA-256 over `[tool, args]` in canonical form. Raises InvalidIntent."""
    if not isinstance(args, Mapping):
        raise InvalidIntent("args must be a JSON object", next_step=_NEXT)
    encoded = canonical(dict(args), limit_bytes)
    return hashlib.sha256(b"[" + rfc8785.dumps(tool) + b"," + encoded + b"]").hexdigest()


def _refuse(path: str, problem: str) -> InvalidIntent:
    return InvalidIntent(f"{path}: {problem}", next_step="change the value and put again")


def _check_text(value: str, path: str) -> None:
    if "\x00" in value:
        raise _refuse(path, "text holds U+0000, which Postgres cannot store")
    if _SURROGATE.search(value):
        raise _refuse(path, "text holds a lone surrogate, which UTF-8 cannot carry")


def _check_number(value: int | float, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise _refuse(path, "NaN and infinities are not JSON")
    if abs(value) > SAFE_INTEGER and (isinstance(value, int) or value.is_integer()):
        raise _refuse(path, "integers beyond 2**53 - 1 lose digits on the way; pass text")


def _check_value(value: Any, path: str, depth: int = 0) -> None:
    if depth > DEPTH_LIMIT:
        raise _refuse(path[:80], f"nested deeper than {DEPTH_LIMIT} levels")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, int | float):
        _check_number(value, path)
    elif isinstance(value, dict):
        _check_object(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check_value(item, f"{path}[{index}]", depth + 1)
    else:
        raise _refuse(path, f"{type(value).__name__} is not a JSON type")


def _check_object(value: dict[Any, Any], path: str, depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise _refuse(path, f"the key {key!r} is not text")
        _check_text(key, path)
        _check_value(item, f"{path}.{key}", depth + 1)
