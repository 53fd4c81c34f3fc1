"""Requests of the JSON tool: the same for every send, without secrets, never beyond their URL."""

import re
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.contract import Echo, ProbeStrength, contract_from_document
from ackbox.outbox.errors import ConfigError, InvalidIntent
from ackbox.tool_adapters.contract import (
    Adapter,
    Call,
    CompensationPlan,
    CompensationTarget,
    FunctionCall,
    HttpRequest,
    NoHandle,
    Prepared,
)
from ackbox.tool_adapters.fake_tools import fake_charge, fake_mail, fake_ticket, fake_tools
from ackbox.tool_adapters.http_answer import EchoField, EchoRef, at_pointer
from ackbox.tool_adapters.http_json import Credential, HttpCompensation, HttpJsonTool
from ackbox.tool_adapters.registry import is_adapter
from ackbox.tool_adapters.wire import wire_forms, wire_short, wire_uuid

BASE = "http://tool.test"
CALL = Call("default", "i1", 0, "tickets.create", 1, "i1", {"title": "VPN", "b": [1], "a": None})
SECRET = "s3cr3t-value"


def secret_tool(**changes: Any) -> HttpJsonTool:
    settings: dict[str, Any] = {
        "tool": "t",
        "url": f"{BASE}/t",
        "credential": Credential("TOOL_TOKEN"),
        "environment": {"TOOL_TOKEN": SECRET},
    }
    return HttpJsonTool(**{**settings, **changes})


def test_the_request_is_the_same_for_every_order_of_the_stored_arguments() -> None:
    """The database gives the members back in another order."""
    tool = fake_ticket(BASE)
    turned = replace(CALL, args=dict(reversed(list(CALL.args.items()))))
    assert tool.encode(CALL, None) == tool.encode(turned, None)


def test_the_wire_key_stands_in_its_header_and_in_the_marker() -> None:
    """The header is for the tool's key store, the marker for the probe."""
    request = fake_mail(BASE).encode(CALL, None)
    assert ("Idempotency-Key", "i1") in request.headers
    assert b'"marker":"i1"' in request.body


def test_the_digest_ignores_what_changes_between_two_sends() -> None:
    """Credentials, dates, trace headers and boundaries are not part of a request's identity."""
    one = HttpRequest("POST", BASE, (("Idempotency-Key", "i1"),), b"{}", (("X", "secret"),))
    other = replace(
        one,
        method="post",
        headers=(("traceparent", "00-1"), ("Date", "today"), ("idempotency-key", "i1")),
        credentials=(("X", "rotated"),),
    )
    assert one.digest() == other.digest()
    forms = [(("Content-Type", f"multipart/form-data; boundary={text}"),) for text in "ab"]
    assert len({replace(one, headers=form).digest() for form in forms}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"url": BASE + "/x"},
        {"body": b"{ }"},
        {"headers": (("Idempotency-Key", "i2"),)},
        {"headers": (("X-Key", "i1"),)},
        {"headers": ()},
    ],
)
def test_the_digest_sees_method_target_key_place_and_body(change: dict[str, Any]) -> None:
    """Each of them makes another request."""
    one = HttpRequest("POST", BASE, (("Idempotency-Key", "i1"),), b"{}")
    assert one.digest() != replace(one, **change).digest()


def test_the_digest_of_a_function_call_sees_version_key_and_arguments() -> None:
    """The context is not part of it: a second send has another count."""
    one = FunctionCall("t", 1, "k", {"a": 1, "b": 2}, context=CALL)
    assert one.digest() == replace(one, args={"b": 2, "a": 1}, context=None).digest()
    for change in ({"version": 2}, {"wire_key": "l"}, {"args": {"a": 1}}, {"tool": "u"}):
        assert one.digest() != replace(one, **change).digest()


def test_a_secret_is_sent_and_shown_nowhere() -> None:
    """It stands in the credentials only: not in a repr, a digest or the contract."""
    tool = secret_tool()
    request = tool.encode(CALL, None)
    assert request.credentials == (("Authorization", f"Bearer {SECRET}"),)
    shown = f"{tool!r} {request!r} {tool.contract.document()}"
    assert SECRET not in shown
    assert request.digest() == secret_tool(environment={"TOOL_TOKEN": "x"}).encode(CALL, 0).digest()


def test_arguments_are_shown_in_no_repr() -> None:
    """Calls and requests are logged; what they carry is not."""
    request = fake_ticket(BASE).encode(CALL, None)
    assert "VPN" not in repr(CALL) + repr(request)


def test_a_missing_secret_fails_the_build_and_names_the_variable() -> None:
    """Nothing is sent, and the intent is given back."""
    with pytest.raises(ConfigError, match="TOOL_TOKEN"):
        secret_tool(environment={}).build(CALL)


@pytest.mark.parametrize("value", ["", ".", "..", None, True, ["x"], {"x": 1}])
def test_an_argument_cannot_leave_its_place_in_the_url(value: Any) -> None:
    """An empty id would name the whole collection."""
    tool = HttpJsonTool(tool="t", url=f"{BASE}/tickets/{{id}}", method="DELETE")
    with pytest.raises(InvalidIntent):
        tool.build(replace(CALL, args={"id": value}))


def test_arguments_in_the_url_are_escaped() -> None:
    """Slashes and question marks do not change the target."""
    tool = HttpJsonTool(tool="t", url=f"{BASE}/tickets/{{id}}", method="DELETE")
    call = replace(CALL, args={"id": "../a?b=c/d"})
    tool.build(call)
    request = tool.encode(call, None)
    assert request.url == f"{BASE}/tickets/..%2Fa%3Fb%3Dc%2Fd"
    assert request.body == b""


def test_missing_arguments_fail_the_build() -> None:
    """Required ones, and those that the URL needs."""
    tool = HttpJsonTool(tool="t", url=f"{BASE}/{{id}}", required=frozenset({"title"}))
    with pytest.raises(InvalidIntent, match=re.escape("['id', 'title']")):
        tool.build(replace(CALL, args={}))


@pytest.mark.parametrize(
    "url", ["", "tool.test/x", "ftp://tool.test", "http://", "http://u:p@tool.test", "http://{a}/x"]
)
def test_an_unusable_url_is_refused_at_start(url: str) -> None:
    """A password in it would be stored, an argument as its host would get our secrets."""
    with pytest.raises(ConfigError):
        HttpJsonTool(tool="t", url=url)


def test_the_contract_says_what_the_declaration_says() -> None:
    """And survives storage."""
    ticket = fake_ticket(BASE).contract
    assert ticket.echo is Echo.KEY
    assert ticket.probe is ProbeStrength.STRONG
    assert ticket.may_resend
    assert ticket.compensates
    assert fake_ticket(BASE, echo=EchoField("/key")).contract.echo is Echo.KEY
    assert HttpJsonTool(tool="t", url=BASE, echo=EchoRef("/id")).contract.echo is Echo.REF
    charge = fake_charge(BASE).contract
    assert (charge.probe, charge.may_resend, charge.compensates) == (
        ProbeStrength.NONE,
        False,
        False,
    )
    for tool in fake_tools(BASE):
        assert contract_from_document(tool.contract.document()) == tool.contract


def test_json_tools_are_adapters_and_prepare_nothing() -> None:
    """They keep a handle that the row already has."""
    for tool in fake_tools(BASE):
        assert isinstance(tool, Adapter)
        assert is_adapter(tool)
        assert tool.prepare(replace(CALL, handle="h"), ()) == Prepared("h")


def test_an_undo_needs_a_reference_or_a_marker() -> None:
    """Without either there is no handle."""
    known = CompensationTarget("i1", {}, "tickets-1")
    assert fake_ticket(BASE).compensation(known) == CompensationPlan(
        "tickets.delete", {"id": "tickets-1"}
    )
    lost = replace(known, ref=None)
    assert fake_ticket(BASE).compensation(lost) == NoHandle()
    assert fake_charge(BASE).compensation(known) == NoHandle()
    by_marker = HttpCompensation("u", None, "marker", ensure_absent=True)
    assert by_marker.plan(lost) == CompensationPlan("u", {"marker": "i1"}, True)


def test_derived_keys_are_stable_plain_and_distinct() -> None:
    """A UUID of version 4 and 25 characters, another one for each generation."""
    assert wire_uuid("i1") == "780ab51c-7697-476c-90cc-901f449c8e62"
    assert wire_short("i1") == "73udaxten1s7mh9e5680xrtcy"
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", wire_uuid("i")
    )
    assert re.fullmatch(r"[0-9a-z]{25}", wire_short("i1"))
    keys = ["i1", "i1~g1", "i1~undo0", "~ns~i1"]
    assert len(set().union(*map(wire_forms, keys))) == 3 * len(keys)


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", {"a": [{"b/c": 1}]}), ("/a/0/b~1c", 1), ("/a/0", {"b/c": 1})],
)
def test_json_pointers_find_what_they_name(pointer: str, value: Any) -> None:
    """RFC 6901, escapes included."""
    assert at_pointer({"a": [{"b/c": 1}]}, pointer) == value
