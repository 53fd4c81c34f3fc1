"""Stock `rq worker`, `rq info` and RQ's own pool, with our class and the shipped composition."""

import subprocess
import sys

import pytest

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane

pytestmark = pytest.mark.acceptance
CLASS = "ackbox.workers.shell.rq_worker.AckboxWorker"


@pytest.mark.parametrize("command", ["worker", "worker-pool"])
def test_a_stock_rq_command_serves_a_lane(bus: Bus, command: str) -> None:
    """Nothing of ours starts it: the drainer comes from the environment, SIGTERM ends it well."""
    lane = new_lane("stock")
    options = ["-u", bus.redis_url, "-w", CLASS, "--serializer", "json"]
    program = [sys.executable, "-m", "rq.cli", command, *options, f"ackbox.{lane}"]
    known = bus.worker_ids()
    started = subprocess.Popen(
        program, env=bus.environ(ACKBOX_LANES=lane),
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
