"""Stock `rq worker`, `rq info` and RQ's own pool, with our class and the shipped composition."""

import subprocess
import sys

import pytest

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane

pytestmark = pytest.mark.acceptance
CLASS = "ackbox.workers.shell.rq_worker.AckboxWorker"


def _program(bus: Bus, lane: str, command: str, *options: str) -> list[str]:
    """Return a stock command with our class for one lane."""
    named = ["-u", bus.redis_url, "-w", CLASS, "--serializer", "json", *options]
    return [sys.executable, "-m", "rq.cli", command, *named, f"ackbox.{lane}"]


@pytest.mark.parametrize("command", ["worker", "worker-pool"])
def test_a_stock_rq_command_serves_a_lane(bus: Bus, command: str) -> None:
    """Nothing of ours starts it: the drainer comes from the environment, SIGTERM ends it well."""
    lane = new_lane("stock")
    known = bus.worker_ids()
    started = subprocess.Popen(
        _program(bus, lane, command), env=bus.environ(ACKBOX_LANES=lane),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: bus.worker_ids() - known, DEADLINE_SECONDS, "it has introduced itself")
        intents = bus.put_many("keyless", lane, 5)
        bus.wait_states(intents, "committed")
        told = subprocess.run(
            [sys.executable, "-m", "rq.cli", "info", "-u", bus.redis_url],
            capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS,
        ).stdout  # fmt: skip
    finally:
        started.terminate()
        code = started.wait(DEADLINE_SECONDS)
    assert f"ackbox.{lane}" in told
    assert code == 0
    assert bus.effects(*intents) == [1] * 5


def test_forked_workers_share_no_session(own_bus: Bus) -> None:
    """Case 123: two children of RQ's own pool claim side by side, each with sessions of its own."""
    bus = own_bus
    bus.roles()
    log = bus.folder / "pool.log"
    with log.open("wb") as output:
        started = subprocess.Popen(
            _program(bus, "main", "worker-pool", "--num-workers", "2"),
            env=bus.environ(ACKBOX_LANES="main"), stdout=output, stderr=output,
        )  # fmt: skip
    try:
        wait_until(lambda: len(bus.worker_ids()) == 2, message="both have introduced themselves")
        intents = bus.put_many("keyless", "main", 200)
        bus.wait_states(intents, "committed")
        wait_until(lambda: _hearts(bus) == 2, message="each has a heart of its own")
    finally:
        started.terminate()
        code = started.wait(DEADLINE_SECONDS)
    assert code == 0
    assert "Traceback" not in log.read_text()
    assert bus.effects(*intents) == [1] * 200
    assert {(row["attempts"], row["sends"]) for row in bus.rows(intents)} == {(1, 1)}


def _hearts(bus: Bus) -> int:
    """Count the sessions in which processes beat."""
    return len(bus.sql(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'ackbox heartbeat'"
    ))  # fmt: skip
