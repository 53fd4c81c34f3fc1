"""Function tools: what can be one, which arguments it takes, and what its end proves."""

import math
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from ackbox.outbox.contract import Echo, ProbeStrength, idempotent
from ackbox.outbox.errors import ConfigError, InvalidIntent
from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from ackbox.tool_adapters.contract import (
    Absent,
    Adapter,
    Call,
    CompensationPlan,
    CompensationTarget,
    Evidence,
    Found,
    FunctionCall,
    HttpEvidence,
    Inconclusive,
    IntentDraft,
    NoHandle,
    NotWritten,
    OverLimit,
    Phase,
    RaisedError,
    RaisedOutcome,
    Returned,
)
from ackbox.tool_adapters.function import FunctionTool, strong, tool, weak
from ackbox.tool_adapters.wire import wire_short, wire_uuid


@tool("tickets.create", lane="slow", timeout_seconds=20)
def create_ticket(call: Any, *, title: str, priority: str = "normal", tags: Any = None) -> Any:
    """Open a ticket."""
    return {"title": title, "priority": priority}


def call_of(**args: Any) -> Call:
    return Call("default", "i1", 0, "tickets.create", 1, "i1", args)


def judged(evidence: Evidence, adapter: FunctionTool = create_ticket) -> Outcome:
    outcome = adapter.classify(call_of(), evidence, ())
    assert isinstance(outcome, Applied | Accepted | NotApplied | Unknown)
    return outcome


# What can be a tool


def test_a_tool_is_still_its_function_and_an_adapter() -> None:
    """It can be called directly in a test, and carries its declaration."""
    assert create_ticket(None, title="x") == {"title": "x", "priority": "normal"}
    assert isinstance(create_ticket, Adapter)
    assert create_ticket.__doc__ == "Open a ticket."
    contract = create_ticket.contract
    assert (contract.lane, contract.call_limit_seconds) == ("slow", 20)
    assert (contract.may_resend, contract.probe) == (False, ProbeStrength.NONE)


def test_what_is_declared_stands_in_the_contract() -> None:
    """Key, probe, echo, settle and undo."""
    made = tool(
        "t",
        version=2,
        key=idempotent(timedelta(days=1)),
        probe=weak(lambda call: Absent()),
        echo=Echo.REF,
        settle_seconds=7,
        compensation=lambda target: NoHandle(),
    )(lambda call: None)
    contract = made.contract
    assert (contract.version, contract.settle_seconds, contract.echo) == (2, 7, Echo.REF)
    assert (contract.probe, contract.may_resend) == (ProbeStrength.WEAK, True)
    assert contract.compensates


async def _async_generator(call: Any) -> AsyncIterator[int]:
    yield 1


def _generator(call: Any) -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("function", [_async_generator, _generator])
def test_a_function_whose_call_runs_nothing_is_refused(function: Any) -> None:
    """Its call would return at once, and look like success."""
    with pytest.raises(ConfigError, match="runs nothing"):
        tool("t")(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda *args: None,
        lambda call, title, /: None,
        lambda call, *titles: None,
        lambda call, *, at=math.nan: None,
        lambda call, *, amount=Decimal(1): None,
    ],
)
def test_a_function_that_cannot_take_stored_arguments_is_refused(function: Any) -> None:
    """Arguments go by name and are JSON, defaults too."""
    with pytest.raises(ConfigError):
        tool("t")(function)


# Arguments


def test_a_decorator_without_a_name_is_refused_at_once() -> None:
    """`@tool` alone would leave a decorator where the program expects a tool."""
    with pytest.raises(ConfigError, match="needs the tool's name"):
        tool(lambda call: None)  # type: ignore[arg-type]


def test_a_draft_holds_what_was_given_apart_from_the_defaults() -> None:
    """A new default in the signature is no conflict for a repeated put."""
    draft = create_ticket.intent(title="VPN")
    assert draft == IntentDraft(
        "tickets.create", 1, "slow", {"title": "VPN"}, {"priority": "normal", "tags": None}
    )
    assert "VPN" not in repr(draft)


@pytest.mark.parametrize(
    ("args", "path"),
    [
        ({}, "args.title"),
        ({"title": "x", "colour": 1}, "args.colour"),
        ({"title": math.nan}, "args.title"),
        ({"title": math.inf}, "args.title"),
        ({"title": 2**53}, "args.title"),
        ({"title": "a\x00"}, "args.title"),
        ({"title": "x", "tags": ["a", {"b": "\ud800"}]}, "args.tags[1].b"),
        ({"title": {1: 2}}, "args.title"),
        ({"title": Decimal(1)}, "args.title"),
        ({"title": b"x"}, "args.title"),
        ({"title": {1, 2}}, "args.title"),
        ({"title": "x" * (1 << 20)}, "args"),
    ],
)
def test_arguments_that_cannot_be_stored_are_refused_with_their_path(
    args: dict[str, Any], path: str
) -> None:
    """Before anything is stored, and without repeating the value."""
    with pytest.raises(InvalidIntent) as refused:
        create_ticket.intent(**args)
    assert refused.value.what.startswith(path)


def test_a_tuple_needs_its_annotation() -> None:
    """Nothing else says that it should not come back as a list."""
    with pytest.raises(InvalidIntent, match=r"args\.tags\[1\]: tuple is not a JSON type"):
        create_ticket.intent(title="x", tags=["a", ("b",)])


def test_an_open_signature_takes_any_name() -> None:
    """`**others` is the function's own choice."""
    made = tool("t")(lambda call, **others: None)
    assert made.intent(colour="red").args == {"colour": "red"}


def test_build_refuses_what_the_running_code_cannot_take() -> None:
    """The row was put under an older signature."""
    create_ticket.build(call_of(title="x"))
    with pytest.raises(InvalidIntent):
        create_ticket.build(call_of(subject="x"))


def test_encode_names_the_call_and_carries_its_context() -> None:
    """The same digest for every send, the count outside of it."""
    call = call_of(title="x")
    request = create_ticket.encode(call, None)
    assert request == FunctionCall("tickets.create", 1, "i1", {"title": "x"})
    assert request.context is call


# What its end proves


@dataclass
class Ticket:
    id: str
    title: str


class Refused(NotApplied):
    """A user's own subclass."""


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, Applied()),
        ({"id": 1}, Applied(result={"id": 1})),
        (Ticket("t1", "x"), Applied(result={"id": "t1", "title": "x"})),
        (Applied(ref="t1", result=(1,)), Applied(ref="t1", result=[1])),
        (Accepted(ref="t1"), Accepted(ref="t1")),
        (Applied(ref=7), Applied(ref="7")),  # type: ignore[arg-type]
        (NotApplied("full", transient=True), NotApplied("full", transient=True)),
        (Refused("no"), NotApplied("no")),
        (Unknown("who knows"), Unknown("who knows")),
    ],
)
def test_a_returned_value_is_applied_and_a_returned_outcome_stands(
    value: Any, outcome: Outcome
) -> None:
    """A user's subclass of NotApplied is stored as what it is."""
    assert judged(Returned(value)) == outcome
    assert type(judged(Returned(value))) is type(outcome)


@pytest.mark.parametrize("value", [object(), math.nan, "a\x00", Applied(result=[object()])])
def test_a_result_that_cannot_be_stored_is_left_out(value: Any) -> None:
    """The effect is not doubted for it."""
    outcome = judged(Returned(value))
    assert isinstance(outcome, Applied)
    assert outcome.result is None
    assert outcome.result_digest


@pytest.mark.parametrize("value", [NotApplied, Applied, ValueError("x"), _generator(None)])
def test_a_slip_in_the_return_is_unknown(value: Any) -> None:
    """A class in place of its instance, an exception returned, a generator never run."""
    assert isinstance(judged(Returned(value)), Unknown)


def test_raising_not_applied_is_the_only_raised_proof() -> None:
    """Every other exception is Unknown, its message left out."""
    assert judged(RaisedOutcome(Refused("no", code="c"))) == NotApplied("no", code="c")
    unknown = judged(RaisedError("TimeoutError", "tools.py:12"))
    assert unknown == Unknown("the function raised TimeoutError at tools.py:12", "raised")


def test_an_overrun_is_unknown_and_a_missed_deadline_is_proof() -> None:
    """One may still take effect, the other was never called."""
    assert isinstance(judged(OverLimit()), Unknown)
    assert judged(NotWritten()) == NotApplied(
        "send deadline passed", code="not_written", transient=True
    )
    assert isinstance(judged(HttpEvidence(Phase.NOT_SENT)), Unknown)


@pytest.mark.parametrize(
    ("reason", "wait"), [("a\x00\ud800", math.nan), ("x" * 9999, -1.0), ("", True)]
)
def test_a_refusal_is_made_fit_for_storage(reason: str, wait: Any) -> None:
    """Its text comes from a provider and its time from anywhere."""
    outcome = judged(RaisedOutcome(NotApplied(reason, retry_after_seconds=wait)))
    assert isinstance(outcome, NotApplied)
    assert "\x00" not in outcome.reason.encode().decode()
    assert len(outcome.reason) <= 1000
    assert outcome.retry_after_seconds in (None, 0.0)


@pytest.mark.parametrize(
    ("echo", "value", "echoed"),
    [
        (Echo.REF, Applied(ref="t1"), True),
        (Echo.REF, Applied(result={"id": "t1"}), False),
        (Echo.REF, {"id": "t1"}, False),
        (Echo.KEY, {"meta": [{"key": "i1"}]}, True),
        (Echo.KEY, Applied(ref=wire_uuid("i1")), True),
        (Echo.KEY, Accepted(result=[wire_short("i1")]), True),
        (Echo.KEY, Applied(key_store=True), True),
        (Echo.KEY, {"key": "i1~g1"}, False),
        (Echo.KEY, None, False),
    ],
)
def test_a_success_without_the_declared_echo_is_a_protocol_miss(
    echo: Echo, value: Any, echoed: bool
) -> None:
    """The same rule as over HTTP, for an answer that a function passes on."""
    made = tool("t", echo=echo)(lambda call: None)
    outcome = judged(Returned(value), made)
    assert isinstance(outcome, Applied | Accepted) == echoed
    assert echoed or (isinstance(outcome, Unknown) and outcome.answer is Answer.COMPLETE)


# Probe and undo


def test_a_probe_is_called_as_a_harmless_request_and_answers_for_itself() -> None:
    """Found, Absent and Inconclusive pass through; whatever else happens is inconclusive."""
    made = tool("t", probe=strong(lambda call: Found("t1")))(lambda call: None)
    request = made.probe(call_of(), ())
    assert isinstance(request, FunctionCall)
    assert request.purpose == "probe"
    assert request.digest() != made.encode(call_of(), None).digest()
    assert made.probe(call_of(), (Returned(Found("t1")),)) == Found("t1")
    assert made.probe(call_of(), (Returned(Absent()),)) == Absent()
    for evidence in (Returned(None), RaisedError("E"), OverLimit(), NotWritten()):
        assert isinstance(made.probe(call_of(), (evidence,)), Inconclusive)
    assert isinstance(create_ticket.probe(call_of(), ()), Inconclusive)


def test_an_undo_is_made_from_the_target() -> None:
    """A draft of another tool, a plan, or nothing."""
    target = CompensationTarget("i1", {"title": "x"}, "t1", {"id": "t1"})
    close = tool("close")(lambda call, *, id: None)
    made = tool("t", compensation=lambda target: close.intent(id=target.ref))(lambda call: None)
    assert made.compensation(target) == CompensationPlan("close", {"id": "t1"})
    assert create_ticket.compensation(target) == NoHandle()
