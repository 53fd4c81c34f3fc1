"""The supervised pool with real processes: replaced when killed, gone when the pool is gone."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import time

import pytest

from ackbox.workers.shell.pool import FAILED, STOPPED, PoolLimits, WorkerPool

from ..integration.valkey_process import Program, ValkeyProcess, eventually, worker_command

pytestmark = pytest.mark.acceptance

CHILD = """
import os, signal, sys
from ackbox.workers.shell.signals import WakePipe, watch_parent
wake = WakePipe()
signal.signal(signal.SIGTERM, lambda *_: wake.wake())
watch_parent(5)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
wake.wait()
"""
DEAF_CHILD = """
import os, signal, sys, threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
threading.Event().wait()
"""
POOL = """
import sys
from ackbox.workers.shell.pool import PoolLimits, WorkerPool
grace_seconds, young_seconds = map(float, sys.argv[1:3])
limits = PoolLimits(grace_seconds=grace_seconds, young_seconds=young_seconds, max_young_deaths=4,
                    backoff_base_seconds=0.01)
sys.exit(WorkerPool(3, sys.argv[3:], limits=limits).run())
"""


class PoolProgram:
    """A pool of three in a process of its own; each child leaves a file named by its pid."""

    def __init__(
        self, folder: Path, child: str, grace_seconds: float = 60, young_seconds: float = 600
    ) -> None:
        self.births = folder / "births"
        self.births.mkdir()
        child_command = [sys.executable, "-c", child, str(self.births)]
        limits = [str(grace_seconds), str(young_seconds)]
        command = [sys.executable, "-c", POOL, *limits, *child_command]
        self.program = Program(command, folder).start()

    def born(self) -> set[int]:
        """Return the pids of all children so far."""
        return {int(path.name) for path in self.births.iterdir()}

    def living(self) -> set[int]:
        """Return the pids of the children that run now."""
        return {pid for pid in self.born() if is_running(pid)}

    def grown_up(self) -> set[int]:
        """Return the pids of running children that have lived past the pool's `young_seconds`."""
        old = {pid for pid in self.born() if time() - (self.births / f"{pid}").stat().st_mtime > 1}
        return old & self.living()

    def kill_the_next_child(self, elders: set[int]) -> None:
        """Wait for a child that is none of these, and SIGKILL it."""
        youngest = eventually(lambda: self.living() - elders, "a new child runs")
        kill_all(youngest)
        eventually(lambda: not self.living() & youngest, "it is gone")

    def close(self) -> None:
        """End the pool and whatever it left behind."""
        self.program.kill_group()
        kill_all(self.living())


def kill_all(pids: set[int]) -> None:
    """SIGKILL each process that is still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        if sys.platform != "linux":
            return True
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[PoolProgram]:
    """Run a pool of three well-behaved children."""
    pool = PoolProgram(tmp_path, CHILD)
    eventually(lambda: len(pool.living()) == 3, "three children run")
    yield pool
    pool.close()


@pytest.fixture
def adolescent(tmp_path: Path) -> Iterator[PoolProgram]:
    """Run a pool of three whose children are grown up after a moment."""
    pool = PoolProgram(tmp_path, CHILD, young_seconds=0.5)
    eventually(lambda: len(pool.living()) == 3, "three children run")
    yield pool
    pool.close()


def test_a_killed_child_is_replaced(pool: PoolProgram) -> None:
    """Case 15: SIGKILL of one process costs one process, for moments; the others stay."""
    before = pool.living()
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: len(pool.living() - {victim}) == 3, "a new child runs")
    assert before - {victim} < pool.living()
    assert pool.program.is_running()


def test_sigterm_ends_every_child_and_the_pool(pool: PoolProgram) -> None:
    """SIGTERM is passed on; the pool waits and exits 0."""
    pool.program.terminate()
    assert pool.program.exit_code() == STOPPED
    assert pool.living() == set()
    assert len(pool.born()) == 3


def test_children_do_not_outlive_a_killed_pool(pool: PoolProgram) -> None:
    """SIGKILL of the pool: each child notices the closed pipe and ends."""
    assert pool.program.process is not None
    pool.program.process.kill()
    eventually(lambda: pool.living() == set(), "no child is left")


def test_a_child_that_always_dies_makes_the_pool_fail(tmp_path: Path) -> None:
    """A pool that cannot keep its processes alive exits non-zero, so its supervisor sees it."""
    pool = PoolProgram(tmp_path, "raise SystemExit(0)")
    try:
        assert pool.program.exit_code() == FAILED
    finally:
        pool.close()


def test_one_child_that_always_dies_makes_the_pool_fail(tmp_path: Path) -> None:
    """Healthy processes do not hide one that dies young again and again."""
    pool = PoolProgram(tmp_path, CHILD)
    try:
        eventually(lambda: len(pool.living()) == 3, "three children run")
        elders = set(sorted(pool.living())[:2])

        def kill_the_youngest() -> bool:
            kill_all(pool.living() - elders)
            return not pool.program.is_running()

        eventually(kill_the_youngest, "the pool gives up")
        assert pool.program.exit_code() == FAILED
        assert pool.living() == set()
    finally:
        pool.close()


def test_a_child_that_lives_wipes_out_the_early_deaths_before_it(
    adolescent: PoolProgram,
) -> None:
    """Young deaths count in a row only: a worker killed now and then ends no pool."""
    pool = adolescent
    elders = set(sorted(pool.living())[:2])
    for _ in range(2):
        eventually(lambda: len(pool.grown_up()) == 3, "all children have grown up")
        kill_all(pool.living() - elders)
        for _ in range(3):
            pool.kill_the_next_child(elders)
    eventually(lambda: len(pool.living()) == 3, "a new child runs again")
    assert pool.program.is_running()


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    """The grace bounds the stop; a pool that had to kill says so by its exit code."""
    pool = PoolProgram(tmp_path, DEAF_CHILD, grace_seconds=0.5)
    try:
        eventually(lambda: len(pool.living()) == 3, "three children run")
        pool.program.terminate()
        assert pool.program.exit_code() == FAILED
        assert pool.living() == set()
    finally:
        pool.close()


def test_a_pool_runs_in_a_thread_and_names_its_processes(tmp_path: Path) -> None:
    """A program that hosts a pool reads its pids and stops it without signals."""
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    pool = WorkerPool(2, command, limits=PoolLimits(grace_seconds=60))
    codes: list[int] = []
    host = threading.Thread(target=lambda: codes.append(pool.run()))
    host.start()
    eventually(lambda: len(list(tmp_path.iterdir())) == 2, "both children run")
    pids = pool.pids
    assert {int(path.name) for path in tmp_path.iterdir()} == set(pids)
    pool.stop()
    host.join()
    pool.close()
    assert codes == [STOPPED]
    assert pool.pids == ()
    assert not any(is_running(pid) for pid in pids)


@pytest.mark.parametrize(("processes", "command"), [(0, ["true"]), (1, [])])
def test_an_empty_pool_is_refused(processes: int, command: list[str]) -> None:
    """A pool without processes or without a command is a mistake of the caller."""
    with pytest.raises(ValueError, match="pool needs"):
        WorkerPool(processes, command)


def test_workers_of_a_killed_pool_stop_in_order(tmp_path: Path) -> None:
    """Real RQ workers: without their pool they stop claiming, wait for calls, leave the list."""
    valkey = ValkeyProcess(tmp_path)
    valkey.start()
    command = worker_command(valkey.url, "ackbox.mail")
    pool = Program([sys.executable, "-c", POOL, "60", "600", *command], tmp_path).start()
    try:
        eventually(lambda: valkey.client.scard("rq:workers") == 3, "three workers are listed")
        assert pool.process is not None
        pool.process.kill()
        eventually(lambda: valkey.client.scard("rq:workers") == 0, "no worker is listed")
        assert pool.calls().count("idle True") == 3
    finally:
        pool.kill_group()
        valkey.close()
