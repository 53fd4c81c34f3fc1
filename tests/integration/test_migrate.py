"""Migrations: from nothing, again, by several starters at once, under odd names, and refusals."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ackbox.outbox.errors import ConfigError, StoreUnavailable
from ackbox.outbox.shell import migrate
from ackbox.outbox.shell.connection import quoted
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.migrate import check, current, head, plan, upgrade
from ackbox.outbox.shell.partitions import ensure_event_partitions

from ..support.waiting import wait_until

ODD = """Odd "Name" :me 'x' %s {schema} a.b"""
IMMUTABLE = "AB002"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give a migrated database."""
    database = Database(database_url)
    yield database
    database.dispose()


def tables(url: str, schema: str) -> set[str]:
    """Return the names of the schema's tables."""
    database = Database(url)
    question = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")
    found = database.run(lambda c: set(c.scalars(question, {"schema": schema})))
    database.dispose()
    return found


def checked(url: str, schema: str = "ackbox") -> None:
    """Run the start-up check as a role would."""
    database = Database(url, schema=schema)
    try:
        database.run(lambda connection: check(connection, schema))
    finally:
        database.dispose()


def test_an_empty_database_gets_everything(empty_database_url: str) -> None:
    """The plan names what is to be done, upgrade does it, and nothing is left to do."""
    assert current(empty_database_url) is None
    assert plan(empty_database_url)[0].name == "0001"
    assert upgrade(empty_database_url) == head()
    assert current(empty_database_url) == head()
    assert plan(empty_database_url) == []
    checked(empty_database_url)


def test_everything_stands_in_its_own_schema(empty_database_url: str) -> None:
    """The host's schema gets no table, the version table included."""
    upgrade(empty_database_url)
    assert tables(empty_database_url, "public") == set()
    assert {"intent", "intent_state", migrate.VERSION_TABLE} <= tables(empty_database_url, "ackbox")


def test_a_second_upgrade_changes_nothing(database_url: str) -> None:
    """It leaves even the generated trigger alone, since replacing it would lock the table."""
    trigger = text("SELECT oid FROM pg_trigger WHERE tgname = 'state_follows_edges'")
    database = Database(database_url)
    before = database.run(lambda connection: connection.scalar(trigger))
    upgrade(database_url)
    assert database.run(lambda connection: connection.scalar(trigger)) == before
    database.dispose()


def test_four_starters_at_once(empty_database_url: str) -> None:
    """Processes that migrate at the same moment all succeed and leave one version."""
    call = (
        "import sys; from ackbox.outbox.shell.migrate import upgrade;"
        " sys.stdin.readline(); print(upgrade(sys.argv[1]))"
    )
    command = [sys.executable, "-W", "error", "-c", call, empty_database_url]
    starters = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    answers = [starter.communicate(timeout=60) for starter in starters]
    assert answers == [(f"{head()}\n", "")] * 4
    checked(empty_database_url)


@pytest.mark.parametrize("schema", [ODD, "select", "Ackbox", "ümlaut"])
def test_odd_schema_names(empty_database_url: str, schema: str) -> None:
    """The name is quoted wherever it stands."""
    upgrade(empty_database_url, schema=schema)
    upgrade(empty_database_url, schema=schema)
    checked(empty_database_url, schema)
    assert "intent" in tables(empty_database_url, schema)
    assert tables(empty_database_url, "public") == set()


@pytest.mark.parametrize("schema", ["", "x" * 64, "ü" * 32, "nul\x00"])
def test_impossible_schema_names_are_refused(empty_database_url: str, schema: str) -> None:
    """A name that Postgres would cut off is no name."""
    with pytest.raises(ConfigError, match="schema name"):
        upgrade(empty_database_url, schema=schema)


def test_two_outboxes_in_one_database(empty_database_url: str) -> None:
    """Each stands in its own schema; neither can be given to the other by mistake."""
    upgrade(empty_database_url, schema="one", outbox="default")
    upgrade(empty_database_url, schema="two", outbox="billing")
    checked(empty_database_url, "one")
    checked(empty_database_url, "two")
    with pytest.raises(ConfigError, match=r"belongs to the outbox 'billing'"):
        upgrade(empty_database_url, schema="two", outbox="default")


def test_a_missing_schema_is_told_with_the_command(empty_database_url: str) -> None:
    """The start-up check names what is missing and what to run."""
    with pytest.raises(ConfigError, match="has no schema 'ackbox'") as refused:
        checked(empty_database_url)
    assert refused.value.next_step == "ackbox migrate"


def set_revision(url: str, revision: str, works_from: str | None) -> None:
    """Pretend that another version of ackbox has migrated the schema."""
    database = Database(url)
    values = {"revision": revision, "works_from": works_from}
    for change in (
        f"UPDATE ackbox.{migrate.VERSION_TABLE} SET version_num = :revision",
        "DELETE FROM ackbox.meta WHERE name = 'works_from' AND :revision > ''",
        "INSERT INTO ackbox.meta SELECT 'works_from', CAST(:works_from AS text)"
        " WHERE CAST(:works_from AS text) IS NOT NULL",
    ):
        statement = text(change)
        database.run(lambda c, statement=statement: c.execute(statement, values))  # type: ignore[misc]
    database.dispose()


@pytest.mark.parametrize("works_from", ["9998", None])
def test_a_newer_schema_is_refused(database_url: str, works_from: str | None) -> None:
    """Neither the check nor a migration touches what a newer version has made and contracted."""
    set_revision(database_url, "9999", works_from)
    for refused_call in (checked, upgrade, plan):
        with pytest.raises(ConfigError, match="is newer") as refused:
            refused_call(database_url)
        assert refused.value.code == "newer_schema"
        assert refused.value.next_step.endswith("ackbox migrate")
    assert current(database_url) == "9999"


def test_a_newer_schema_that_only_expanded_is_worked_with(database_url: str) -> None:
    """An older process starts on it, and its migration leaves it alone, the edges included."""
    set_revision(database_url, "9999", head())
    database = Database(database_url)
    newer = text("UPDATE ackbox.meta SET value = 'newer' WHERE name = 'generated_edges'")
    database.run(lambda connection: connection.execute(newer))
    checked(database_url)
    assert plan(database_url) == []
    assert upgrade(database_url) == "9999"
    kept = text("SELECT value FROM ackbox.meta WHERE name = 'generated_edges'")
    assert database.run(lambda connection: connection.scalar(kept)) == "newer"
    database.dispose()


def test_another_table_of_edges_is_refused_and_replaced(database_url: str) -> None:
    """The generated script is applied again where the database holds another one."""
    database = Database(database_url)
    forget = text("UPDATE ackbox.meta SET value = 'other' WHERE name = 'generated_edges'")
    database.run(lambda connection: connection.execute(forget))
    database.run(
        lambda c: c.execute(text("DROP TRIGGER state_follows_edges ON ackbox.intent_state"))
    )
    with pytest.raises(ConfigError, match="another table of edges"):
        checked(database_url)
    assert [step.name for step in plan(database_url)] == [migrate.EDGES_SCRIPT]
    upgrade(database_url)
    checked(database_url)
    trigger = text("SELECT count(*) FROM pg_trigger WHERE tgname = 'state_follows_edges'")
    assert database.run(lambda connection: connection.scalar(trigger)) == 1
    database.dispose()


def test_a_failing_migration_leaves_nothing(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema, tables and version are one transaction."""
    monkeypatch.setattr(migrate, "_apply_edges", lambda connection, schema: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        upgrade(empty_database_url)
    assert tables(empty_database_url, "ackbox") == set()
    assert current(empty_database_url) is None


def test_an_unreachable_database_is_told(empty_database_url: str) -> None:
    """A wrong database name is an environment's fault, told without the password."""
    with pytest.raises(StoreUnavailable, match="nowhere_at_all"):
        upgrade(empty_database_url.rpartition("/")[0] + "/nowhere_at_all")
    with pytest.raises(ConfigError, match="mysql"):
        upgrade("mysql://user:secret-word@host/db")


CHANGES = [
    "UPDATE ackbox.intent SET args = '{\"a\": 2}'",
    "UPDATE ackbox.contract SET max_sends = 99",
    "UPDATE ackbox.event SET reason = 'other'",
]


def plant(connection: Connection) -> None:
    """Insert an intent, a contract and an event."""
    for statement in (
        "INSERT INTO ackbox.intent (namespace, intent_id, generation, tool, tool_version, lane,"
        " args, fingerprint, content, created_at)"
        " VALUES ('n', 'i', 0, 't', 1, 'l', '{}', 'f', 'c', ackbox.clock_now())",
        "INSERT INTO ackbox.contract (digest, tool, version, key_kind, probe, settle_seconds,"
        " ack_seconds, margin_seconds, max_sends, max_resends, max_probes, park_after_seconds,"
        " declared) VALUES ('d', 't', 1, 'none', 'none', 1, 1, 1, 1, 1, 1, 1, '{}')",
        "INSERT INTO ackbox.event (at, seq, name, actor)"
        " VALUES (ackbox.clock_now(), 1, 'put', 'planner')",
    ):
        connection.execute(text(statement))


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_immutable_stays(database: Database, change: str) -> None:
    """An intent, a stamped contract and the audit log cannot be rewritten."""
    database.run(plant)
    with pytest.raises(DBAPIError, match="is immutable") as refused:
        database.run(lambda connection: connection.execute(text(change.replace(":", "\\:"))))
    assert getattr(refused.value.orig, "sqlstate", None) == IMMUTABLE


def month(database: Database, now: datetime) -> list[str]:
    """Make the partitions that a moment asks for."""
    return database.run(lambda c: ensure_event_partitions(c, "ackbox", now))


def test_event_partitions_reach_two_months_ahead(database: Database) -> None:
    """A later month adds the missing ones only, over the end of a year too."""
    now = datetime(2031, 11, 30, 23, 59, tzinfo=UTC)
    assert month(database, now) == ["event_2031_11", "event_2031_12", "event_2032_01"]
    assert month(database, now) == []
    assert month(database, now.replace(month=12, day=1)) == ["event_2032_02"]


def test_events_land_in_their_month(database: Database) -> None:
    """An event is routed by its time; one beyond all months goes to the DEFAULT partition."""
    month(database, datetime(2031, 11, 1, tzinfo=UTC))
    put = text(
        "INSERT INTO ackbox.event (at, name, actor) VALUES (:at, 'x', 'worker')"
        " RETURNING (SELECT relname FROM pg_class WHERE oid = event.tableoid)"
    )
    edges = {
        "event_2031_11": datetime(2031, 11, 30, 23, 59, 59, tzinfo=UTC),
        "event_2031_12": datetime(2031, 12, 1, tzinfo=UTC),
        "event_rest": datetime(2040, 1, 1, tzinfo=UTC),
    }
    with database.engine.connect() as connection:
        for name, at in edges.items():
            assert connection.scalar(put, {"at": at}) == name


def test_a_month_with_stray_events_is_left_alone(database: Database) -> None:
    """Events that lie in the DEFAULT partition already neither move nor stop the other months."""
    stray = text("INSERT INTO ackbox.event (at, name, actor) VALUES (:at, 'x', 'worker')")
    at = datetime(2031, 12, 24, tzinfo=UTC)
    database.run(lambda connection: connection.execute(stray, {"at": at}))
    made = month(database, datetime(2031, 11, 1, tzinfo=UTC))
    assert made == ["event_2031_11", "event_2032_01"]


def test_two_reapers_make_partitions_at_once(database: Database) -> None:
    """The second waits for the first and finds nothing left to do."""
    now = datetime(2031, 5, 1, tzinfo=UTC)
    patient = Database(
        database.engine.url.render_as_string(hide_password=False), lock_timeout_seconds=10
    )
    with database.engine.connect() as first:
        assert len(ensure_event_partitions(first, "ackbox", now)) == 3
        call = (
            "import sys; from datetime import datetime;"
            " from ackbox.outbox.shell.database import Database;"
            " from ackbox.outbox.shell.partitions import ensure_event_partitions as make;"
            " d = Database(sys.argv[1], lock_timeout_seconds=30);"
            " now = datetime.fromisoformat('2031-05-01T00:00:00+00:00');"
            " print(d.run(lambda c: make(c, 'ackbox', now)))"
        )
        url = database.engine.url.render_as_string(hide_password=False)
        second = subprocess.Popen(
            [sys.executable, "-c", call, url], stdout=subprocess.PIPE, text=True
        )
        _wait_for_waiter(patient)
        first.commit()
    assert second.communicate(timeout=30)[0] == "[]\n"
    patient.dispose()


def _wait_for_waiter(database: Database) -> None:
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    wait_until(lambda: database.run(lambda c: c.scalar(waiting)), 20, "the second reaper waits")


def test_quoting_survives_every_character() -> None:
    """A double quote in a name is doubled."""
    assert quoted('a"b') == '"a""b"'
