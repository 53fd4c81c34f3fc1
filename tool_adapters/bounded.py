"""The last look at what an adapter concluded: whatever passes here can be stored.

Pure. The effect is never doubted because its result is too large or no JSON: the result is dropped
and its digest kept. Texts lose what Postgres cannot hold.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any, TypeVar

from ..outbox.errors import InvalidIntent
from ..outbox.identity import canonical
from ..outbox.outcome import Accepted, Applied, NotApplied, Unknown
from .contract import Found
from .storable import storable, storable_seconds, storable_text

Answer = TypeVar("Answer")


def bounded(answer: Answer, result_limit_bytes: int) -> Answer:
    """Return an outcome or a probe's answer with storable texts and a bounded result.

    Anything else (a request, an absent) is returned as it is.
    """
    if isinstance(answer, Applied | Accepted):
        result, digest = _bounded_result(answer.result, result_limit_bytes)
        known = digest if answer.result_digest is None else storable_text(answer.result_digest)
        return replace(
            answer, ref=_text(answer.ref), result=result, key_store=bool(answer.key_store),
            result_digest=known,
        )  # fmt: skip
    if isinstance(answer, Found):
        result, _ = _bounded_result(answer.result, result_limit_bytes)
        others = tuple(storable_text(ref) for ref in answer.others)
        return replace(answer, ref=_text(answer.ref), result=result, others=others)
    if isinstance(answer, NotApplied):
        return _bounded_refusal(answer)  # type: ignore[return-value]
    if isinstance(answer, Unknown):
        reason, code = storable_text(answer.reason), storable_text(answer.code)
        return replace(answer, reason=reason, code=code)
    return answer


def _bounded_refusal(answer: NotApplied) -> NotApplied:
    return NotApplied(
        storable_text(answer.reason), storable_text(answer.code), bool(answer.transient),
        storable_seconds(answer.retry_after_seconds), bool(answer.key_store),
    )  # fmt: skip


def _text(value: Any) -> str | None:
    return None if value is None else storable_text(value)


def _bounded_result(result: Any, limit_bytes: int) -> tuple[Any, str | None]:
    """Return the result, or None with the digest of what was dropped."""
    if result is None:
        return None, None
    value = storable(result)
    try:
        canonical(value, limit_bytes, "result")
    except InvalidIntent:
        value = None
    if value is not None:
        return value, None
    try:
        shown = repr(result)
    except Exception:  # noqa: BLE001 - a tool's own object: the effect stands without its digest
        return None, None
    return None, hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()
