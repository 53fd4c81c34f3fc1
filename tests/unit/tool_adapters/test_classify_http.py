"""What HTTP evidence proves: every row of the evidence table, and what must never be concluded."""

import json
from typing import Any

import pytest

from ackbox.outbox.contract import KeyKind
from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from ackbox.tool_adapters.classify_http import HttpRules, classify_http
from ackbox.tool_adapters.contract import HttpEvidence, NotWritten, OverLimit, Phase
from ackbox.tool_adapters.http_answer import EchoField, EchoHeader, EchoRef, retry_after_seconds
from ackbox.tool_adapters.wire import wire_uuid

KEY = "run-1:step"
KEYLESS = HttpRules()
KEYED = HttpRules(KeyKind.IDEMPOTENT, EchoHeader("Idempotency-Key"), "Idempotent-Replayed")
BODY_ECHO = HttpRules(KeyKind.IDEMPOTENT, EchoField("/external_id"))
REF_ECHO = HttpRules(KeyKind.IDEMPOTENT, EchoRef("/id"))


def answer(status: int, document: Any = None, *headers: tuple[str, str]) -> HttpEvidence:
    body = b"" if document is None else json.dumps(document).encode()
    return HttpEvidence(Phase.COMPLETE, status, headers, body, framing_complete=True)


def cut(status: int, body: bytes = b'{"id": ') -> HttpEvidence:
    return HttpEvidence(Phase.STATUS, status, (), body, "RemoteProtocolError")


@pytest.mark.parametrize("rules", [KEYLESS, KEYED, BODY_ECHO, REF_ECHO])
@pytest.mark.parametrize(
    ("evidence", "code", "transient"),
    [
        (NotWritten(), "not_written", True),
        (HttpEvidence(Phase.NOT_SENT, error="ConnectError: refused"), "not_sent", True),
        (HttpEvidence(Phase.NOT_SENT, error="ConnectTimeout: timed out"), "not_sent", True),
        (HttpEvidence(Phase.NOT_SENT, error="InvalidURL"), "not_sent", False),
        (HttpEvidence(Phase.NOT_SENT, error="LocalProtocolError"), "not_sent", False),
        (HttpEvidence(Phase.SENDING, error="WriteTimeout: timed out"), "request_cut", True),
        (HttpEvidence(Phase.SENDING, error="RemoteProtocolError"), "request_cut", True),
    ],
)
def test_a_request_that_did_not_leave_whole_proves_nothing_happened(
    rules: HttpRules, evidence: HttpEvidence, code: str, transient: bool
) -> None:
    """The trace phase decides, whatever the exception was."""
    outcome = classify_http(rules, KEY, evidence)
    assert isinstance(outcome, NotApplied)
    assert (outcome.code, outcome.transient) == (code, transient)


@pytest.mark.parametrize("error", ["ReadTimeout", "ReadError", "RemoteProtocolError", "WriteError"])
def test_a_whole_request_without_a_status_is_unknown(error: str) -> None:
    """The server may have read nothing or have committed: the exception cannot tell."""
    outcome = classify_http(KEYED, KEY, HttpEvidence(Phase.SENT, error=error))
    assert outcome == Unknown(error, "no_answer", Answer.NONE)


REFUSALS = [
    400,
    401,
    403,
    404,
    405,
    406,
    410,
    411,
    413,
    414,
    415,
    417,
    421,
    422,
    425,
    426,
    428,
    431,
]


@pytest.mark.parametrize("status", [*REFUSALS, 402, 429])
def test_refusing_statuses_prove_that_this_request_did_nothing(status: int) -> None:
    """Transient are only those that ask for the same request again."""
    outcome = classify_http(KEYED, KEY, answer(status, {"error": "no"}))
    assert isinstance(outcome, NotApplied)
    assert outcome.transient == (status in (421, 425, 429))
    assert not outcome.key_store


@pytest.mark.parametrize(
    "status", [100, 101, 300, 301, 302, 303, 307, 308, 408, 409, 418, 423, 499]
)
def test_other_statuses_below_500_are_unknown(status: int) -> None:
    """Redirects, 408, 409 and whatever is not recognised prove nothing."""
    assert isinstance(classify_http(KEYED, KEY, answer(status)), Unknown)


@pytest.mark.parametrize("status", [500, 501, 502, 503, 504, 520, 529, 599])
def test_server_errors_are_unknown_even_with_retry_after(status: int) -> None:
    """A 5xx may come after the effect; a replayed one may hide it."""
    for headers in [(), (("Retry-After", "1"),), (("Idempotent-Replayed", "true"),)]:
        assert isinstance(classify_http(KEYED, KEY, answer(status, None, *headers)), Unknown)


@pytest.mark.parametrize("status", [404, 409, 410])
def test_a_missing_prepared_object_is_unknown(status: int) -> None:
    """It may have been sent, or removed by a person."""
    outcome = classify_http(KEYED, KEY, answer(status), on_handle=True)
    assert isinstance(outcome, Unknown)
    assert outcome.code == "handle_gone"


@pytest.mark.parametrize(
    ("status", "document", "code"),
    [
        (400, {"error": {"type": "idempotency_error"}}, "key_reused"),
        (400, {"error": "IdempotentRequestError"}, "key_reused"),
        (409, {"name": "invalid_idempotent_request"}, "key_reused"),
        (422, {"detail": "Idempotency-Key was used with another body"}, "key_reused"),
        (409, {"code": "idempotency_key_in_use"}, "key_in_flight"),
        (409, {"name": "concurrent_idempotent_requests"}, "key_in_flight"),
    ],
)
def test_answers_about_the_key_are_unknown(status: int, document: Any, code: str) -> None:
    """They say that an earlier request under the key exists, so they never mean "nothing"."""
    outcome = classify_http(KEYED, KEY, answer(status, document))
    assert isinstance(outcome, Unknown)
    assert outcome.code == code


def test_an_object_that_exists_under_our_identity_may_be_our_own() -> None:
    """With client-chosen ids "already exists" speaks of an earlier send; elsewhere it does not."""
    taken = answer(422, {"error": "id already exists"})
    assert isinstance(classify_http(HttpRules(KeyKind.CLIENT_ID), KEY, taken), Unknown)
    assert isinstance(classify_http(KEYED, KEY, taken), NotApplied)


@pytest.mark.parametrize("status", [400, 409, 422])
def test_a_refusal_whose_body_was_not_read_may_speak_about_the_key(status: int) -> None:
    """Cut off, over the limit or packed: what it says about the key is not known."""
    packed = answer(status, None, ("Content-Encoding", "gzip"))
    long = HttpEvidence(Phase.STATUS, status, over_limit=True)
    for evidence in [cut(status), long, packed]:
        assert isinstance(classify_http(KEYED, KEY, evidence), Unknown)


def test_a_declared_duplicate_code_is_applied() -> None:
    """A provider that refuses a used key in place of replaying proves the first request."""
    rules = HttpRules(KeyKind.IDEMPOTENT, REF_ECHO.echo, duplicate_codes=frozenset({"dup"}))
    assert classify_http(rules, KEY, answer(400, {"code": "dup"})) == Applied(key_store=True)
    assert isinstance(classify_http(rules, KEY, answer(400, {"code": "other"})), NotApplied)


NOTHINGS: list[Any] = [None, [], {}]
EVERY_EVIDENCE_OF_SUCCESS = [
    *(answer(status, document) for status in (200, 201, 202, 204) for document in NOTHINGS),
    answer(201, {"error": "idempotency_error"}),
    cut(200),
    cut(201, b""),
    HttpEvidence(Phase.STATUS, 201, over_limit=True),
    HttpEvidence(Phase.COMPLETE, 201, (), b"no json", framing_complete=True),
    HttpEvidence(Phase.COMPLETE, 201, (), b"7", framing_complete=True),
    HttpEvidence(Phase.COMPLETE, 201, (), b"\xff\xfe{", framing_complete=False),
]


@pytest.mark.parametrize("rules", [KEYLESS, KEYED, BODY_ECHO, REF_ECHO])
@pytest.mark.parametrize("evidence", EVERY_EVIDENCE_OF_SUCCESS)
def test_a_success_status_is_never_not_applied(rules: HttpRules, evidence: HttpEvidence) -> None:
    """Without an echo declared it is Applied or Accepted, with one it may be Unknown."""
    outcome = classify_http(rules, KEY, evidence)
    assert not isinstance(outcome, NotApplied)
    if rules is KEYLESS:
        assert isinstance(outcome, Accepted if evidence.status == 202 else Applied)


def test_202_is_accepted() -> None:
    """The tool took it and finishes later."""
    assert classify_http(KEYLESS, KEY, answer(202, {"id": 7})) == Accepted("7", {"id": 7})


def test_a_cut_off_success_leaves_the_key_trusted_and_a_whole_one_without_echo_does_not() -> None:
    """The two misses are told apart by whether HTTP proves the end of the body."""
    for rules in (KEYED, BODY_ECHO, REF_ECHO):
        assert _answer_of(classify_http(rules, KEY, cut(201))) is Answer.CUT_OFF
        assert _answer_of(classify_http(rules, KEY, answer(201))) is Answer.COMPLETE
        assert _answer_of(classify_http(rules, KEY, answer(201, {"x": 1}))) is Answer.COMPLETE
        long = HttpEvidence(Phase.STATUS, 201, over_limit=True)
        assert _answer_of(classify_http(rules, KEY, long)) is Answer.COMPLETE
    assert classify_http(KEYLESS, KEY, cut(201)) == Applied()


def _answer_of(outcome: Outcome) -> Answer:
    assert isinstance(outcome, Unknown)
    return outcome.answer


@pytest.mark.parametrize(
    ("rules", "evidence"),
    [
        (KEYED, answer(201, {"id": "t1"}, ("idempotency-key", KEY))),
        (KEYED, answer(200, {"id": "t1"}, ("Idempotent-Replayed", "true"))),
        (BODY_ECHO, answer(201, {"id": "t1", "external_id": KEY})),
        (BODY_ECHO, answer(201, {"id": "t1", "external_id": wire_uuid(KEY)})),
        (REF_ECHO, answer(201, {"id": "t1"})),
    ],
)
def test_the_declared_echo_makes_a_success_applied(
    rules: HttpRules, evidence: HttpEvidence
) -> None:
    """In a header, in the object, as a replay, or as an id where the contract says so."""
    outcome = classify_http(rules, KEY, evidence)
    assert isinstance(outcome, Applied)
    assert outcome.ref == "t1"
    assert outcome.key_store == (evidence.status == 200)


@pytest.mark.parametrize("echoed", [KEY + "~g1", KEY[:-1], "", None, 7])
def test_another_intents_key_is_no_echo(echoed: Any) -> None:
    """Keys are compared whole: one generation's key is a prefix of the next one's."""
    evidence = answer(201, {"id": "t1", "external_id": echoed}, ("Idempotency-Key", str(echoed)))
    assert isinstance(classify_http(BODY_ECHO, KEY, evidence), Unknown)
    assert isinstance(classify_http(KEYED, KEY, evidence), Unknown)


def test_a_replayed_refusal_speaks_for_every_send() -> None:
    """It came out of the key store; the same status without the header is this request's own."""
    replayed = classify_http(KEYED, KEY, answer(422, {"e": 1}, ("Idempotent-Replayed", "true")))
    assert isinstance(replayed, NotApplied)
    assert replayed.key_store
    claimed = classify_http(KEYLESS, KEY, answer(422, {"e": 1}, ("Idempotent-Replayed", "true")))
    assert isinstance(claimed, NotApplied)
    assert not claimed.key_store


def test_what_postgres_cannot_store_costs_the_result_and_not_the_effect() -> None:
    """NUL in an answer: Applied, without result."""
    evidence = answer(201, {"id": "a\x00b"}, ("Idempotency-Key", KEY))
    outcome = classify_http(KEYED, KEY, evidence)
    assert isinstance(outcome, Applied)
    assert (outcome.ref, outcome.result) == ("a\ufffdb", None)
    assert outcome.result_digest


def test_evidence_of_another_kind_is_unknown() -> None:
    """A function's evidence says nothing about an HTTP request."""
    assert isinstance(classify_http(KEYED, KEY, OverLimit()), Unknown)


DATE = ("Date", "Mon, 30 Nov 2026 10:00:00 GMT")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("Mon, 30 Nov 2026 10:00:30 GMT", 30.0),
        ("Mon, 30 Nov 2026 09:00:00 GMT", 0.0),
        ("-5", 0.0),
        ("999999999", 3600.0),
        ("Tue, 30 Nov 2027 10:00:00 GMT", 3600.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        ("Mon, 99 Foo 2026 10:00:30 GMT", None),
    ],
)
def test_retry_after_is_read_in_every_form_and_bounded(text: str, seconds: float | None) -> None:
    """Seconds, a date counted from the answer's own date, or nonsense that is ignored."""
    assert retry_after_seconds((DATE, ("retry-after", text))) == seconds


def test_a_rate_limit_carries_its_wish() -> None:
    """429 always, 403 where it names a time."""
    for status in (429, 403):
        outcome = classify_http(KEYED, KEY, answer(status, None, ("Retry-After", "9")))
        assert isinstance(outcome, NotApplied)
        assert (outcome.transient, outcome.retry_after_seconds) == (True, 9.0)


def test_a_retry_date_without_a_date_to_count_from_is_ignored() -> None:
    """No clock of ours is compared with the tool's."""
    assert retry_after_seconds((("Retry-After", "Mon, 30 Nov 2026 10:00:30 GMT"),)) is None
