"""The RQ worker class in real processes, while Redis is emptied, killed, full, frozen or away."""

import signal
import sys
from pathlib import Path

from ackbox.outbox.shell.redis_bus import TokenBus

from .valkey_process import (
    Program,
    ValkeyProcess,
    drains,
    eventually,
    listed,
    ring_until_drained,
    start_and_list,
)

OWN_SCRIPT = """
import sys
from redis import Redis
from ackbox.workers.shell.rq_worker import AckboxWorker
AckboxWorker(sys.argv[2:], connection=Redis.from_url(sys.argv[1])).work()
"""


def test_flushall_costs_a_worker_its_entry_for_seconds_only(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """After FLUSHALL the worker lists itself again and drains the next token."""
    start_and_list(worker, valkey)
    with valkey.client.pipeline(transaction=True) as pipeline:
        pipeline.flushall()
        pipeline.smembers("rq:workers")
        assert pipeline.execute()[1] == set()
    eventually(lambda: listed(valkey) == 1, "the worker is listed again")
    ring_until_drained(worker, bus)
    assert worker.is_running()


def test_redis_killed_in_a_token_and_back_again(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """The drain under way ends, lanes are polled without Redis, then the worker is listed."""
    (tmp_path / "drain-gate").unlink()
    start_and_list(worker, valkey)
    bus.ring("mail", 7)
    eventually(lambda: "drain default mail 7" in worker.calls(), "the token runs")
    valkey.kill()
    (tmp_path / "drain-gate").touch()
    eventually(lambda: drains(worker) >= 3, "lanes are polled while Redis is gone")
    assert worker.is_running()
    valkey.start()
    eventually(lambda: listed(valkey) == 1, "the worker is listed again")
    ring_until_drained(worker, bus)


def test_a_full_redis_at_start_is_survived(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """Full at start: lanes are polled, and the worker lists itself when there is room."""
    valkey.fill()
    worker.start()
    eventually(lambda: drains(worker) >= 2, "lanes are polled")
    valkey.empty_out()
    eventually(lambda: listed(valkey) == 1, "the worker is listed")
    ring_until_drained(worker, bus)


def test_a_redis_that_is_down_at_start_is_survived(
    valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """Started by code instead of by stock `rq worker`, the class needs no Redis to begin."""
    valkey.kill()
    worker = Program([sys.executable, "-c", OWN_SCRIPT, valkey.url, "ackbox.mail"], tmp_path)
    worker.start()
    try:
        eventually(lambda: drains(worker) >= 2, "lanes are polled")
        valkey.start()
        eventually(lambda: listed(valkey) == 1, "the worker is listed")
        ring_until_drained(worker, bus)
        worker.terminate()
        assert worker.exit_code() == 0
    finally:
        worker.kill_group()


def test_a_poll_that_finds_no_store_ends_no_worker(valkey: ValkeyProcess, tmp_path: Path) -> None:
    """Redis away and Postgres away: the worker goes on, and so do its other lanes."""
    valkey.kill()
    queues = ["ackbox.storeless", "ackbox.unserved", "ackbox.mail"]
    worker = Program([sys.executable, "-c", OWN_SCRIPT, valkey.url, *queues], tmp_path).start()
    try:
        eventually(lambda: drains(worker) >= 2, "the lane after them is polled")
        assert "drain default storeless 1000" in worker.calls()
        assert worker.is_running()
    finally:
        worker.kill_group()


def test_redis_that_fills_up_in_a_token(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """Case 135: the end of the token cannot be noted; work goes on by polling."""
    (tmp_path / "drain-gate").unlink()
    start_and_list(worker, valkey)
    bus.ring("mail", 7)
    eventually(lambda: "drain default mail 7" in worker.calls(), "the token runs")
    valkey.fill()
    (tmp_path / "drain-gate").touch()
    eventually(lambda: drains(worker) >= 3, "lanes are polled")
    valkey.empty_out()
    ring_until_drained(worker, bus)
    worker.terminate()
    assert worker.exit_code() == 0


def test_sigterm_while_redis_is_gone(worker: Program, valkey: ValkeyProcess) -> None:
    """A worker without Redis still stops in order, with exit code 0."""
    start_and_list(worker, valkey)
    valkey.kill()
    eventually(lambda: drains(worker) >= 1, "lanes are polled")
    worker.terminate()
    assert worker.exit_code() == 0
    assert "idle True" in worker.calls()


def test_a_frozen_redis_holds_up_neither_work_nor_sigterm(
    worker: Program, valkey: ValkeyProcess
) -> None:
    """A server that accepts and never answers: lanes are polled, and SIGTERM ends in order."""
    start_and_list(worker, valkey)
    valkey.signal(signal.SIGSTOP)
    eventually(lambda: drains(worker) >= 1, "lanes are polled")
    worker.terminate()
    assert worker.exit_code() == 0
    assert "idle True" in worker.calls()
