"""Fixtures of the RQ worker's tests: a Valkey, a bus on it, and a stock worker of one lane."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.outbox.shell.redis_bus import TokenBus

from .valkey_process import Program, ValkeyProcess, worker_command


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyProcess]:
    """Run a server of this test's own."""
    server = ValkeyProcess(tmp_path)
    server.start()
    yield server
    server.close()


@pytest.fixture
def bus(valkey: ValkeyProcess) -> Iterator[TokenBus]:
    """Return a bus of the default outbox on the server."""
    bus = TokenBus(valkey.url)
    yield bus
    bus.close()


@pytest.fixture
def worker(valkey: ValkeyProcess, tmp_path: Path) -> Iterator[Program]:
    """Return a stock `rq worker` of lane mail, not yet started, whose gates the test opens."""
    program = Program(
        worker_command(valkey.url, "ackbox.mail"),
        tmp_path,
        PROBE_DRAIN_GATE=str(tmp_path / "drain-gate"),
        PROBE_IDLE_GATE=str(tmp_path / "idle-gate"),
    )
    (tmp_path / "drain-gate").touch()
    (tmp_path / "idle-gate").touch()
    yield program
    program.kill_group()
