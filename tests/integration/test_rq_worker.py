"""The RQ worker class in real processes, under stock RQ, with a Redis that comes and goes."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq import Queue
from rq.job import JobStatus
from rq.serializers import JSONSerializer
from rq.utils import as_text

from ackbox.outbox.shell.redis_bus import DRAIN_FUNCTION, TokenBus
from ackbox.workers.shell.rq_worker import AckboxWorker

from .valkey_process import (
    MAIL,
    WORKER_CLASS,
    Program,
    ValkeyProcess,
    drains,
    eventually,
    listed,
    ring_until_drained,
    rq_command,
    start_and_list,
    worker_command,
)

POOL_SCRIPT = """
import sys
from redis import Redis
from rq.serializers import JSONSerializer
from rq.worker_pool import WorkerPool
from ackbox.workers.shell.rq_worker import AckboxWorker
WorkerPool(["ackbox.mail"], connection=Redis.from_url(sys.argv[1]), num_workers=2,
           worker_class=AckboxWorker, serializer=JSONSerializer).start()
"""
OWN_SCRIPT = """
import sys
from redis import Redis
from ackbox.workers.shell.rq_worker import AckboxWorker
AckboxWorker(sys.argv[2:], connection=Redis.from_url(sys.argv[1])).work()
"""
FORK_SCRIPT = """
import os, subprocess, sys
from ackbox.workers.shell.drain import ForkRefused, allow_forks, forbid_forks
forbid_forks()
try:
    os.fork()
except ForkRefused:
    print("refused", flush=True)
subprocess.run([sys.executable, "-c", "print('program started', flush=True)"], check=True)
allow_forks()
if os.fork() == 0:
    os._exit(0)
os.wait()
print("allowed", flush=True)
"""


def test_stock_rq_worker_runs_a_token_and_keeps_nothing(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """A token drains its lane; afterwards RQ holds no job of it."""
    start_and_list(worker, valkey)
    assert bus.ring("mail", 7)
    eventually(lambda: drains(worker) == 1, "the token is drained")
    assert worker.calls()[0] == "drain default mail 7"
    eventually(lambda: not valkey.client.keys("rq:job:*"), "the token's hash is gone")


def test_rq_info_lists_the_worker(worker: Program, valkey: ValkeyProcess) -> None:
    """An operator sees the worker and its queue with stock `rq info`."""
    start_and_list(worker, valkey)
    command = rq_command("info", "-u", valkey.url, "--raw", "--only-workers")
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "ackbox.mail" in shown
    assert worker.process is not None
    assert f" {worker.process.pid})" in shown


def test_a_worker_that_is_told_pickle_still_reads_tokens(
    valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """RQ's command line passes pickle by default; the worker speaks JSON all the same."""
    bus.ring("mail", 7)
    command = rq_command("worker", "-u", valkey.url, "-w", WORKER_CLASS, "--burst", "ackbox.mail")
    program = Program(command, tmp_path).start()
    assert program.exit_code() == 0, program.output()
    assert MAIL in program.calls()


def test_burst_waits_for_calls_in_flight(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """A burst ends after its tokens and after what they started."""
    (tmp_path / "idle-gate").unlink()
    bus.ring("mail", 7)
    burst = Program(
        worker_command(valkey.url, "--burst", "ackbox.mail"),
        tmp_path,
        PROBE_IDLE_GATE=str(tmp_path / "idle-gate"),
    ).start()
    eventually(lambda: "wait_idle 35" in burst.calls(), "the burst waits")
    assert burst.is_running()
    assert "stop_claiming" not in burst.calls()
    (tmp_path / "idle-gate").touch()
    assert burst.exit_code() == 0
    assert burst.calls()[-3:] == ["stop_claiming", "wait_idle 35", "idle True"]


def test_lost_doubled_and_reordered_tokens_are_harmless(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """A token is a hint: each one left drains once, none raises, none repeats another."""
    for limit in (1, 2, 3):
        bus.ring("mail", limit)
    key = "rq:queue:ackbox.mail"
    first, second, third = valkey.client.lrange(key, 0, -1)
    valkey.client.delete(f"rq:job:{as_text(second)}")  # case 133: a husk
    valkey.client.delete(key)
    valkey.client.rpush(key, third, second, first, first)
    start_and_list(worker, valkey)
    eventually(lambda: drains(worker) == 2, "both tokens that are left are drained")
    ring_until_drained(worker, bus)
    started = [call for call in worker.calls() if call.startswith("drain ")]
    assert started[:2] == ["drain default mail 3", "drain default mail 1"]


def test_tokens_for_nobody_do_nothing(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """Unknown lane, malformed args, a drain that raises, a foreign job: the worker goes on."""
    queue = Queue("ackbox.mail", connection=valkey.client, serializer=JSONSerializer)
    for args in (("default", "unserved", 1), ("default", "broken", 1), ("default", "mail", "x")):
        queue.enqueue_call(DRAIN_FUNCTION, args=args, timeout=-1, result_ttl=0, failure_ttl=60)
    loot = tmp_path / "foreign-code-ran"
    queue.enqueue_call("os.mkdir", args=(str(loot),), timeout=-1, result_ttl=0, failure_ttl=60)
    start_and_list(worker, valkey)
    ring_until_drained(worker, bus)
    started = [call for call in worker.calls() if call.startswith("drain ")]
    assert started[:2] == ["drain default unserved 1", "drain default broken 1"]
    assert "drain default mail x" not in started
    assert not loot.exists()
    assert queue.failed_job_registry.count == 2


DEEP = b"[" * 100_000
FORGED_FIELDS: tuple[dict[Any, Any], ...] = (
    {"timeout": b"inf"}, {"retry_intervals": DEEP}, {"dependency_ids": DEEP},
    {"repeat_intervals": DEEP}, {"created_at": b"\xff"}, {"status": b"nonsense"},
)  # fmt: skip


def test_forged_tokens_do_not_end_the_worker(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """An id that is no text, jobs that RQ cannot read: each is passed over, one pop each."""
    bus.ring("mail", 7)
    key = "rq:queue:ackbox.mail"
    (token,) = valkey.client.lrange(key, 0, -1)
    sound: dict[Any, Any] = valkey.client.hgetall(f"rq:job:{as_text(token)}")
    valkey.client.delete(key)
    valkey.client.rpush(key, b"\xff\x00")
    for number, fields in enumerate(FORGED_FIELDS):
        name = f"forged-{number}"
        valkey.client.hset(f"rq:job:{name}", mapping={**sound, **fields})
        valkey.client.rpush(key, name)
    valkey.client.rpush(key, token)
    start_and_list(worker, valkey)
    eventually(lambda: drains(worker) == 1, "the sound token behind them is drained")
    assert worker.is_running()


@pytest.mark.parametrize("kind", ["success", "failure", "stopped"])
def test_a_token_with_a_callback_runs_neither(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, kind: str
) -> None:
    """RQ would import and call what a job names as its callback; a token has none."""
    bus.ring("mail", 7)
    (token,) = valkey.client.lrange("rq:queue:ackbox.mail", 0, -1)
    callback = "ackbox.workers.shell.drain.drain_token"
    valkey.client.hset(f"rq:job:{as_text(token)}", f"{kind}_callback_name", callback)
    start_and_list(worker, valkey)
    eventually(lambda: not valkey.client.llen("rq:queue:ackbox.mail"), "it is taken")
    bus.ring("mail", 8)
    eventually(lambda: drains(worker) == 1, "the next token is drained")
    assert "drain default mail 7" not in worker.calls()
    assert worker.is_running()


def test_sigterm_stops_claiming_then_waits_for_calls_in_flight(
    worker: Program, valkey: ValkeyProcess, tmp_path: Path
) -> None:
    """SIGTERM: no claim any more, calls in flight end, exit 0, off the list."""
    (tmp_path / "idle-gate").unlink()
    start_and_list(worker, valkey)
    worker.terminate()
    eventually(lambda: "wait_idle 35" in worker.calls(), "the worker waits for its calls")
    assert worker.is_running()
    assert worker.calls()[0] == "stop_claiming"
    (tmp_path / "idle-gate").touch()
    assert worker.exit_code() == 0
    assert listed(valkey) == 0


def test_sigterm_in_a_token_stops_claiming_at_once(
    worker: Program, valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """The drainer hears of SIGTERM while its own drain runs in the main thread."""
    (tmp_path / "drain-gate").unlink()
    start_and_list(worker, valkey)
    bus.ring("mail", 7)
    eventually(lambda: "drain default mail 7" in worker.calls(), "the token runs")
    worker.terminate()
    eventually(lambda: "stop_claiming" in worker.calls(), "the drainer is told")
    assert MAIL not in worker.calls()
    (tmp_path / "drain-gate").touch()
    assert worker.exit_code() == 0
    assert MAIL in worker.calls()


def test_a_grace_that_is_over_ends_the_worker(valkey: ValkeyProcess, tmp_path: Path) -> None:
    """A call that never ends holds a worker for the grace and no longer."""
    program = Program(
        worker_command(valkey.url, "ackbox.mail"),
        tmp_path,
        PROBE_IDLE_GATE=str(tmp_path / "never"),
        ACKBOX_TERM_GRACE_SECONDS="0.5",
    )
    start_and_list(program, valkey)
    program.terminate()
    assert program.exit_code() == 0
    assert "idle False" in program.calls()


def test_an_abandoned_token_is_counted_and_never_runs_again(
    valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """Case 3: RQ's clean-up files the token of a dead worker; no lane, no row hears of it."""
    bus.ring("mail", 7)
    worker = AckboxWorker(["ackbox.mail"], connection=Redis.from_url(valkey.url))
    (queue,) = worker.queues
    (token,) = queue.jobs
    queue.remove(token)
    token.set_status(JobStatus.STARTED)
    valkey.client.zadd(queue.started_job_registry.key, {f"{token.id}:dead": 1})
    worker.clean_registries()  # type: ignore[no-untyped-call]
    assert worker.counts["abandoned_token"] == 1
    assert queue.count == 0
    assert token.id in queue.failed_job_registry
    worker.connection.close()


def test_rq_worker_pool_runs_without_a_scheduler(
    valkey: ValkeyProcess, bus: TokenBus, tmp_path: Path
) -> None:
    """RQ's own pool forks workers and asks for a scheduler; it gets workers only."""
    pool = Program([sys.executable, "-c", POOL_SCRIPT, valkey.url], tmp_path).start()
    try:
        eventually(lambda: listed(valkey) == 2, "both workers are listed")
        ring_until_drained(pool, bus)
        assert not valkey.client.keys("rq:scheduler*")
        pool.terminate()
        assert pool.exit_code() == 0
        assert pool.calls().count("stop_claiming") >= 2
        assert listed(valkey) == 0
    finally:
        pool.kill_group()


def test_a_process_with_connections_does_not_fork(tmp_path: Path) -> None:
    """The guard refuses a fork, lets programs start, and can be lifted."""
    program = Program([sys.executable, "-c", FORK_SCRIPT], tmp_path).start()
    assert program.exit_code() == 0
    assert program.output().splitlines() == ["refused", "program started", "allowed"]


def test_a_second_signal_ends_the_wait(
    worker: Program, valkey: ValkeyProcess, tmp_path: Path
) -> None:
    """Cold stop: a later second SIGTERM ends the grace with a non-zero exit code."""
    (tmp_path / "idle-gate").unlink()
    start_and_list(worker, valkey)
    worker.terminate()
    eventually(lambda: "wait_idle 35" in worker.calls(), "the worker waits for its calls")

    def is_over() -> bool:
        if worker.is_running():
            worker.terminate()
        return not worker.is_running()

    eventually(is_over, "the second signal ends the worker")
    assert worker.exit_code() not in (0, -signal.SIGKILL)
