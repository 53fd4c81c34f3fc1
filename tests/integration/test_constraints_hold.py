"""The five constraints that no code path may break, each beside a planted violation of it.

Every check looks at rows and at what the tool saw. It is green on the shipped code and must turn
red on the planted one, which is the bug that the constraint forbids.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.commands import Claimed, MarkSend, Record
from ackbox.outbox.outcome import Applied
from ackbox.outbox.shell.bind_store import SETTLED, BindStore
from ackbox.outbox.shell.statements import Statements
from ackbox.outbox.transitions import BIND
from ackbox.tool_adapters.contract import Call, FunctionCall, Request
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.workers.attempt import attempt, conclude
from ackbox.workers.commands import Build, Encode, Exchange, Prepare
from ackbox.workers.shell.drain import drain_token

from ..support.process import Process
from ..support.seed import KEYLESS, Seeded
from ..support.waiting import wait_until


class Seen:
    """What the tool saw of its calls: wire keys, arguments, and the row's state at that moment."""

    def __init__(self, url: str) -> None:
        self.calls: list[tuple[str, int, str]] = []
        self.outbox = Seeded(url)

        @tool("seen", timeout_seconds=10, settle_seconds=1)
        def seen(call: Any, *, n: int) -> int:
            (row,) = self.outbox.sql(
                "SELECT s.state FROM {schema}.intent_state s JOIN {schema}.intent i"
                " ON i.seq = s.seq WHERE i.intent_id = :i AND i.generation = :g",
                i=call.intent_id, g=call.generation,
            )  # fmt: skip
            self.calls.append((call.wire_key, n, row["state"]))
            return n

        self.tool: FunctionTool = seen


@pytest.fixture
def seen(database_url: str) -> Iterator[Seen]:
    """Give a tool that watches its own calls."""
    watching = Seen(database_url)
    yield watching
    watching.outbox.database.dispose()


@pytest.fixture
def process(database_url: str, seen: Seen) -> Iterator[Process]:
    """Give one worker process that serves the watching tool."""
    started = Process(database_url, [seen.tool])
    yield started
    started.close()


def run_steps(process: Process, seen: Seen, steps: Any) -> None:
    """Claim the one ready row and run a procedure on it, as the runner does."""
    (claim,) = process.outbox.claims.claim(
        "default", 1, process.owner, {"seen@1": contract_id(process)}
    )
    before = len(seen.calls)
    process.slots.take("default", 1)
    process.runner.start_steps(claim, steps(claim), lambda one: process.slots.release(one.lane))
    wait_until(lambda: process.slots.wait_idle(5) and len(seen.calls) > before)


def contract_id(process: Process) -> int:
    """Return the id under which the watching tool's declaration is on record."""
    (row,) = process.outbox.sql("SELECT contract_id FROM {schema}.contract WHERE tool = 'seen'")
    return int(row["contract_id"])


# -- 1: a step has one stable id; a time-out mints nothing and deletes nothing -------------------


def rows_of_step(outbox: Seeded) -> int:
    """Return how many intents there are: one step was planned."""
    (row,) = outbox.sql("SELECT count(*) AS rows FROM {schema}.intent")
    return int(row["rows"])


def test_a_timeout_mints_nothing(process: Process) -> None:
    """The planner asks again by the same id, and there is still one row."""
    process.put("seen", 1, n=1)
    process.put("seen", 1, n=1)
    assert rows_of_step(process.outbox) == 1


def test_a_fresh_id_on_timeout_is_seen(process: Process) -> None:
    """Planted: the planner takes silence for failure and emits the step under a new id."""
    process.put("seen", 1, n=1)
    process.outbox.put(f"again-{uuid.uuid4().hex[:6]}", KEYLESS)
    with pytest.raises(AssertionError):
        assert rows_of_step(process.outbox) == 1


# -- 2: the stored row authorises the call; its arguments are the only ones ----------------------


def args_seen(seen: Seen) -> list[int]:
    """Return the arguments that reached the tool."""
    return [n for _, n, _ in seen.calls]


def test_arguments_come_from_the_row(process: Process, seen: Seen) -> None:
    """Whatever a message says, the call carries what was stored."""
    process.put("seen", 1)
    run_steps(process, seen, attempt)
    assert args_seen(seen) == [0]


def test_arguments_of_a_message_are_seen(process: Process, seen: Seen) -> None:
    """Planted: a worker that takes the arguments from what it was handed beside the row."""
    process.put("seen", 1)
    run_steps(process, seen, lambda claim: attempt(replace(claim, args={"n": 99})))
    with pytest.raises(AssertionError):
        assert args_seen(seen) == [0]


# -- 3: the effect comes after the claim and after the durable mark ------------------------------


def unmarked_calls(seen: Seen) -> list[str]:
    """Return the states, other than awaiting_ack, in which the tool was called."""
    return [state for _, _, state in seen.calls if state != "awaiting_ack"]


def test_the_tool_is_called_after_the_durable_mark(process: Process, seen: Seen) -> None:
    """At the moment of the call another session reads the row as awaiting_ack."""
    process.put("seen", 3)
    process.drain()
    wait_until(lambda: process.states()["committed"] == 3)
    assert unmarked_calls(seen) == []


def test_a_call_before_the_mark_is_seen(process: Process, seen: Seen) -> None:
    """Planted: a procedure that sends first and marks afterwards."""

    def hasty(claim: Claimed) -> Any:
        yield Build(claim)
        prepared = yield Prepare(claim)
        request: Request = yield Encode(claim, prepared.handle)
        evidence = yield Exchange(claim, request)
        yield MarkSend(claim, request.digest())
        outcome = yield from conclude(claim, evidence)
        yield Record(claim, outcome)

    process.put("seen", 1)
    run_steps(process, seen, hasty)
    with pytest.raises(AssertionError):
        assert unmarked_calls(seen) == []


# -- 4: the late result of a superseded generation never binds -----------------------------------


def bound_stale_rows(outbox: Seeded) -> int:
    """Return how many rows are bound although their generation is not live."""
    (row,) = outbox.sql(
        "SELECT count(*) AS rows FROM {schema}.intent_state WHERE bound_at IS NOT NULL AND NOT live"
    )
    return int(row["rows"])


def superseded_result(outbox: Seeded) -> None:
    """Leave a settled row whose generation has passed."""
    claim = outbox.awaiting("i", n=1)
    outbox.supersede("i", 0, KEYLESS, n=2)
    outbox.record(claim, Applied("T-1"))


def bind(outbox: Seeded, statements: Statements) -> None:
    """Run the consumer's statement over what is settled."""
    binds = BindStore(statements)
    outbox.run(lambda c: binds.bind_together(c, binds.due(c, SETTLED, 100)))


def test_a_stale_result_does_not_bind(seen: Seen) -> None:
    """It is recorded, and rejected."""
    superseded_result(seen.outbox)
    bind(seen.outbox, seen.outbox.statements)
    assert bound_stale_rows(seen.outbox) == 0


def test_a_bind_that_ignores_the_generation_is_seen(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the binding statement without its guard `live`."""
    superseded_result(seen.outbox)
    careless = replace(BIND, guards=tuple(guard for guard in BIND.guards if guard.name != "live"))
    monkeypatch.setattr("ackbox.outbox.shell.statements.BIND", careless)
    bind(seen.outbox, Statements("ackbox", seen.outbox.reader._limits))
    with pytest.raises(AssertionError):
        assert bound_stale_rows(seen.outbox) == 0


# -- 5: a redelivered message never mints a new external request ---------------------------------


def keys_seen(seen: Seen) -> set[str]:
    """Return the wire keys that the tool saw."""
    return {key for key, _, _ in seen.calls}


def redeliver(process: Process) -> None:
    """Run the same wake token many times, at once and again."""
    for _ in range(5):
        process.drain()
    wait_until(lambda: process.states()["committed"] == 1)
    process.drain()


def test_a_redelivered_token_calls_once_under_one_key(process: Process, seen: Seen) -> None:
    """The claim decides; the token authorises nothing."""
    process.put("seen", 1)
    redeliver(process)
    assert len(seen.calls) == 1
    assert keys_seen(seen) == {"seen-default-0"}


def test_a_key_per_delivery_is_seen(process: Process, seen: Seen) -> None:
    """Planted: a worker whose request carries an id of the delivery."""
    process.put("seen", 1)

    class PerDelivery(FunctionTool):
        def encode(self, call: Call, handle: Any) -> FunctionCall:
            fresh = replace(call, wire_key=f"delivery-{uuid.uuid4().hex[:8]}")
            return super().encode(fresh, handle)

    planted = PerDelivery.__new__(PerDelivery)
    planted.__dict__.update(seen.tool.__dict__)
    process.tools._registry._adapters["seen", 1] = planted
    redeliver(process)
    with pytest.raises(AssertionError):
        assert keys_seen(seen) == {"seen-default-0"}


def test_a_token_has_no_room_for_a_request() -> None:
    """What a token carries: outbox, lane, limit; nothing that could authorise a call."""
    assert json.loads(json.dumps(drain_token.__annotations__, default=str)).keys() == {
        "outbox", "lane", "limit", "return",
    }  # fmt: skip
