"""Databases that do not fit: no schema, a newer one, another outbox, no rights, no answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from ackbox.outbox.errors import ConfigError
from ackbox.outbox.shell.migrate import current, upgrade

from ..support.command_line import CommandLine, bare_line, error_of
from ..support.seed import Seeded

SECRET = "do-not-show-4711"


@pytest.fixture
def line(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line on a migrated database, in an empty folder."""
    return bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=database_url)


@pytest.fixture
def seeded(database_url: str) -> Iterator[Seeded]:
    """Give the same database's rows in a test's hand."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


@pytest.fixture
def empty(empty_database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line on a database without any schema."""
    return bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=empty_database_url)


ANY: list[tuple[str, ...]] = [
    ("ls",), ("unknowns",), ("show", "x"), ("wait", "x"), ("cancel", "x"),
    ("put", "t", "{}", "--id", "x"), ("release", "x", "--reason", "r", "--fence", "1"),
    ("resolve", "x", "--landed", "R", "--reason", "r", "--fence", "1"),
    ("close-divergence", "x", "1", "--stands", "--reason", "r"),
    ("up",), ("relay",), ("reaper",),
]  # fmt: skip


def test_a_database_without_the_schema(empty: CommandLine) -> None:
    """Every command says `ackbox migrate`, exit 7, and creates nothing by itself."""
    for arguments in ANY:
        ended = empty.run(*arguments)
        what, _, step = error_of(ended)
        assert ended.code == 7, arguments
        assert "no schema 'ackbox'" in what
        assert step == "Try: ackbox migrate"
    assert current(empty.environ["ACKBOX_DATABASE_URL"]) is None


def test_migrate_checks_plans_and_upgrades(empty: CommandLine) -> None:
    """--check exits 1 until it is done; --plan changes nothing; a second run is harmless."""
    assert empty.run("migrate", "--check").code == 1
    planned = empty.run("migrate", "--plan", "--json")
    assert planned.code == 0
    assert planned.json()["pending"]
    assert empty.run("migrate", "--json").json()["pending"] == []
    assert empty.run("migrate").code == 0
    assert empty.run("migrate", "--check").code == 0
    assert empty.run("ls").code == 0


def test_a_newer_schema_is_refused(line: CommandLine, seeded: Seeded) -> None:
    """Exit 7 and the installation as the next step; `migrate` does not touch it either."""
    seeded.sql("UPDATE {schema}.schema_version SET version_num = '9999'")
    seeded.sql("UPDATE {schema}.meta SET value = '9998' WHERE name = 'works_from'")
    for arguments in (("ls",), ("put", "t", "{}", "--id", "x"), ("migrate",)):
        ended = line.run(*arguments)
        assert ended.code == 7
        assert "newer" in error_of(ended)[0]
        assert "install the newer ackbox" in error_of(ended)[2]


def test_another_outbox_s_schema_is_refused(line: CommandLine, seeded: Seeded) -> None:
    """A schema belongs to one outbox, by name."""
    ended = line.run("ls", "--outbox", "west")
    assert ended.code == 7
    assert error_of(ended)[0].startswith("error: other_outbox — ")
    with pytest.raises(ConfigError):
        upgrade(line.environ["ACKBOX_DATABASE_URL"], outbox="west")


@pytest.mark.parametrize(
    ("part", "says"),
    [({"port": 1}, "refused"), ({"database": "not_there"}, "does not exist"),
     ({"username": "nobody_here"}, "nobody_here")],
)  # fmt: skip
def test_a_wrong_database_url_is_told(
    line: CommandLine, part: dict[str, str | int], says: str
) -> None:
    """Exit 7: which database, where its URL came from, and no password."""
    url = make_url(line.environ["ACKBOX_DATABASE_URL"]).set(**part)  # type: ignore[arg-type]
    url = url.set(password=url.password or SECRET)
    line.environ["ACKBOX_DATABASE_URL"] = url.render_as_string(hide_password=False)
    for arguments in (("ls",), ("put", "t", "{}", "--id", "x"), ("migrate", "--check")):
        ended = line.run(*arguments)
        assert ended.code == 7
        what, _, step = error_of(ended)
        assert says in what
        assert "environment ACKBOX_DATABASE_URL" in what
        assert "ackbox doctor" in step
        assert str(url.password) not in ended.err + ended.out


def test_a_role_without_rights_is_told(line: CommandLine, seeded: Seeded) -> None:
    """What the database refuses is passed on in its first line, without a traceback."""
    seeded.sql("CREATE ROLE cli_guest LOGIN PASSWORD 'guest'")
    url = make_url(line.environ["ACKBOX_DATABASE_URL"]).set(username="cli_guest", password="guest")
    line.environ["ACKBOX_DATABASE_URL"] = url.render_as_string(hide_password=False)
    try:
        ended = line.run("ls")
        assert ended.code == 7
        assert "permission denied for schema ackbox" in error_of(ended)[0]
    finally:
        seeded.sql("DROP ROLE cli_guest")
