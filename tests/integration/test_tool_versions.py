"""Rows that a process lacks the tool for, and adapters that do not come back: both are named."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from ackbox.tool_adapters.contract import Call
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.workers.shell.tool_driver import ToolDriver

from ..support.process import Process, counting_tool
from ..support.waiting import wait_until

Start = Callable[..., Process]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Give a function that starts a process with tools."""
    started: list[Process] = []

    def begin(*tools: Any) -> Process:
        started.append(Process(database_url, list(tools)))
        return started[-1]

    yield begin
    for process in started:
        process.close()


def events(process: Process, seq: int) -> list[str]:
    """Return the names of a row's events in order."""
    found = process.outbox.sql(
        "SELECT name FROM {schema}.event WHERE seq = :seq ORDER BY event_id", seq=seq
    )
    return [row["name"] for row in found]


def test_a_row_of_another_process_is_given_back_once_and_named_once(start: Start) -> None:
    """However often the process that lacks its tool drains: the other one has to come."""
    work, effects = counting_tool("work")
    lacking, having = start(counting_tool("other")[0]), start(work)
    seqs = lacking.put("work", 3)
    with capture_logs() as logs:
        assert lacking.drain() == 3
        wait_until(lambda: all("give_back" in events(lacking, seq) for seq in seqs))
        assert [lacking.drain() for _ in range(5)] == [0] * 5
    missing = [one for one in logs if one["event"] == "tool_missing"]
    assert [(one["tool"], one["version"]) for one in missing] == [("work", 1)]
    having.outbox.claims.beat(having.owner)
    assert having.drain() == 3
    wait_until(lambda: lacking.states() == {"committed": 3})
    assert sorted(effects) == [0, 1, 2]
    assert all(events(lacking, seq).count("claim") == 2 for seq in seqs)


def test_an_older_row_is_run_with_upgraded_arguments(start: Start) -> None:
    """It is claimed under the newer declaration, keeps its version and its stored arguments."""
    seen: list[tuple[int, int]] = []

    @tool("work", version=3, upgrade=lambda args, was: {"many": args["n"], "was": was})
    def work(_call: Any, *, many: int, was: int) -> int:
        seen.append((many, was))
        return many

    process = start(work)
    (seq,) = process.put("work", 1)
    process.drain()
    wait_until(lambda: process.states() == {"committed": 1})
    assert seen == [(0, 1)]
    (stored,) = process.outbox.sql(
        "SELECT n.tool_version, n.args, c.version FROM {schema}.intent n"
        " JOIN {schema}.intent_state s ON s.seq = n.seq"
        " JOIN {schema}.contract c ON c.contract_id = s.contract_id WHERE n.seq = :seq",
        seq=seq,
    )
    assert (stored["tool_version"], stored["args"], stored["version"]) == (1, {"n": 0}, 3)


class Hanging(FunctionTool[..., Any]):
    """Its `build` comes back when the gate is open."""

    gate = threading.Event()

    def build(self, call: Call) -> None:
        """Wait."""
        self.gate.wait(60)
        super().build(call)


def test_an_adapter_that_does_not_come_back_is_named_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tool, intent and method, and counted as long as it lasts."""
    monkeypatch.setattr(ToolDriver, "hang_seconds", 0.05)
    work, effects = counting_tool("hangs")
    hanging = Hanging(work.function, work.contract, None, None)
    process = start(hanging)
    process.put("hangs", 1)
    with capture_logs() as logs:
        process.drain()
        wait_until(lambda: process.runner.hanging() == 1)
        assert process.runner.hanging() == 1
    told = [one for one in logs if one["event"] == "adapter_hangs"]
    assert [(one["tool"], one["intent_id"], one["method"]) for one in told] == [
        ("hangs", "hangs-default-0", "build")
    ]
    hanging.gate.set()
    wait_until(lambda: process.states() == {"committed": 1})
    assert (process.runner.hanging(), effects) == (0, [0])
