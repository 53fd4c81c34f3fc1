"""Doctor on servers of the test's own, with one protection taken away at a time."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from ackbox.app.embedded import EmbeddedServices, postgres
from ackbox.outbox.shell import migrate, schema_state
from ackbox.outbox.shell.claim_store import Incarnation
from ackbox.outbox.shell.migrate import upgrade
from ackbox.outbox.shell.revisions import head

from ..support.command_line import CommandLine, bare_line
from ..support.revisions import later, longer_chain
from ..support.seed import Seeded
from ..support.waiting import wait_until
from .test_doctor import found


@pytest.fixture
def line(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line on a migrated database."""
    return bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=database_url)


@pytest.fixture
def seeded(database_url: str) -> Iterator[Seeded]:
    """Give an outbox with one living worker."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


def set_on_server(url: str, name: str, value: str) -> None:
    """Change a setting of a whole server, and wait until a new session sees it."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f"ALTER SYSTEM SET {name} = '{value}'"))
            connection.execute(text("SELECT pg_reload_conf()"))
            shown = text(f"SHOW {name}")
            wait_until(lambda: connection.scalar(shown) == value, 30, f"{name} is {value}")
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("name", "value", "check", "step"),
    [
        ("full_page_writes", "off", "full_page_writes", "ALTER SYSTEM SET full_page_writes = on"),
        ("synchronous_standby_names", "ghost", "standbys", "start it, or ALTER SYSTEM RESET"),
    ],
)
def test_a_server_that_may_lose_or_stop_everything(
    name: str, value: str, check: str, step: str, private_services: EmbeddedServices,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    """What the whole server is set to is a failure of this outbox."""
    url = private_services.database_url
    upgrade(url)
    line = bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=url)
    assert check not in found(line)
    set_on_server(url, name, value)
    finding = found(line)[check]
    assert finding["level"] == "FAIL"
    assert finding["next_step"].startswith(step)


def test_a_server_that_does_not_write_through(
    private_services: EmbeddedServices, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without fsync a crash of the machine takes anything."""
    monkeypatch.setitem(postgres._SETTINGS, "fsync", "off")
    private_services.postgres.restart()
    upgrade(private_services.database_url)
    line = bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=private_services.database_url)
    finding = found(line)["fsync"]
    assert (finding["level"], finding["next_step"]) == (
        "FAIL", "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()",
    )  # fmt: skip


def test_a_role_that_may_only_read(line: CommandLine, seeded: Seeded) -> None:
    """Nothing can be stored by it."""
    name = make_url(line.environ["ACKBOX_DATABASE_URL"]).database
    seeded.sql(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    finding = found(line)["writable"]
    assert finding["level"] == "FAIL"
    assert "default_transaction_read_only = off" in finding["next_step"]


def test_pools_that_do_not_fit_the_server(line: CommandLine, seeded: Seeded) -> None:
    """Workers of the settings and living processes together, against the smallest limit."""
    assert found(line)["connections"]["level"] == "ok"
    name = make_url(line.environ["ACKBOX_DATABASE_URL"]).database
    seeded.sql(f'ALTER DATABASE "{name}" CONNECTION LIMIT 50')
    assert found(line)["connections"]["level"] == "ok"
    finding = found(line, "--worker-processes", "3")["connections"]
    assert finding["level"] == "FAIL"
    assert "may open 54 connections, the server allows 50" in finding["text"]


def test_older_processes_and_a_contracting_revision(
    line: CommandLine, seeded: Seeded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The process is named with what to do, and so is the revision that waits for it."""
    chain = longer_chain(tmp_path / "later", "expand", "contract")
    seeded.claims.register(Incarnation(uuid.uuid4(), "relay", "web-3", 4711))
    seeded.run(lambda c: migrate.upgrade_in(c, chain=chain, expand_only=True))
    assert found(line)["schema"]["text"].endswith(f"this ackbox knows {head()} and works with it")
    for module in (migrate, schema_state):
        monkeypatch.setattr(module, "shipped", lambda: chain)
    monkeypatch.setattr("ackbox.app.doctor.postgres.head", lambda: later(2))
    checks = found(line)
    assert checks["schema"]["text"] == f"schema ackbox at {later(1)}"
    assert checks["older_process"]["level"] == "WARN"
    assert "end it and start it" in checks["older_process"]["next_step"]
    assert later(2) in checks["contract_pending"]["text"]
    assert "relay on web-3 (pid 4711, ackbox " in line.run("doctor").out


def test_a_tool_without_key_and_probe_takes_one_line(line: CommandLine, seeded: Seeded) -> None:
    """What it means and what to write stand in the same line."""
    said = [text for text in line.run("doctor").out.splitlines() if "keyless" in text]
    assert said == [
        "  WARN  keyless has no key, no probe: its unknowns wait for a person"
        " — declare key= or probe="
    ]
