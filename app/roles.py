"""The background roles of one outbox, each a loop around one pass: relay, reaper, reconciler.

Any number of each may run anywhere; none elects a leader. The composition root's upper half.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import structlog

from ..outbox.commands import (
    FindHeld,
    FindOverdue,
    FindReadyLanes,
    FindUndone,
    FinishUndo,
    HoldStep,
    OrderCompensation,
    PlanCompensation,
    ReapRows,
    Ring,
    RingResults,
)
from ..outbox.compensate import TOOL_UNKNOWN, CompensationRequest
from ..outbox.gates import FindGatesDue, TimeOutGate, gate_pass
from ..outbox.hold import hold_pass
from ..outbox.model import Refusal
from ..outbox.reap import reap_pass
from ..outbox.relay import relay_pass
from ..outbox.shell.attempt_store import AttemptStore
from ..outbox.shell.bell import TOKEN_LIMIT
from ..outbox.shell.claim_store import ClaimStore
from ..outbox.shell.compensation_store import undo_target
from ..outbox.shell.fault_points import FaultPoints
from ..outbox.shell.gate_store import gates_due, time_out_gate
from ..outbox.shell.hold_store import HoldStore
from ..outbox.shell.listener import Listener
from ..outbox.shell.loops import Loop
from ..outbox.shell.partitions import ensure_event_partitions
from ..outbox.shell.pass_driver import run_pass
from ..outbox.shell.reap_store import ReapStore
from ..outbox.shell.reconcile_store import ReconcileStore
from ..outbox.shell.rows import RowReader
from ..planner.plan import Plan
from ..planner.shell.consumer import ResultConsumer
from ..tool_adapters.compensating import plan_compensation
from ..workers.shell.heartbeat import Heartbeat
from ..workers.shell.reconciler import Reconciler
from ..workers.shell.tool_driver import ToolDriver
from .consumer_process import warn_of_unknown_tools
from .lane_alarm import LaneAlarm
from .parts import Parts

_log = structlog.get_logger(__name__)
PASS_LIMIT = 200
TIDY_EVERY = timedelta(seconds=2)
PARTITIONS_EVERY = timedelta(hours=1)
CONSUMER_POOL_SIZE = 4


class Role:
    """A started role: its loop's thread and what must be closed behind it."""

    def __init__(self, name: str, threads: list[threading.Thread], close: Callable[[], None]):
        self.name = name
        self._threads = threads
        self._close = close

    def is_alive(self) -> bool:
        """Return whether every thread of the role still runs."""
        return all(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """Wait for the loops to end (their stop event is set), then close what they used."""
        for thread in self._threads:
            thread.join()
        self._close()


def start_relay(parts: Parts, stop: threading.Event) -> Role:
    """Ring every lane with ready rows: after notifications, and by a poll in any case."""
    store = ReapStore(parts.database, parts.statements, parts.limits)
    handlers = {
        FindReadyLanes: lambda command: store.ready_lanes(command.row_limit),
        Ring: lambda command: _ring(parts, command),
    }
    alarm = LaneAlarm()

    def run_once() -> bool:
        for lane in run_pass(relay_pass(TOKEN_LIMIT), handlers):
            if alarm.is_due(lane.lane, lane.oldest_seconds, time.monotonic()):
                _log.error("lane_is_late", lane=lane.lane, oldest_seconds=lane.oldest_seconds)
        return False

    loop = Loop("relay", run_once, poll_seconds=parts.settings.poll_seconds, stop=stop)
    listener = Listener(parts.database, loop.ring, stop)
    end_beat = _beating(parts, "relay")
    return Role("relay", [loop.start(), listener.start()], end_beat)


def start_reaper(parts: Parts, stop: threading.Event) -> Role:
    """Fire expiry edges, time gates out, and keep the store tidy."""
    store = ReapStore(parts.database, parts.statements, parts.limits)
    reader = RowReader(parts.statements, parts.limits)
    handlers: dict[type[Any], Callable[[Any], Any]] = {
        FindGatesDue: lambda command: parts.database.run(
            lambda c: gates_due(c, parts.statements, command.limit)
        ),
        TimeOutGate: lambda command: _time_out_gate(parts, reader, command),
        FindOverdue: lambda command: store.find_overdue(command.limit),
        ReapRows: lambda command: store.reap(command.seqs),
        Ring: lambda command: _ring(parts, command),
    }
    tidy = _Every(TIDY_EVERY, lambda: store.tidy(PASS_LIMIT))
    partitions = _Every(PARTITIONS_EVERY, lambda: _make_partitions(parts))

    def run_once() -> bool:
        moved = run_pass(reap_pass(PASS_LIMIT, TOKEN_LIMIT), handlers)
        run_pass(gate_pass(PASS_LIMIT), handlers)
        tidy.when_due()
        partitions.when_due()
        return moved >= PASS_LIMIT

    loop = Loop("reaper", run_once, poll_seconds=parts.settings.poll_seconds, stop=stop)
    end_beat = _beating(parts, "reaper")
    return Role("reaper", [loop.start()], end_beat)


def start_reconciler(parts: Parts, stop: threading.Event) -> Role:
    """Settle unknown rows and move held ones; both talk to adapters."""
    tools = ToolDriver(parts.registry, parts.limits)
    bell = parts.bell()
    attempts = AttemptStore(parts.database, parts.statements, parts.limits)
    reconciler = Reconciler(
        ReconcileStore(parts.database, parts.statements, parts.limits),
        attempts, tools, bell, parts.limits, owner=parts.worker_id,
    )  # fmt: skip
    end_beat = _beating(parts, "reconciler", reconciler.overrunning)
    poll_seconds = parts.settings.poll_seconds
    looks = Loop("reconciler", reconciler.run_once, poll_seconds=poll_seconds, stop=stop)
    holds = Loop("holds", _hold_once(parts), poll_seconds=poll_seconds, stop=stop)

    def close() -> None:
        reconciler.close()
        end_beat()
        bell.close()
        tools.close()

    return Role("reconciler", [looks.start(), holds.start()], close)


def start_consumer(parts: Parts, stop: threading.Event, plan: Plan | None = None) -> Role:
    """Bind settled rows and hand them to the plan: after result tokens, and by a poll."""
    database = parts.own_database("ackbox consumer", pool_size=CONSUMER_POOL_SIZE)
    consumer = ResultConsumer(
        database, plan, limits=parts.limits, poll_seconds=parts.settings.poll_seconds,
        rung=lambda lanes: _ring_lanes(parts, lanes), faults=FaultPoints.from_environment(),
    )  # fmt: skip
    if plan is not None:
        warn_of_unknown_tools(parts, plan)
    end_beat = _beating(parts, "consumer")
    results = threading.Thread(
        target=_wait_for_results, args=(parts, consumer, stop), name="ackbox-results", daemon=True
    )
    results.start()
    threads = [*consumer.start(stop), results]

    def close() -> None:
        consumer.close()
        end_beat()
        database.dispose()

    return Role("consumer", threads, close)


def _wait_for_results(parts: Parts, consumer: ResultConsumer, stop: threading.Event) -> None:
    """Pass result tokens on to the consumer, for as long as there is a bus."""
    while not stop.is_set():
        if parts.bus is not None and parts.bus.take_results():
            consumer.wake()
        elif parts.bus is None or parts.bus.retry_in_seconds > 0:
            stop.wait(parts.settings.poll_seconds)


def _ring_lanes(parts: Parts, lanes: Collection[str]) -> None:
    for lane in sorted(lanes):
        if parts.bus is not None:
            parts.bus.ring(lane, TOKEN_LIMIT)


def _hold_once(parts: Parts) -> Callable[[], bool]:
    store = HoldStore(parts.database, parts.statements, parts.limits)
    handlers: dict[type[Any], Callable[[Any], Any]] = {
        FindHeld: lambda command: store.find_held(command.limit),
        HoldStep: lambda command: store.hold_step(command.seq),
        FindUndone: lambda command: store.find_undone(command.limit),
        FinishUndo: lambda command: store.finish_undo(command.seq),
        PlanCompensation: lambda command: _plan(parts, command.owner),
        OrderCompensation: lambda command: store.order(command.seq, command.owner, command.plan),
        Ring: lambda command: _ring(parts, command),
        RingResults: lambda command: parts.bus is not None and parts.bus.ring_results(),
    }

    def run_once() -> bool:
        report = run_pass(hold_pass(PASS_LIMIT, TOKEN_LIMIT), handlers)
        return bool(report.looked_at >= PASS_LIMIT)

    return run_once


def _plan(parts: Parts, owner: int) -> CompensationRequest | Refusal:
    found = parts.database.run(lambda c: undo_target(c, parts.statements, owner))
    if found is None:
        return Refusal(TOOL_UNKNOWN, "no such row")
    return plan_compensation(parts.registry, found.tool, found.version, found.target)


def _ring(parts: Parts, command: Ring) -> bool:
    return parts.bus is not None and parts.bus.ring(command.lane, command.limit)


def _beating(
    parts: Parts, role: str, overrunning: Callable[[], tuple[int, ...]] = tuple
) -> Callable[[], None]:
    """Start the role's heartbeat on a pool of its own; returns what ends both."""
    database = parts.own_database(f"ackbox {role} heartbeat")
    store = ClaimStore(database, parts.statements)
    beat = Heartbeat(store, parts.incarnation(role), parts.limits, overrunning)
    beat.start()

    def end() -> None:
        beat.stop()
        database.dispose()

    return end


def _time_out_gate(parts: Parts, reader: RowReader, command: TimeOutGate) -> bool:
    """Answer False where the gate was decided meanwhile."""
    answer = parts.database.run(
        lambda c: time_out_gate(c, parts.statements, reader, command.seq, command.fingerprint)
    )
    return not isinstance(answer, Refusal)


@contextmanager
def background_roles(parts: Parts) -> Iterator[None]:
    """Run the four background roles beside the caller, each as a process of its own name would."""
    stop = threading.Event()
    roles: list[Role] = []
    try:
        for start in (start_relay, start_reaper, start_reconciler, start_consumer):
            roles.append(start(replace(parts, worker_id=uuid4()), stop))
        yield
    finally:
        stop.set()
        for role in roles:
            role.close()


def _make_partitions(parts: Parts) -> None:
    statement, _ = parts.statements.named("now")
    parts.database.run(
        lambda c: ensure_event_partitions(
            c, parts.settings.schema_name, c.execute(statement).scalar_one()
        )
    )


class _Every:
    """Runs something at most once in a while, on the loop that asks."""

    def __init__(self, pause: timedelta, work: Callable[[], object]) -> None:
        self._pause = pause.total_seconds()
        self._work = work
        self._due_at = 0.0

    def when_due(self) -> None:
        """Run it if its time has come."""
        now = time.monotonic()
        if now >= self._due_at:
            self._due_at = now + self._pause
            self._work()
