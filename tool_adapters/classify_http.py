"""What one HTTP exchange proves: trace phase first, status second, exception never alone.

Decides Applied, Accepted, NotApplied or Unknown from the evidence and the tool's declared rules.
Pure: `outbox`, `contract`, `http_answer` and `bounded`. Two rules stand above all: a 2xx is never
NotApplied, and whatever this module does not recognise is Unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..outbox.contract import KeyKind
from ..outbox.defaults import DEFAULTS
from ..outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from .bounded import bounded
from .contract import Evidence, HttpEvidence, NotWritten, Phase, foreign_evidence, unsent_outcome
from .http_answer import (
    MISSING,
    EchoPlace,
    at_pointer,
    carries_echo,
    header,
    is_true,
    json_body,
    reference_at,
    retry_after_seconds,
)

NOTHING_DONE = frozenset(
    {400, 401, 402, 403, 404, 405, 406, 407, 410, 411, 413, 414, 415, 417, 421, 422, 425, 426}
    | {428, 429, 431}
)
"""Statuses by which an API says that this request changed nothing. 408 and 409 say no such."""

TRANSIENT = frozenset({421, 425, 429})
"""Those of them that ask for the same request again."""

KEY_STATUSES = frozenset({400, 409, 422})
"""Where providers hide what they say about the key itself."""

HANDLE_GONE = frozenset({404, 409, 410})
"""On a stored handle: it may have been sent, or removed by a person."""

PERMANENT_ERRORS = frozenset(
    {"InvalidURL", "UnsupportedProtocol", "LocalProtocolError", "ValueError", "TypeError"}
)
"""Nothing was sent, and sending the same again cannot help."""

_KEY_WORDS = {
    KeyKind.IDEMPOTENT: (b"idempot",),
    # Where our key is the object's identity, "it exists already" may speak of our own object.
    KeyKind.CLIENT_ID: (b"idempot", b"duplicate", b"exist", b"taken", b"unique"),
}
_IN_FLIGHT_WORDS = (b"in_use", b"in use", b"in progress", b"in_progress", b"in-flight", b"concurr")


@dataclass(frozen=True, slots=True)
class HttpRules:
    """What classification needs to know of a tool."""

    key_kind: KeyKind = KeyKind.NONE
    echo: EchoPlace | None = None
    """None: the tool never echoes, and its 2xx is Applied."""
    replay_header: str | None = None
    """Header that is true where the answer came out of the provider's key store."""
    ref_pointer: str | None = "/id"
    accepted_statuses: frozenset[int] = frozenset({202})
    done_statuses: frozenset[int] = frozenset()
    """Further statuses that prove the wanted state, such as 404 for an undo by deletion."""
    duplicate_codes: frozenset[str] = frozenset()
    """Values of the body's `code` that say: a request with this key was taken before."""


def classify_http(
    rules: HttpRules, wire_key: str, evidence: Evidence, *, on_handle: bool = False
) -> Outcome:
    """Return what the evidence of an effect request proves.

    `on_handle`: the request addressed an object that an earlier harmless request prepared.
    """
    if isinstance(evidence, NotWritten):
        return unsent_outcome(evidence)
    if not isinstance(evidence, HttpEvidence):
        return foreign_evidence(evidence)
    if evidence.status is None:
        return _without_status(evidence)
    if 200 <= evidence.status < 300:
        return _success(rules, wire_key, evidence)
    return _by_status(rules, evidence, evidence.status, on_handle)


def _without_status(evidence: HttpEvidence) -> Outcome:
    """Judge by phase: only a request that did not leave whole proves anything."""
    reason = evidence.error or "no answer"
    if evidence.phase is Phase.NOT_SENT:
        permanent = reason.split(":", 1)[0] in PERMANENT_ERRORS
        return NotApplied(reason, code="not_sent", transient=not permanent)
    if evidence.phase is Phase.SENDING:
        return NotApplied(reason, code="request_cut", transient=True)
    return Unknown(reason)


def _success(rules: HttpRules, wire_key: str, evidence: HttpEvidence) -> Outcome:
    document = json_body(evidence)
    replayed = _is_replay(rules, evidence)
    if rules.echo is None:
        return _happened(rules, evidence, document, replayed)
    ended = evidence.framing_complete or evidence.over_limit
    if document is MISSING and not ended:
        return Unknown("the answer was cut off", code="cut_off", answer=Answer.CUT_OFF)
    if replayed or carries_echo(rules.echo, wire_key, evidence, document):
        return _happened(rules, evidence, document, replayed)
    return Unknown("a success without our key", code="protocol_miss", answer=Answer.COMPLETE)


def _happened(rules: HttpRules, evidence: HttpEvidence, document: Any, replayed: bool) -> Outcome:
    kind = Accepted if evidence.status in rules.accepted_statuses else Applied
    ref = reference_at(document, rules.ref_pointer)
    result = None if document is MISSING else document
    happened = kind(ref=ref, result=result, key_store=replayed)
    return bounded(happened, int(DEFAULTS.args_limit_bytes))


def _is_replay(rules: HttpRules, evidence: HttpEvidence) -> bool:
    if rules.replay_header is None or rules.key_kind is KeyKind.NONE:
        return False
    return is_true(header(evidence.headers, rules.replay_header))


def _by_status(rules: HttpRules, evidence: HttpEvidence, status: int, on_handle: bool) -> Outcome:
    if status in rules.done_statuses:
        return Applied()
    if status in KEY_STATUSES and rules.key_kind is not KeyKind.NONE:
        about_key = _about_key(rules, evidence, status)
        if about_key is not None:
            return about_key
    if on_handle and status in HANDLE_GONE:
        return Unknown(f"status {status} on a prepared object", code="handle_gone")
    if status in NOTHING_DONE:
        return _refusal(rules, evidence, status)
    return Unknown(f"status {status}", code=_unknown_code(status))


def _about_key(rules: HttpRules, evidence: HttpEvidence, status: int) -> Outcome | None:
    """Judge an answer that may speak about the key; None where it speaks about the request."""
    document = json_body(evidence)
    code = MISSING if document is MISSING else at_pointer(document, "/code")
    if isinstance(code, str) and code in rules.duplicate_codes:
        return Applied(key_store=True)
    text = (evidence.body or b"").lower()
    unread = not evidence.framing_complete or header(evidence.headers, "content-encoding")
    if unread and document is MISSING:
        return Unknown(f"status {status} with an unread body", code="unread_refusal")
    if not any(word in text for word in _KEY_WORDS[rules.key_kind]):
        return None
    if any(word in text for word in _IN_FLIGHT_WORDS):
        return Unknown("the same key is in flight at the tool", code="key_in_flight")
    return Unknown("the key was used with another request", code="key_reused")


def _refusal(rules: HttpRules, evidence: HttpEvidence, status: int) -> NotApplied:
    wait = retry_after_seconds(evidence.headers)
    limited = status in TRANSIENT or (status == 403 and wait is not None)
    return NotApplied(
        f"status {status}",
        code=f"http_{status}",
        transient=limited,
        retry_after_seconds=wait if limited else None,
        key_store=_is_replay(rules, evidence),
    )


def _unknown_code(status: int) -> str:
    if 300 <= status < 400:
        return "redirect"
    return "conflict" if status == 409 else f"http_{status}"
