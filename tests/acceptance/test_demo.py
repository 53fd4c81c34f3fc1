"""The demo with real processes: the figures of a small run, and that nothing outlives it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ackbox.app.embedded import EmbeddedServices

from ..support.waiting import DEADLINE_SECONDS, wait_until

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
SMALL = ("--steps", "12", "--workers", "2", "--kills", "3")


def demo_command(services: EmbeddedServices, *options: str) -> list[str]:
    """Return the command on servers that run already."""
    return [sys.executable, "-m", "ackbox", "demo", "--data-dir", str(services.data_dir), *options]


def clean_environ() -> dict[str, str]:
    """Return the environment without settings of ackbox."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ACKBOX_")}


def children_of(pid: int) -> set[int]:
    """Return the pids of all running descendants."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] not in "ZX":
            parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    while True:
        more = {one for one, parent in parents.items() if parent in {pid, *found}} - found
        if not more:
            return found
        found |= more


def living(pids: set[int]) -> set[int]:
    """Return those of the pids that still run, whoever their parent is now."""
    alive = set()
    for pid in pids:
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if status.rpartition(")")[2].split()[0] not in "ZX":
            alive.add(pid)
    return alive


def show(services: EmbeddedServices, name: str) -> dict[str, Any]:
    """Ask for a step of the first run as the demo's last line says."""
    names = ("--schema", "demo_1", "--outbox", "demo_1", "--data-dir", str(services.data_dir))
    ran = subprocess.run(
        [sys.executable, "-m", "ackbox", "show", *names, name, "--json"], env=clean_environ(),
        cwd=services.data_dir, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture
def running_demo(private_services: EmbeddedServices) -> Iterator[subprocess.Popen[str]]:
    """Run a long demo in the middle of its work."""
    process = subprocess.Popen(
        demo_command(private_services, "--steps", "600", "--kills", "30"),
        env=clean_environ(), cwd=private_services.data_dir, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    folder = private_services.data_dir / "demo" / "1" / "ackbox"
    try:
        wait_until(
            lambda: list(folder.glob("fired-*")), DEADLINE_SECONDS, "the first kill has happened"
        )
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_small_run_loses_and_doubles_nothing(private_services: EmbeddedServices) -> None:
    """Every kill happened, bare RQ doubled steps under the same ones, and the record is kept."""
    ran = subprocess.run(
        demo_command(private_services, *SMALL, "--json"), env=clean_environ(),
        cwd=private_services.data_dir, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert list(figures) == [
        "steps", "effects", "duplicates", "lost", "committed", "unknown", "stale_rejected",
        "kills", "naive",
    ]  # fmt: skip
    assert (figures["steps"], figures["kills"]) == (12, 3)
    assert (figures["duplicates"], figures["lost"]) == (0, 0)
    assert figures["committed"] + figures["unknown"] == 12
    assert figures["stale_rejected"] == 1
    assert figures["naive"]["duplicates"] > 0
    assert figures["naive"]["effects"] == 12 + figures["naive"]["duplicates"]
    log = (private_services.data_dir / "demo" / "1" / "demo.log").read_text().splitlines()
    (went_wrong,) = [json.loads(line) for line in log if '"went_wrong"' in line]
    assert went_wrong["replays"] >= 1
    assert min(went_wrong["wakes_lost"], went_wrong["wakes_doubled"]) >= 1
    assert show(private_services, "r1:open-ticket-1")["entries"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_stopped_demo(
    running_demo: subprocess.Popen[str], number: signal.Signals
) -> None:
    """Workers and provider end with the demo, however it ends."""
    started = children_of(running_demo.pid)
    assert len(started) >= 3, "the provider and workers run"
    running_demo.send_signal(number)
    running_demo.wait(DEADLINE_SECONDS)
    assert running_demo.returncode != 0
    wait_until(lambda: not living(started), DEADLINE_SECONDS, "every process of the demo has ended")
