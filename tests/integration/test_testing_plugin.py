"""The pytest plugin as an application uses it: opted in by a conftest, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import os
import pytest

pytest_plugins = ["ackbox.testing.pytest_plugin"]


@pytest.fixture(scope="session")
def ackbox_server_url():
    return os.environ["APPLICATION_TEST_SERVER"]
"""
TOOLS = """
import ackbox


@ackbox.tool("mail.send")
def send_mail(call, *, to: str) -> str:
    return "queued"
"""
ON_MEMORY = """
from app_tools import send_mail


def test_one(ackbox_memory_bus):
    bus = ackbox_memory_bus(send_mail)
    intent = bus.planner.put(send_mail.intent(to="ops"), run_id="r1", step="mail")
    assert bus.planner.wait(intent, timeout_seconds=30).result == "queued"
"""
ON_POSTGRES = """
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from ackbox.testing import puts
from app_tools import send_mail


def test_puts_and_serve(ackbox_bus):
    engine = create_engine(ackbox_bus.database_url)
    planner, draft = ackbox_bus.planner, send_mail.intent(to="ops")
    with Session(engine) as session, session.begin():
        session.execute(text("CREATE TABLE kept (n int)"))
        intent = planner.put(draft, run_id="r1", step="mail", on=session)
        with session.begin_nested():
            planner.put_many([planner.draft(draft, run_id="r1", step=s) for s in "ab"], on=session)
        assert [one.intent.step for one in puts(session)] == ["mail", "a", "b"]
        assert puts(session, send_mail)[0].args == {"to": "ops"}
        assert puts(session, "other.tool") == []
        with Session(engine) as other, other.begin():
            assert puts(other) == []
            planner.put(draft, run_id="r1", step="other", on=other)
            assert [one.intent.step for one in puts(other)] == ["other"]
        assert len(puts(session)) == 3
    with Session(engine) as session, session.begin():
        assert puts(session) == []
    with ackbox_bus.serve(send_mail):
        told = planner.wait(intent, timeout_seconds=120, until="bound")
        assert told.result == "queued"
    engine.dispose()


def test_the_schema_is_empty_again(ackbox_bus):
    assert ackbox_bus.planner.get(("r1", "mail")) is None
    engine = create_engine(ackbox_bus.database_url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM kept")).scalar() == 0
    engine.dispose()
"""


def run_pytest(folder: Path, server: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder as a person does, with warnings as errors."""
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    environment = {**os.environ, "APPLICATION_TEST_SERVER": server}
    return subprocess.run(
        [*command, *options], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An application's tests, without a conftest."""
    (tmp_path / "app_tools.py").write_text(TOOLS)
    (tmp_path / "test_memory.py").write_text(ON_MEMORY)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


def test_fixtures_of_a_run_on_a_server_of_its_own(folder: Path, postgres_admin_url: str) -> None:
    """Memory and Postgres, puts of open transactions, a clean schema for each test."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_postgres.py").write_text(ON_POSTGRES)
    done = run_pytest(folder, postgres_admin_url)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_the_embedded_servers_start_with_the_first_test_that_asks(folder: Path) -> None:
    """Without any server named; they are gone at the end, and their files with them."""
    (folder / "conftest.py").write_text('pytest_plugins = ["ackbox.testing.pytest_plugin"]\n')
    (folder / "test_redis.py").write_text(
        "from ackbox.planner.shell.planner import Planner\n"
        "def test_it(ackbox_bus, ackbox_redis_url):\n"
        "    assert isinstance(ackbox_bus.planner, Planner)\n"
        '    assert ackbox_redis_url.startswith("redis://")\n'
    )
    temporary = folder / "temporary"
    done = run_pytest(folder, "", f"--basetemp={temporary}")
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert not list(temporary.rglob("password"))


def test_nothing_is_registered_unasked(folder: Path) -> None:
    """An installed ackbox gives pytest no fixture; each that it can give is named alike."""
    done = run_pytest(folder, "")
    assert "fixture 'ackbox_memory_bus' not found" in done.stdout
    listed = run_pytest(folder, "", "-p", "ackbox.testing.pytest_plugin", "--fixtures")
    lines = [line for line in listed.stdout.splitlines() if "app/testing/fixtures.py:" in line]
    given = [line.split()[0] for line in lines]
    assert len(given) == 6
    assert all(name.startswith("ackbox_") for name in given)
