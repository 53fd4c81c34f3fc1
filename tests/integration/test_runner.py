"""Many attempts at once in one process on real Postgres: slots, limits, shutdown, outages."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ackbox.outbox.intent import Terms, content_of, draft_of
from ackbox.tool_adapters.contract import Call
from ackbox.tool_adapters.function import FunctionTool
from ackbox.workers.shell.drain import UnknownLane

from ..support.process import CALL_LIMIT_SECONDS, Process, counting_tool, waiting_tool
from ..support.waiting import DEADLINE_SECONDS, wait_until

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


def test_one_token_drains_a_lane_through_few_slots_with_one_effect_each(start: Start) -> None:
    """A slot that frees claims again without a token; what is asked together commits together."""
    work, effects = counting_tool()
    process = start(work, slots=8)
    process.put("work", 60)
    assert process.drain() >= 8
    wait_until(lambda: process.states()["committed"] == 60)
    assert sorted(effects) == list(range(60))
    assert process.store.batches["record"] < 60
    assert process.drainer.wait_idle(DEADLINE_SECONDS)


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
    assert process.drainer.wait_idle(DEADLINE_SECONDS)
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
        self.go.wait(CALL_LIMIT_SECONDS)


def test_a_process_in_doubt_about_its_heartbeat_sends_nothing(start: Start) -> None:
    """Case 21: what it holds unmarked goes back, and it claims nothing more: others may have it."""
    building = threading.Event()
    slow = SlowBuild(building)
    process = start(slow)
    (seq,) = process.put("slow.build", 1)
    process.drain(limit=1)
    wait_until(lambda: slow.builds > 0)
    process.doubtful = True
    building.set()
    wait_until(lambda: process.outbox.events(seq).count("give_back") > 0)
    assert process.drain(limit=1) == 0
    assert process.outbox.row(seq)["sends"] == 0


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
    wait_until(lambda: process.outbox.row(unknown)["unready_since"] is not None)
    wait_until(lambda: {"give_back", "refuse"} & set(process.outbox.events(bad)))
    assert sorted(effects) == fine


def test_a_token_for_what_is_not_served_here_is_refused(start: Start) -> None:
    """Another outbox's token, or another lane's, claims nothing."""
    process = start(counting_tool()[0])
    with pytest.raises(UnknownLane):
        process.drainer.drain("default", "elsewhere", 1, 1.0)
    with pytest.raises(UnknownLane):
        process.drainer.drain("other", "default", 1, 1.0)
