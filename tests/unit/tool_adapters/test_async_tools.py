"""`async def` tools: one loop per process, cancelled at the limit, late answers as for threads."""

import asyncio
import contextvars
import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from structlog.testing import capture_logs

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
from ackbox.tool_adapters.function import FunctionTool, strong, tool
from ackbox.tool_adapters.registry import Tools
from ackbox.tool_adapters.shell.boottime import boottime_seconds
from ackbox.tool_adapters.shell.event_loop import ToolLoop
from ackbox.tool_adapters.shell.function_transport import FunctionTransport
from ackbox.tool_adapters.tool_call import ToolCall

from ...support.waiting import wait_until

WAIT_SECONDS = 60.0
pytestmark = pytest.mark.filterwarnings("error")


class Bench:
    """A transport with its tools, and what came late."""

    def __init__(self) -> None:
        self.tools = Tools()
        self.loop = ToolLoop(blocked_seconds=0.1)
        self.transport = FunctionTransport(self.tools.lookup, self.loop)
        self.late: list[Evidence] = []

    def request(self, adapter: FunctionTool, **args: Any) -> FunctionCall:
        """Register a tool and return the request of its effect."""
        self.tools.register(adapter)
        contract = adapter.contract
        call = Call("ns", "i1", 0, contract.tool, contract.version, "~ns~i1", args, sends=1)
        return adapter.encode(call, None)

    def exchange(self, request: FunctionCall, limit_seconds: float = WAIT_SECONDS) -> Evidence:
        """Perform a request."""
        return self.transport.exchange(
            request, send_by_boottime=boottime_seconds() + WAIT_SECONDS,
            limit_seconds=limit_seconds, on_late=self.late.append,
        )  # fmt: skip


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.transport.close()


def test_all_calls_run_on_one_loop_that_outlives_them(bench: Bench) -> None:
    """A client that is shared between calls never meets a second loop."""
    loops: set[int] = set()

    @tool("t")
    async def look(call: ToolCall, *, a: int) -> int:
        await asyncio.sleep(0)
        loops.add(id(asyncio.get_running_loop()))
        return a + call.sends

    request = bench.request(look, a=1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: bench.exchange(request), range(40)))
    assert answers == [Returned(2)] * 40
    assert len(loops) == 1


def test_calls_wait_beside_each_other(bench: Bench) -> None:
    """The first one ends only because the second one runs."""
    opened: list[asyncio.Event] = []

    @tool("first")
    async def first(call: ToolCall) -> str:
        opened.append(asyncio.Event())
        await opened[0].wait()
        return "first"

    @tool("second")
    async def second(call: ToolCall) -> str:
        opened[0].set()
        return "second"

    one, other = bench.request(first), bench.request(second)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bench.exchange, one)
        wait_until(lambda: bool(opened), WAIT_SECONDS)
        assert bench.exchange(other) == Returned("second")
        assert waiting.result(WAIT_SECONDS) == Returned("first")


@pytest.mark.parametrize(
    "error", [ValueError("secret"), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()]
)
def test_whatever_it_raises_is_its_answer(bench: Bench, error: BaseException) -> None:
    """Neither the loop nor the worker ends with it, and the message is not repeated."""

    @tool("t")
    async def fail(call: ToolCall, *, ok: bool) -> None:
        if not ok:
            raise error

    evidence = bench.exchange(bench.request(fail, ok=False))
    assert isinstance(evidence, RaisedError)
    assert evidence.error_type == type(error).__name__
    assert "secret" not in repr(evidence)
    assert bench.exchange(bench.request(fail, ok=True)) == Returned(None)


def test_a_sub_task_that_exits_does_not_end_the_loop(bench: Bench) -> None:
    """Asyncio lets SystemExit of a task through to whoever runs the loop."""

    async def leave() -> None:
        raise SystemExit(3)

    @tool("t")
    async def spawn(call: ToolCall, *, ok: bool) -> str:
        if ok:
            return "still here"
        task = asyncio.ensure_future(leave())
        await asyncio.wait([task])
        return f"{type(task.exception()).__name__}"

    assert bench.exchange(bench.request(spawn, ok=False)) == Returned("SystemExit")
    assert bench.exchange(bench.request(spawn, ok=True)) == Returned("still here")


def test_one_that_cancels_its_own_task_has_run_all_the_same(bench: Bench) -> None:
    """Asyncio calls such a task cancelled; "nothing was called" would send the effect again."""
    effects: list[int] = []

    @tool("t")
    async def cancel_own(call: ToolCall, *, number: int) -> int:
        effects.append(number)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return number

    for number in range(100):
        assert bench.exchange(bench.request(cancel_own, number=number)) == Returned(number)
    assert effects == list(range(100))


def test_raising_not_applied_is_proof(bench: Bench) -> None:
    """As for a plain function."""

    @tool("t")
    async def refuse(call: ToolCall) -> None:
        raise NotApplied("closed")

    evidence = bench.exchange(bench.request(refuse))
    assert isinstance(evidence, RaisedOutcome)
    assert evidence.outcome == NotApplied("closed")


def test_at_the_limit_it_is_cancelled(bench: Bench) -> None:
    """OverLimit at once; the end that the cancellation brought is late evidence."""
    seen: list[str] = []

    @tool("t")
    async def sleep(call: ToolCall) -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    assert bench.exchange(bench.request(sleep), 0.2) == OverLimit()
    wait_until(lambda: bool(bench.late), WAIT_SECONDS)
    assert seen == ["cancelled"]
    (late,) = bench.late
    assert isinstance(late, RaisedError)
    assert late.error_type == "CancelledError"


def test_one_that_swallows_the_cancellation_answers_late(bench: Bench) -> None:
    """It runs on as a thread would, and what it returns is handed over exactly once."""
    go_on = threading.Event()

    @tool("t")
    async def stubborn(call: ToolCall) -> str:
        while not go_on.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "landed"

    assert bench.exchange(bench.request(stubborn), 0.2) == OverLimit()
    assert bench.late == []
    go_on.set()
    wait_until(lambda: bench.late == [Returned("landed")], WAIT_SECONDS)


def test_a_tool_that_blocks_the_loop_keeps_no_limit_from_holding(bench: Bench) -> None:
    """Both calls are over their limit in time, and the log names the one that blocks."""
    release, blocks = threading.Event(), threading.Event()

    @tool("blocks.all")
    async def blocking(call: ToolCall) -> str:
        blocks.set()
        release.wait(WAIT_SECONDS)
        return "done"

    @tool("waits")
    async def innocent(call: ToolCall) -> str:
        return "done"

    one, other = bench.request(blocking), bench.request(innocent)
    with capture_logs() as logs, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bench.exchange, one, 0.3)
        assert blocks.wait(WAIT_SECONDS)
        began = time.monotonic()
        assert bench.exchange(other, 0.3) == OverLimit()
        assert time.monotonic() - began < WAIT_SECONDS / 2
        assert waiting.result(WAIT_SECONDS) == OverLimit()
        wait_until(lambda: [one for one in logs if one["event"] == "loop_blocked"], WAIT_SECONDS)
        release.set()
        wait_until(lambda: len(bench.late) == 2, WAIT_SECONDS)
    named = next(one["tools"] for one in logs if one["event"] == "loop_blocked")
    assert named == ["blocks.all i1"]
    assert Returned("done") in bench.late
    # It had not begun when its limit passed, so it never began: proof that nothing happened.
    assert any(isinstance(one, NotWritten) for one in bench.late)


def test_past_the_send_deadline_nothing_is_called(bench: Bench) -> None:
    """The check stands right before the coroutine begins, on the loop."""
    called: list[int] = []

    @tool("t")
    async def touch(call: ToolCall) -> None:
        called.append(1)

    request = bench.request(touch)
    late = bench.transport.exchange(
        request, send_by_boottime=boottime_seconds(), limit_seconds=WAIT_SECONDS
    )
    assert (late, called) == (NotWritten(), [])


def test_an_async_probe_is_awaited(bench: Bench) -> None:
    """With the same call and arguments, beside a plain function that is the effect."""

    async def find(call: ToolCall, *, title: str) -> Found:
        await asyncio.sleep(0)
        return Found(f"{title}/{call.wire_key}")

    effect = tool("t", probe=strong(find))(lambda call, *, title: None)
    context = bench.request(effect, title="x").context
    assert context is not None
    request = effect.probe(context, ())
    assert isinstance(request, FunctionCall)
    assert effect.probe(context, (bench.exchange(request),)) == Found("x/~ns~i1")


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_call_sets_in_its_context_ends_with_it(bench: Bench, is_async: bool) -> None:
    """Threads are used again and the loop lives on, but each call has a context of its own."""
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")

    def swap(call: ToolCall) -> str:
        before = tenant.get()
        tenant.set("leaked")
        return before

    async def swap_async(call: ToolCall) -> str:
        return swap(call)

    request = bench.request(tool("t")(swap_async if is_async else swap))
    assert [bench.exchange(request) for _ in range(3)] == [Returned("nobody")] * 3


def test_closing_leaves_no_warning(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Not by a call that heeds no cancellation, nor by what it holds when it is thrown away."""
    began = threading.Event()

    @tool("t")
    async def stubborn(call: ToolCall) -> None:
        while True:
            began.set()
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    request = bench.request(stubborn)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(bench.exchange, request, 1.0)
        assert began.wait(WAIT_SECONDS)
        bench.loop.close(seconds=0.1)
        assert waiting.result(WAIT_SECONDS) == OverLimit()
    assert isinstance(bench.exchange(request), NotWritten)
    del request
    bench.transport = FunctionTransport(bench.tools.lookup)
    bench.loop = ToolLoop()
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
