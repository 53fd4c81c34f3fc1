"""Calling function tools: limits, late evidence, deadlines, and what a function may know."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ackbox.outbox.outcome import NotApplied
from ackbox.tool_adapters.contract import (
    Call,
    Evidence,
    Found,
    FunctionCall,
    NotWritten,
    OverLimit,
    RaisedError,
    RaisedOutcome,
    Returned,
)
from ackbox.tool_adapters.fake_tools import fake_charge
from ackbox.tool_adapters.function import FunctionTool, strong, tool
from ackbox.tool_adapters.registry import Tools
from ackbox.tool_adapters.shell.boottime import boottime_seconds
from ackbox.tool_adapters.shell.function_transport import FunctionTransport
from ackbox.tool_adapters.shell.transports import Transports
from ackbox.tool_adapters.tool_call import ToolCall

WAIT_SECONDS = 60.0


@pytest.fixture
def registry() -> Tools:
    return Tools()


@pytest.fixture
def transport(registry: Tools) -> Iterator[FunctionTransport]:
    calls = FunctionTransport(registry.lookup)
    yield calls
    calls.close()


def request_for(adapter: FunctionTool, **args: Any) -> FunctionCall:
    contract = adapter.contract
    call = Call("ns", "i1", 2, contract.tool, contract.version, "~ns~i1~g2", args, sends=3)
    return adapter.encode(call, None)


def exchange(
    transport: FunctionTransport, request: FunctionCall, limit_seconds: float = 5.0, **others: Any
) -> Evidence:
    others.setdefault("send_by_boottime", boottime_seconds() + 5)
    return transport.exchange(request, limit_seconds=limit_seconds, **others)


def test_a_function_gets_its_call_and_its_arguments(
    registry: Tools, transport: FunctionTransport
) -> None:
    """Key, identity, count and the time that is left."""
    seen: list[Any] = []

    @tool("t")
    def look(call: ToolCall, *, a: int, b: int = 2) -> int:
        seen.append((call.wire_key, call.namespace, call.intent_id, call.generation, call.sends))
        seen.append(0 < call.remaining_seconds <= 5.0)
        seen.append((call.compensates, call.traceparent))
        return a + b

    registry.register(look)
    assert exchange(transport, request_for(look, a=1)) == Returned(3)
    assert seen == [("~ns~i1~g2", "ns", "i1", 2, 3), True, (None, None)]


@pytest.mark.parametrize("error", [ValueError("secret"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_it_raises_is_its_answer(
    registry: Tools, transport: FunctionTransport, error: BaseException
) -> None:
    """A tool cannot end the worker, and the message of its error is not repeated."""

    @tool("t")
    def fail(call: ToolCall) -> None:
        raise error

    registry.register(fail)
    evidence = exchange(transport, request_for(fail))
    assert isinstance(evidence, RaisedError)
    assert evidence.error_type == type(error).__name__
    assert evidence.text.startswith("test_function_transport.py:")
    assert "secret" not in repr(evidence)


def test_raising_not_applied_is_proof(registry: Tools, transport: FunctionTransport) -> None:
    """The one exception that says what happened."""

    @tool("t")
    def refuse(call: ToolCall) -> None:
        raise NotApplied("closed")

    registry.register(refuse)
    evidence = exchange(transport, request_for(refuse))
    assert isinstance(evidence, RaisedOutcome)
    assert evidence.outcome == NotApplied("closed")


def test_an_overrun_returns_at_the_limit_and_its_end_is_late_evidence(
    registry: Tools, transport: FunctionTransport
) -> None:
    """The thread runs on; what it returns is handed over exactly once."""
    go_on, told = threading.Event(), threading.Event()
    late: list[Evidence] = []

    def on_late(evidence: Evidence) -> None:
        late.append(evidence)
        told.set()

    @tool("t")
    def overrun(call: ToolCall) -> str:
        go_on.wait(WAIT_SECONDS)
        return f"{call.remaining_seconds}"

    registry.register(overrun)
    began = time.monotonic()
    evidence = exchange(transport, request_for(overrun), 0.2, on_late=on_late)
    assert evidence == OverLimit()
    assert 0.15 < time.monotonic() - began < WAIT_SECONDS / 2
    assert not late
    go_on.set()
    assert told.wait(WAIT_SECONDS)
    assert late == [Returned("0.0")]


def test_a_call_in_time_is_never_late(registry: Tools, transport: FunctionTransport) -> None:
    """Evidence arrives one way or the other, for many calls that end around their limit."""
    late: list[Evidence] = []
    pause = threading.Event()

    @tool("t")
    def near(call: ToolCall, *, seconds: float) -> float:
        pause.wait(seconds)
        return seconds

    registry.register(near)

    def one(number: int) -> Evidence:
        request = request_for(near, seconds=0.05)
        return exchange(transport, request, 0.04 + number * 0.0005, on_late=late.append)

    with ThreadPoolExecutor(40) as pool:
        results = list(pool.map(one, range(80)))
    over = results.count(OverLimit())
    assert results.count(Returned(0.05)) + over == 80
    deadline = time.monotonic() + WAIT_SECONDS
    while len(late) < over:
        assert time.monotonic() < deadline
        pause.wait(0.01)
    assert late == [Returned(0.05)] * over


def test_past_the_send_deadline_nothing_is_called(
    registry: Tools, transport: FunctionTransport
) -> None:
    """The check stands right before the call."""
    called: list[int] = []
    touch = tool("t")(lambda call: called.append(1))
    registry.register(touch)
    late = exchange(transport, request_for(touch), send_by_boottime=boottime_seconds())
    assert (late, called) == (NotWritten(), [])
    assert exchange(transport, request_for(touch), send_by_boottime=None) == Returned(None)


def test_what_this_worker_cannot_call_was_not_called(
    registry: Tools, transport: FunctionTransport
) -> None:
    """Unknown tool, another kind of adapter, arguments of another signature."""
    known = tool("t")(lambda call, *, a: None)
    registry.register(known)
    registry.register(fake_charge("http://tool.test"))
    other = tool("other")(lambda call: None)
    charge = FunctionCall("charges.create", 1, "k", {}, context=request_for(known).context)
    for request in (request_for(other), charge, request_for(known, b=1)):
        assert isinstance(exchange(transport, request), NotWritten)


def test_a_probe_function_is_called_in_its_place(
    registry: Tools, transport: FunctionTransport
) -> None:
    """With the same call and arguments, and never the effect."""
    called: list[str] = []

    def find(call: ToolCall, *, title: str) -> Found:
        return Found(f"{title}/{call.wire_key}")

    @tool("t", probe=strong(find))
    def effect(call: ToolCall, *, title: str) -> None:
        called.append(title)

    registry.register(effect)
    context = request_for(effect, title="x").context
    assert context is not None
    request = effect.probe(context, ())
    assert isinstance(request, FunctionCall)
    evidence = exchange(transport, request, send_by_boottime=None)
    assert effect.probe(context, (evidence,)) == Found("x/~ns~i1~g2")
    assert called == []


def test_a_coroutine_that_slips_through_is_not_taken_for_success(
    registry: Tools, transport: FunctionTransport
) -> None:
    """A plain function that returns one ran nothing of it."""

    async def later() -> None: ...

    slip = tool("t")(lambda call: later())
    registry.register(slip)
    request = request_for(slip)
    assert request.context is not None
    outcome = slip.classify(request.context, exchange(transport, request), ())
    assert getattr(outcome, "code", None) == "bad_return"


def test_threads_are_used_again_and_end_with_the_transport(
    registry: Tools, transport: FunctionTransport
) -> None:
    """A thousand calls in a row need a handful of threads."""
    threads: set[int] = set()
    note = tool("t")(lambda call: threads.add(threading.get_ident()))
    registry.register(note)
    for _ in range(1000):
        exchange(transport, request_for(note))
    assert len(threads) < 10
    transport.close()
    deadline = time.monotonic() + WAIT_SECONDS
    while any(t.name == "ackbox-function" and t.ident in threads for t in threading.enumerate()):
        assert time.monotonic() < deadline
        transport.close()
        threading.Event().wait(0.01)


def test_transports_choose_by_the_kind_of_request(registry: Tools) -> None:
    """One exchange for HTTP requests and function calls."""
    note = tool("t")(lambda call: 7)
    registry.register(note)
    transports = Transports(registry.lookup)
    settings: dict[str, Any] = {"limit_seconds": 1.0, "response_limit_bytes": 100}
    context = request_for(note).context
    assert context is not None
    http = fake_charge("http://127.0.0.1:9").encode(context, None)
    returned = transports.exchange(request_for(note), send_by_boottime=None, **settings)
    assert returned == Returned(7)
    past = boottime_seconds() - 1
    assert transports.exchange(http, send_by_boottime=past, **settings) == NotWritten()
    transports.close()
