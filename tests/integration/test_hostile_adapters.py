"""Adapters that break their contract: that costs their own row, never a thread, never others.

Each hostile row shares its batches with sound rows, which must commit as if they were alone.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ackbox.outbox.outcome import Outcome
from ackbox.tool_adapters.contract import Call, Evidence, Prepared, Request
from ackbox.tool_adapters.function import FunctionTool, tool

from ..support.process import Process, counting_tool
from ..support.waiting import wait_until

Start = Callable[..., Process]
SOUND = 12


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Give a function that starts a process with tools."""
    started: list[Process] = []

    def begin(*tools: Any, slots: int = 32) -> Process:
        started.append(Process(database_url, list(tools), slots))
        return started[-1]

    yield begin
    for process in started:
        process.close()


class Hostile(FunctionTool):
    """A function tool that does as it is told in one of its methods."""

    def __init__(self, method: str, act: Callable[[], Any]) -> None:
        work, self.effects = counting_tool("hostile")
        self.__dict__.update(work.__dict__)
        self.method = method
        self.act = act

    def _turn(self, method: str, sound: Callable[[], Any]) -> Any:
        return self.act() if method == self.method else sound()

    def build(self, call: Call) -> None:
        """Be sound, or not."""
        self._turn("build", lambda: super(Hostile, self).build(call))

    def prepare(self, call: Call, answers: tuple[Evidence, ...]) -> Request | Prepared:
        """Be sound, or not."""
        answer: Request | Prepared = self._turn("prepare", lambda: Prepared(call.handle))
        return answer

    def encode(self, call: Call, handle: Any) -> Any:
        """Be sound, or not."""
        return self._turn("encode", lambda: super(Hostile, self).encode(call, handle))

    def classify(
        self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]
    ) -> Outcome | Request:
        """Be sound, or not."""
        sound = super().classify
        answer: Outcome | Request = self._turn(
            "classify", lambda: sound(call, evidence, follow_ups)
        )
        return answer


def leave() -> Any:
    """Raise what `except Exception` does not catch."""
    raise SystemExit(3)


def call_off() -> Any:
    """Raise what an adapter on asyncio raises when it is cancelled."""
    raise asyncio.CancelledError


def endless() -> Any:
    """Return a handle that holds itself, which no JSON can."""
    handle: list[Any] = []
    handle.append(handle)
    return Prepared(handle)


def nothing() -> Any:
    """Return what is no answer at all."""
    return None


def run(process: Process) -> int:
    """Run one hostile row among sound ones; returns its seq when the sound ones are through."""
    (hostile,) = process.put("hostile", 1)
    process.put("work", SOUND)
    before = threading.active_count()
    process.drain()
    wait_until(lambda: process.states()["committed"] >= SOUND, message="the sound rows commit")
    assert threading.active_count() >= before, "a thread has ended"
    return hostile


@pytest.mark.parametrize("act", [leave, call_off])
@pytest.mark.parametrize("method", ["build", "prepare", "encode"])
def test_leaving_before_the_mark_gives_the_row_back(
    start: Start, method: str, act: Callable[[], Any]
) -> None:
    """SystemExit and a cancellation are answers like any other: nothing was sent."""
    broken = Hostile(method, act)
    process = start(counting_tool()[0], broken)
    hostile = run(process)
    wait_until(lambda: "give_back" in process.outbox.events(hostile))
    assert broken.effects == []


@pytest.mark.parametrize("act", [leave, call_off, nothing])
def test_no_conclusion_after_the_effect_is_unknown(start: Start, act: Callable[[], Any]) -> None:
    """The effect was sent once, and nobody knows; the slot is free again."""
    broken = Hostile("classify", act)
    process = start(counting_tool()[0], broken)
    hostile = run(process)
    wait_until(lambda: process.outbox.state(hostile) == "indeterminate")
    wait_until(lambda: process.slots.taken() == 0)
    assert broken.effects == [0]


@pytest.mark.parametrize(("method", "act"), [("prepare", nothing), ("encode", nothing)])
def test_no_request_before_the_mark_gives_the_row_back(
    start: Start, method: str, act: Callable[[], Any]
) -> None:
    """An adapter that answers nothing where a request is due has failed to prepare."""
    broken = Hostile(method, act)
    process = start(counting_tool()[0], broken)
    hostile = run(process)
    wait_until(lambda: "give_back" in process.outbox.events(hostile))
    assert broken.effects == []


def test_a_handle_that_cannot_be_written_costs_its_own_row_only(start: Start) -> None:
    """Hole 30: the batch of marks is repeated one by one, whatever it broke on."""
    broken = Hostile("prepare", endless)
    process = start(counting_tool()[0], broken)
    hostile = run(process)
    wait_until(lambda: process.slots.taken() == 0)
    assert process.outbox.row(hostile)["sends"] == 0
    assert broken.effects == []


class Untraced(Exception):
    """An exception that hides where it was raised."""

    @property
    def __traceback__(self) -> None:  # type: ignore[override]
        """Say that it was raised nowhere."""
        return


def test_a_function_whose_error_cannot_be_read_ends_all_the_same(start: Start) -> None:
    """Else it would count as running for ever: its slot taken, its row never quiet."""

    @tool("hostile", timeout_seconds=1, settle_seconds=1)
    def hide(_call: Any, *, n: int) -> int:
        raise Untraced(n)

    process = start(counting_tool()[0], hide)
    hostile = run(process)
    wait_until(lambda: process.outbox.state(hostile) == "indeterminate")
    wait_until(lambda: process.slots.taken() == 0)
    assert process.runner.overrunning() == ()
