"""`ackbox up` and single roles as real processes: from nothing to a committed step, and out again.

Everything that a person may do to them: Ctrl-C, SIGTERM, a killed server, workers that never live.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ackbox.app import supervisor
from ackbox.app.embedded import EmbeddedServices
from ackbox.app.roles import Role
from ackbox.app.settings import load_settings
from ackbox.app.supervisor import StopSignals, Supervisor

from ..support.running import Running
from ..support.services import remove_files
from ..support.waiting import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.acceptance

TOOLS = """
import threading
from ackbox import Planner, tool

planner = Planner.connect()  # of the servers that `up` starts after it has looked here

@tool("notes.write")
def write(call, *, text: str):
    with open("notes", "a") as notes:
        notes.write(text)
    return {"length": len(text)}

@tool("notes.hang")
def hang(call):
    open("begun", "w").close()
    threading.Event().wait(120)
"""
Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Give a function that starts commands in the test's folder; they are ended afterwards."""
    started: list[Running] = []

    def begin(*arguments: str, **environ: str) -> Running:
        folder = tmp_path / f"run{len(started)}"
        folder.mkdir()
        (folder / "up_tools.py").write_text(TOOLS)
        started.append(Running(folder, *arguments, **environ))
        return started[-1]

    yield begin
    for one in started:
        one.close()


@pytest.fixture
def embedded(start: Start, tmp_path: Path) -> Iterator[Running]:
    """Run everything on embedded servers of the test's own."""
    data_dir = tmp_path / "data"
    running = start("up", "--tools", "up_tools", "--processes", "1", ACKBOX_DATA_DIR=str(data_dir))
    yield running
    running.close()
    with EmbeddedServices.start_or_attach(data_dir) as services:
        pass
    remove_files(services)


def beside(running: Running, data_dir: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command beside it, in another process that knows the data directory only."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith("ACKBOX_")}
    return subprocess.run(
        [sys.executable, "-m", "ackbox", *arguments], cwd=running.output_path.parent,
        env={**bare, "ACKBOX_DATA_DIR": str(data_dir)},
        capture_output=True, text=True, timeout=DEADLINE_SECONDS,
    )  # fmt: skip


def test_from_nothing_to_a_committed_step_and_out_by_ctrl_c(
    embedded: Running, tmp_path: Path
) -> None:
    """No setting at all: servers, schema, roles and workers; commands beside it find the rows."""
    data_dir = tmp_path / "data"
    embedded.wait_for("ready; Ctrl-C stops it")
    assert " embedded in " in embedded.output()
    stored = beside(embedded, data_dir, "put", "notes.write", '{"text": "hi"}', "--id", "n",
                    "--no-worker-yet")  # fmt: skip
    assert stored.returncode == 0, stored.stderr
    told = beside(embedded, data_dir, "wait", "n", "--timeout", "90", "--until", "bound")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("n · committed")
    assert (embedded.output_path.parent / "notes").read_text() == "hi"
    checked = beside(embedded, data_dir, "doctor")
    assert checked.returncode == 0, checked.stdout
    embedded.interrupt()
    assert embedded.exit_code() == 0, embedded.output()
    assert "stopping: nothing more is claimed" in embedded.output()
    assert "nothing is lost, any ackbox up goes on with it" in embedded.output()
    assert EmbeddedServices.attach(data_dir) is None
    listed = beside(embedded, data_dir, "ls")
    assert listed.returncode == 0, "the stopped servers are borrowed for a question"
    assert "notes.write" in listed.stdout
    assert EmbeddedServices.attach(data_dir) is None


def test_an_embedded_server_that_dies_is_started_again(embedded: Running, tmp_path: Path) -> None:
    """SIGKILL of Valkey: `up` says so, and the next step goes through."""
    embedded.wait_for("ready; Ctrl-C stops it")
    services = EmbeddedServices.attach(tmp_path / "data")
    assert services is not None
    process = services.valkey.record.process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    embedded.wait_for("had died and was started again")
    put = ("put", "notes.write", '{"text": "x"}', "--id", "n", "--no-worker-yet")
    assert beside(embedded, tmp_path / "data", *put).returncode == 0
    assert beside(embedded, tmp_path / "data", "wait", "n").returncode == 0


@pytest.mark.parametrize("role", ["relay", "reaper", "reconciler", "consumer"])
def test_one_role_alone_ends_at_sigterm(
    start: Start, database_url: str, redis_url: str, role: str
) -> None:
    """A single role runs on a named database, and a service manager's SIGTERM ends it with 0."""
    running = start(role, ACKBOX_DATABASE_URL=database_url, ACKBOX_REDIS_URL=redis_url)
    running.wait_for("ready; Ctrl-C stops it")
    running.terminate()
    assert running.exit_code() == 0, running.output()


def test_a_redis_that_does_not_answer_is_said_and_stops_nothing(
    start: Start, database_url: str
) -> None:
    """Work goes on by polls, so that a person has to be told; without the password."""
    away = "redis://:hunter2@127.0.0.1:1/0"
    running = start("relay", ACKBOX_DATABASE_URL=database_url, ACKBOX_REDIS_URL=away)
    running.wait_for("Redis does not answer (ConnectionError)")
    running.wait_for("ready; Ctrl-C stops it")
    running.terminate()
    assert running.exit_code() == 0, running.output()
    assert "hunter2" not in running.output()


def test_workers_that_never_live_fail_the_command(
    start: Start, database_url: str, redis_url: str
) -> None:
    """A pool that cannot keep its processes ends the whole with 1, and says which part it was."""
    running = start("up", "--tools", "up_tools", ACKBOX_DATABASE_URL=database_url,
                    ACKBOX_REDIS_URL=redis_url, ACKBOX_DRAINER="nothing_here:build")  # fmt: skip
    assert running.exit_code() == 1
    assert "failed: the worker pool has ended by itself" in running.output()


def test_a_role_whose_thread_dies_fails_the_command(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 1 with the role's name, and the other roles are ended in good order."""
    ended: list[str] = []

    def short_lived(name: str) -> Callable[..., Role]:
        def begin(_parts: object, stop: threading.Event) -> Role:
            target = stop.wait if name == "reaper" else threading.Event().is_set
            thread = threading.Thread(target=target)
            thread.start()
            return Role(name, [thread], lambda: ended.append(name))

        return begin

    for name in ("relay", "reaper"):
        monkeypatch.setitem(supervisor._START, name, short_lived(name))
    said: list[str] = []
    settings = load_settings({"database_url": database_url})
    with StopSignals().taken() as signals:
        code = Supervisor(settings, ["relay", "reaper"], signals=signals, say=said.append).run()
    assert code == 1
    assert said[-1].startswith("failed: the relay has ended by itself")
    assert ended == ["reaper", "relay"]


def test_a_second_ctrl_c_ends_the_grace(start: Start, database_url: str, redis_url: str) -> None:
    """A call that hangs holds a stop up, for its grace only, and only until somebody insists."""
    named = {"ACKBOX_DATABASE_URL": database_url, "ACKBOX_REDIS_URL": redis_url}
    running = start("up", "--tools", "up_tools", "--processes", "1", **named)
    running.wait_for("ready; Ctrl-C stops it")
    put = ("put", "notes.hang", "{}", "--id", "h", "--tools", "up_tools")
    assert subprocess.run(
        [sys.executable, "-m", "ackbox", *put], cwd=running.output_path.parent,
        env={**os.environ, **named}, capture_output=True, timeout=DEADLINE_SECONDS,
    ).returncode == 0  # fmt: skip
    wait_until(
        (running.output_path.parent / "begun").exists, DEADLINE_SECONDS, "the call has begun"
    )
    running.interrupt()
    running.wait_for("stopping: nothing more is claimed")
    assert running.process.poll() is None
    running.interrupt()
    assert running.exit_code() == 1
    assert "1 with an open attempt" in running.output()
