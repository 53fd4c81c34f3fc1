"""What makes two requests the same request: the digest that a send mark stores.

Decides which headers belong to a request's identity. Pure, standard library only.
A header that is missing from the lists counts: a digest that differs too easily costs a resend,
one that differs too rarely would send another request under a used key.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_VOLATILE_NAMES = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "date",
        "x-amz-date",
        "x-amz-security-token",
        "x-api-key",
        "signature",
        "signature-input",
        "traceparent",
        "tracestate",
        "baggage",
        "b3",
        "user-agent",
        "x-request-id",
        "x-correlation-id",
    }
)
_VOLATILE_PARTS = ("signature", "x-b3-", "trace-id", "sentry-")


def _is_volatile(name: str) -> bool:
    return name in _VOLATILE_NAMES or any(part in name for part in _VOLATILE_PARTS)


def _stable_value(name: str, value: str) -> str:
    if name == "content-type" and value.lower().startswith("multipart/"):
        return value.split(";", 1)[0]
    return value


def stable_headers(headers: tuple[tuple[str, str], ...]) -> list[list[str]]:
    """Return the headers that belong to a request's identity, lower-cased and in order of name."""
    lowered = [(name.lower(), value) for name, value in headers]
    kept = [(name, value) for name, value in lowered if not _is_volatile(name)]
    return [[name, _stable_value(name, value)] for name, value in sorted(kept)]


def digest_of(kind: str, parts: Any, body: bytes) -> str:
    """Return the SHA-256 over a kind, JSON parts and bytes, without room for ambiguity."""
    text = json.dumps([kind, parts], sort_keys=True, separators=(",", ":"))
    head = text.encode()
    return hashlib.sha256(len(head).to_bytes(8, "big") + head + body).hexdigest()
