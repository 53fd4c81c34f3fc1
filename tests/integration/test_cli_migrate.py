"""`ackbox migrate` with revisions of a next release, beside real processes of this one."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.app.cli.running import _migrate
from ackbox.app.settings import load_settings
from ackbox.outbox.errors import Refused
from ackbox.outbox.shell import migrate, schema_state
from ackbox.outbox.shell.claim_store import Incarnation
from ackbox.outbox.shell.migrate import upgrade_in
from ackbox.outbox.shell.revisions import Chain, head

from ..support.command_line import CommandLine, bare_line, error_of
from ..support.revisions import later, longer_chain
from ..support.running import Running
from ..support.seed import Seeded


@pytest.fixture
def line(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line on a migrated database, in an empty folder."""
    return bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=database_url)


@pytest.fixture
def seeded(database_url: str) -> Iterator[Seeded]:
    """Give an outbox with one living worker of this version."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """Give the revisions of a next release: it expands, then contracts."""
    return longer_chain(tmp_path / "later", "expand", "contract")


@pytest.fixture
def next_release(line: CommandLine, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Give the command line of that release."""
    for module in (migrate, schema_state):
        monkeypatch.setattr(module, "shipped", lambda: chain)
    return line


def test_a_plan_marks_what_contracts_and_names_whom_it_waits_for(
    next_release: CommandLine, seeded: Seeded
) -> None:
    """--plan lists, --check says by its code, both change nothing and have --json."""
    said = next_release.run("migrate", "--plan").out
    assert f"{later(1)} (expand): A later expand one." in said
    assert f"{later(2)} (contract, ends what is older than {later(1)})" in said
    assert "what contracts waits for: worker on here (pid 1, ackbox " in said
    assert "ackbox migrate --expand-only" in said
    checked = next_release.run("migrate", "--check", "--json")
    assert checked.code == 1
    document = checked.json()
    assert [(step["name"], step["kind"]) for step in document["pending"]] == [
        (later(1), "expand"), (later(2), "contract"),
    ]  # fmt: skip
    assert document["revision"] == head()
    assert [one["role"] for one in document["waits_for"]] == ["worker"]


def test_a_release_in_three_steps(next_release: CommandLine, seeded: Seeded) -> None:
    """Refused while the old worker beats; expanded beside it; contracted when it has ended."""
    refused = next_release.run("migrate")
    assert refused.code == 6
    assert error_of(refused)[0].startswith("refused: older_processes — ")
    assert "worker on here (pid 1, ackbox " in refused.err
    assert next_release.run("migrate", "--check", "--expand-only").code == 1
    expanded = next_release.run("migrate", "--expand-only")
    assert expanded.code == 0
    assert "when every older process has ended: ackbox migrate" in expanded.out
    assert next_release.run("migrate", "--check", "--expand-only").code == 0
    assert next_release.run("ls").code == 0
    assert next_release.run("migrate").code == 6
    seeded.claims.stop(seeded.owner)
    assert next_release.run("migrate", "--json").json()["revision"] == later(2)


def test_the_risk_stands_in_the_flag(next_release: CommandLine, seeded: Seeded) -> None:
    """With it older processes are broken on purpose; it contradicts --expand-only."""
    assert next_release.run("migrate", "--expand-only", "--may-break-older").code == 2
    assert next_release.run("migrate", "--may-break-older").code == 0


def test_a_real_process_works_on_an_expanded_schema_and_is_refused_by_a_contracted_one(
    seeded: Seeded, chain: Chain, database_url: str, tmp_path: Path
) -> None:
    """It starts on the newer schema; where that has gone beyond it, it says so and ends with 7."""
    seeded.run(lambda c: upgrade_in(c, chain=chain, expand_only=True))
    running = Running(tmp_path, "relay", ACKBOX_DATABASE_URL=database_url)
    try:
        running.wait_for("ready; Ctrl-C stops it")
        seeded.claims.stop(seeded.owner)
        with pytest.raises(Refused, match="relay on "):
            seeded.run(lambda c: upgrade_in(c, chain=chain))
        running.terminate()
        assert running.exit_code() == 0, running.output()
    finally:
        running.close()
    seeded.run(lambda c: upgrade_in(c, chain=chain))
    late = Running(tmp_path, "relay", ACKBOX_DATABASE_URL=database_url)
    try:
        assert late.exit_code() == 7
        assert "error: newer_schema — " in late.output()
        assert "install the newer ackbox" in late.output()
    finally:
        late.close()


def test_a_process_of_before_the_column_is_named_by_its_revision(
    next_release: CommandLine, seeded: Seeded
) -> None:
    """Its row says nothing of its version."""
    seeded.claims.register(Incarnation(uuid.uuid4(), "reaper", "old-1", 7))
    seeded.sql("UPDATE {schema}.worker SET version = NULL, revision = NULL WHERE host = 'old-1'")
    assert "reaper on old-1 (pid 7, 0001)" in next_release.run("migrate").err


def test_up_brings_its_own_database_as_far_as_older_processes_can_follow(
    next_release: CommandLine, seeded: Seeded, database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It starts all the same, and says what waits and for whom."""
    _migrate(database_url, load_settings())
    assert "it waits until they have ended" in capsys.readouterr().err
    assert migrate.current(database_url) == later(1)
    seeded.claims.stop(seeded.owner)
    _migrate(database_url, load_settings())
    assert migrate.current(database_url) == later(2)
