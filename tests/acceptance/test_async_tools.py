"""`async def` tools in real worker processes: killed, cancelled, told to end, not opened."""

import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ackbox.app.rq_process import COMMAND, ENVIRONMENT_EXIT
from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane, unique
from .support_children import Child
from .support_versions import awaiting, hasty, stubborn

pytestmark = pytest.mark.acceptance
WARNINGS = ("never awaited", "was destroyed", "Traceback", "Unclosed", "lifespan_not_closed")
SLOW_SECONDS = 60.0


@pytest.fixture
def deployed(bus: Bus) -> Callable[[str], Child]:
    """Give a function that starts a worker of a lane with the async tools."""
    return lambda lane: bus.worker(
        lane, ACKBOX_TOOLS="support_versions:asynchronous", PYTHONWARNINGS="default"
    )


def put(bus: Bus, tool: Any, lane: str, intent_id: str | None = None, **args: Any) -> Intent:
    """Put a call of an async tool."""
    draft = replace(tool.intent(**args), lane=lane)
    return bus.planner.put(draft, intent_id=intent_id or unique(lane))


def check_quiet(worker: Child) -> None:
    """Check that nothing of asyncio was left behind."""
    found = [word for word in WARNINGS if word in worker.output()]
    assert not found, worker.output()[-3000:]


def test_calls_share_one_client_and_end_in_order(
    bus: Bus, deployed: Callable[[str], Child]
) -> None:
    """Many at once; the call in flight at SIGTERM ends, commits, and nothing is left behind."""
    lane = new_lane("async")
    worker = deployed(lane)
    rows = [put(bus, awaiting, lane) for _ in range(20)]
    bus.wait_states(rows, "committed")
    slow = unique(lane)
    bus.provider.fault("delay_after_effect", slow, seconds=3.0)
    last = put(bus, awaiting, lane, slow)
    bus.wait_effect(last)
    assert worker.end() == 0
    assert bus.states([last]) == ["committed"]
    assert bus.effects(*rows, last) == [1] * 21
    check_quiet(worker)


@pytest.mark.parametrize("point", ["after_mark", "after_effect", "before_settle"])
def test_a_kill_leaves_one_effect_at_most_and_nothing_lost(
    bus: Bus, deployed: Callable[[str], Child], point: str
) -> None:
    """Without key and probe the row waits for a person; its neighbour goes on elsewhere."""
    lane = new_lane("killed")
    worker = deployed(lane)
    name = unique(lane)
    bus.plan(point, name)
    row = put(bus, awaiting, lane, name)
    assert worker.wait() == -signal.SIGKILL
    bus.wait_parked(row)
    assert bus.effects(row) == [0 if point == "after_mark" else 1]
    after = put(bus, awaiting, lane)
    deployed(lane)
    bus.wait_state(after, "committed")
    assert bus.effects(after) == [1]


def test_at_its_limit_a_call_is_cancelled_and_unknown(
    bus: Bus, deployed: Callable[[str], Child]
) -> None:
    """Whatever it would have returned: the effect is there, the outcome is not."""
    lane = new_lane("limit")
    worker = deployed(lane)
    name = unique(lane)
    bus.provider.fault("delay_after_effect", name, seconds=SLOW_SECONDS)
    row = put(bus, hasty, lane, name)
    bus.wait_parked(row)
    assert bus.effects(row) == [1]
    (lost,) = bus.events(row, "lose")
    assert lost["reason"] == "over_limit"
    fine = put(bus, hasty, lane)
    bus.wait_state(fine, "committed")
    assert worker.end() == 0
    check_quiet(worker)


def test_one_that_heeds_no_cancellation_settles_late(
    bus: Bus, deployed: Callable[[str], Child], tmp_path: Path
) -> None:
    """Unknown at the limit; what it returns at last is proof."""
    lane, gate = new_lane("stubborn"), tmp_path / "gate"
    deployed(lane)
    row = put(bus, stubborn, lane, gate=str(gate))
    wait_until(lambda: bus.events(row, "lose"), DEADLINE_SECONDS, "its limit has passed")
    gate.touch()
    bus.wait_state(row, "committed")
    assert bus.effects(row) == [1]


def test_a_worker_whose_lifespan_fails_does_not_start(bus: Bus) -> None:
    """It names the lifespan and the place, never the message, and has claimed nothing."""
    lane = new_lane("unopened")
    row = put(bus, awaiting, lane)
    environ = bus.environ(ACKBOX_LANES=lane, ACKBOX_TOOLS="support_versions:unopened")
    ended = subprocess.run(COMMAND, env=environ, capture_output=True, text=True, check=False)
    assert ended.returncode == ENVIRONMENT_EXIT
    assert "support_versions._closed could not be opened: ConnectionError" in ended.stderr
    assert "password" not in ended.stderr + ended.stdout
    assert bus.states([row]) == ["queued"]
    assert bus.events(row, "claim") == []
