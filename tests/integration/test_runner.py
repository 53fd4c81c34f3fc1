"""Many attempts at once in one process on real Postgres: slots, limits, shutdown, outages."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ackbox.outbox.commands import MarkSend, Record
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import StoreUnavailable
from ackbox.outbox.intent import Terms, content_of, draft_of
from ackbox.outbox.shell.attempt_store import AttemptStore
from ackbox.outbox.shell.bell import Bell
from ackbox.outbox.shell.claim_store import Incarnation
from ackbox.tool_adapters.contract import Call
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.tool_adapters.registry import Registry
from ackbox.workers.shell.drain import UnknownLane
from ackbox.workers.shell.lane_drainer import ProcessDrainer
from ackbox.workers.shell.runner import Runner
from ackbox.workers.shell.slots import LaneSlots
from ackbox.workers.shell.tool_driver import ToolDriver

from ..support.seed import Seeded
from ..support.waiting import wait_until


class Counting(AttemptStore):
    """The real store, which counts its batches and can be told to be away."""

    away: Callable[[], bool] = staticmethod(lambda: False)
    batches: Counter[str]

    def mark(self, batch: Sequence[MarkSend], owner: uuid.UUID) -> Any:
        """Mark, and count the batch."""
        self.batches["mark"] += 1
        return super().mark(batch, owner)

    def record(self, batch: Sequence[Record]) -> Any:
        """Record, unless the store is away."""
        self.batches["record"] += 1
        if self.away():
            raise StoreUnavailable("away", next_step="wait")
        return super().record(batch)


class Process:
    """One worker process's parts, in this process."""

    def __init__(self, url: str, tools: list[Any], slots: int = 8) -> None:
        self.outbox = Seeded(url)
        self.owner = uuid.uuid4()
        self.doubtful = False
        registry = Registry(tools)
        contracts = self.outbox.claims.contract_ids(registry.contracts())
        self.lanes = ("default", "slow", *registry.lanes())
        self.outbox.claims.register(
            Incarnation(self.owner, "worker", "here", 1, tuple(contracts), self.lanes)
        )
        self.store = Counting(self.outbox.database, self.outbox.statements, DEFAULTS)
        self.store.batches = Counter()
        self.slots = LaneSlots(slots)
        self.bell = Bell(None)
        self.tools = ToolDriver(registry, DEFAULTS)
        self.runner = Runner(
            self.store, self.tools, self.slots, self.bell,
            owner=self.owner, is_doubtful=lambda: self.doubtful,
            threads=slots * len(set(self.lanes)),
        )  # fmt: skip
        self.drainer = ProcessDrainer(
            self.outbox.claims, self.runner, self.slots,
            outbox="default", lanes=self.lanes, owner=self.owner, contracts=contracts,
        )  # fmt: skip

    def put(self, tool_name: str, count: int, lane: str = "default", **args: Any) -> list[int]:
        """Put calls of a tool and return their seqs."""
        drafts = [
            draft_of(
                content_of(tool_name, 1, lane, {**args, "n": n}), Terms(),
                intent_id=f"{tool_name}-{lane}-{n}",
            )
            for n in range(count)
        ]  # fmt: skip
        answers = self.outbox.run(lambda c: self.outbox.planner.put(c, drafts))
        return [answer.seq for answer in answers]  # type: ignore[union-attr]

    def drain(self, lane: str = "default", limit: int = 100) -> int:
        """Run what a wake token runs."""
        return self.drainer.drain("default", lane, limit, 2.0)

    def states(self) -> Counter[str]:
        """Return how many rows are in each state."""
        rows = self.outbox.sql(
            "SELECT state, count(*) AS rows FROM {schema}.intent_state GROUP BY state"
        )
        return Counter({row["state"]: row["rows"] for row in rows})

    def close(self) -> None:
        """End the threads."""
        self.drainer.stop_claiming()
        self.runner.close()
        self.bell.close()
        self.tools.close()
        self.outbox.database.dispose()


Start = Callable[..., Process]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Give a function that starts a process with tools."""
    started: list[Process] = []

    def begin(*tools: Any, slots: int = 8) -> Process:
        started.append(Process(database_url, list(tools), slots))
        return started[-1]

    yield begin
    for process in started:
        process.close()


def counting_tool(name: str = "work") -> tuple[FunctionTool, list[int]]:
    """Return a tool, and the list of effects that it has had."""
    effects: list[int] = []

    @tool(name, timeout_seconds=10, settle_seconds=1)
    def work(_call: Any, *, n: int) -> int:
        effects.append(n)
        return n

    return work, effects


def waiting_tool(
    gate: threading.Event, name: str = "wait", timeout_seconds: float = 10, lane: str = "default"
) -> tuple[FunctionTool, list[int]]:
    """Return a tool whose effect happens at once and whose answer waits for the gate."""
    effects: list[int] = []

    @tool(name, timeout_seconds=timeout_seconds, settle_seconds=1, lane=lane)
    def wait(_call: Any, *, n: int) -> int:
        effects.append(n)
        gate.wait(20)
        return n

    return wait, effects


def test_one_token_drains_a_lane_through_few_slots_with_one_effect_each(start: Start) -> None:
    """A slot that frees claims again without a token; what is asked together commits together."""
    work, effects = counting_tool()
    process = start(work, slots=8)
    process.put("work", 60)
    assert process.drain() >= 8
    wait_until(lambda: process.states()["committed"] == 60)
    assert sorted(effects) == list(range(60))
    assert process.store.batches["record"] < 60
    assert process.drainer.wait_idle(5)


def test_slots_bound_what_is_in_flight(start: Start) -> None:
    """No more attempts at once than the lane has slots; the rest waits in the queue."""
    gate = threading.Event()
    wait, effects = waiting_tool(gate)
    process = start(wait, slots=3)
    process.put("wait", 10)
    process.drain()
    wait_until(lambda: len(effects) == 3)
    assert process.states() == {"awaiting_ack": 3, "queued": 7}
    gate.set()
    wait_until(lambda: process.states()["committed"] == 10)


def test_a_slow_call_holds_up_no_other_lane(start: Start) -> None:
    """Slots are per lane, and a token ends while the attempts that it started go on."""
    gate = threading.Event()
    wait, _ = waiting_tool(gate, lane="slow")
    work, effects = counting_tool()
    process = start(wait, work, slots=2)
    process.put("wait", 5, lane="slow")
    process.put("work", 5)
    process.drain("slow")
    process.drain()
    wait_until(lambda: len(effects) == 5)
    gate.set()


def test_a_function_over_its_limit_is_unknown_keeps_its_slot_and_its_answer_counts(
    start: Start,
) -> None:
    """A thread cannot be stopped: what it returns late is evidence, and the row is not quiet."""
    gate = threading.Event()
    wait, effects = waiting_tool(gate, timeout_seconds=0.2)
    process = start(wait, slots=1)
    (seq,) = process.put("wait", 1)
    process.drain()
    wait_until(lambda: process.states()["indeterminate"] == 1)
    assert process.runner.overrunning() == (seq,)
    assert process.slots.free("default") == 0
    before = process.outbox.row(seq)["quiet_at"]
    process.outbox.advance(30)
    process.outbox.claims.push_quiet(process.runner.overrunning())
    assert process.outbox.row(seq)["quiet_at"] > before
    gate.set()
    wait_until(lambda: process.states()["committed"] == 1)
    wait_until(lambda: process.slots.free("default") == 1)
    assert effects == [0]
    assert process.runner.overrunning() == ()


def test_stopping_gives_back_what_is_unmarked_and_finishes_what_is_marked(start: Start) -> None:
    """SIGTERM: no new claim, unsent rows return at once, sent ones end within the grace."""
    gate, building = threading.Event(), threading.Event()
    wait, effects = waiting_tool(gate)
    slow = SlowBuild(building)
    process = start(wait, slow, slots=4)
    process.put("wait", 1)
    process.put("slow.build", 1)
    process.drain()
    wait_until(lambda: process.states()["awaiting_ack"] == 1 and slow.builds > 0)
    process.drainer.stop_claiming()
    building.set()
    wait_until(lambda: process.states()["queued"] == 1)
    assert not process.drainer.wait_idle(0.1)
    gate.set()
    assert process.drainer.wait_idle(5)
    assert process.states() == {"committed": 1, "queued": 1}
    assert process.drain() == 0
    assert effects == [0]


class SlowBuild(FunctionTool):
    """A tool whose `build` waits, so that its row stays executing."""

    def __init__(self, go: threading.Event) -> None:
        work, _ = counting_tool("slow.build")
        self.__dict__.update(work.__dict__)
        self.go = go
        self.builds = 0

    def build(self, call: Call) -> None:
        """Wait for the test."""
        self.builds += 1
        self.go.wait(20)


def test_a_process_in_doubt_about_its_heartbeat_sends_nothing(start: Start) -> None:
    """Case 21: in doubt the row goes back, and another process may have it."""
    work, effects = counting_tool()
    process = start(work)
    process.doubtful = True
    process.put("work", 1)
    process.drain(limit=1)
    wait_until(lambda: process.outbox.events(1).count("give_back") > 0)
    assert effects == []


def test_an_outcome_outlives_an_outage_of_the_store(start: Start) -> None:
    """Case 125: the outcome stays in memory, only the statement is repeated, never the call."""
    work, effects = counting_tool()
    process = start(work)
    process.store.away = lambda: process.store.batches["record"] < 3
    process.put("work", 1)
    process.drain()
    wait_until(lambda: process.states()["committed"] == 1)
    assert effects == [0]
    assert process.store.batches["record"] >= 3


def test_a_suspect_row_is_claimed_when_nothing_unmarked_is_held(start: Start) -> None:
    """Hole 32: no neighbour is unmarked in this process while a suspect row is."""
    building = threading.Event()
    slow = SlowBuild(building)
    work, effects = counting_tool()
    process = start(slow, work)
    process.put("slow.build", 1)
    process.drain()
    wait_until(lambda: slow.builds > 0)
    (seq,) = process.put("work", 1)
    process.outbox.sql("UPDATE {schema}.intent_state SET suspect = true WHERE seq = :s", s=seq)
    wait_until(lambda: process.drain() == 0 and process.drainer.has_suspects())
    assert process.outbox.state(seq) == "queued"
    building.set()
    wait_until(lambda: process.outbox.state(seq) == "committed")
    assert process.outbox.row(seq)["suspect"] is False
    assert 0 in effects


def test_an_unknown_tool_and_bad_arguments_do_not_block_their_lane(start: Start) -> None:
    """Case 47: both stop before the mark with their reason; their neighbours commit at once."""
    work, effects = counting_tool()
    process = start(work)
    (unknown,) = process.put("nobody.knows", 1)
    (bad,) = process.put("work", 1, extra=True)
    fine = [draft for draft in range(1, 4)]
    drafts = [
        draft_of(content_of("work", 1, "default", {"n": n}), Terms(), intent_id=f"fine-{n}")
        for n in fine
    ]
    process.outbox.run(lambda c: process.outbox.planner.put(c, drafts))
    process.drain()
    wait_until(lambda: process.states()["committed"] == 3)
    wait_until(lambda: process.outbox.state(unknown) == "queued")
    assert process.outbox.row(unknown)["unready_since"] is not None
    assert process.outbox.state(bad) in ("queued", "failed")
    assert sorted(effects) == fine


def test_a_token_for_what_is_not_served_here_is_refused(start: Start) -> None:
    """Another outbox's token, or another lane's, claims nothing."""
    process = start(counting_tool()[0])
    with pytest.raises(UnknownLane):
        process.drainer.drain("default", "elsewhere", 1, 1.0)
    with pytest.raises(UnknownLane):
        process.drainer.drain("other", "default", 1, 1.0)
