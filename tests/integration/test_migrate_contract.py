"""Expand and contract: what a newer release may do while processes of an older one still run."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import ConfigError, Refused
from ackbox.outbox.shell import schema_state
from ackbox.outbox.shell.claim_store import ClaimStore, Incarnation
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.migrate import plan_in, upgrade_in
from ackbox.outbox.shell.revisions import Chain, head
from ackbox.outbox.shell.statements import Statements

from ..support.revisions import later, longer_chain


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give a database at the shipped head."""
    database = Database(database_url)
    yield database
    database.dispose()


@pytest.fixture
def claims(database: Database) -> ClaimStore:
    """Give the store by which processes beat."""
    return ClaimStore(database, Statements("ackbox", DEFAULTS))


def started(claims: ClaimStore, role: str = "worker", revision: str | None = None) -> Incarnation:
    """Let a process of this version, or of another head, beat."""
    process = Incarnation(uuid.uuid4(), role, "web-3", 4711, revision=revision or head())
    claims.register(process)
    return process


def migrated(
    database: Database, chain: Chain, *, expand_only: bool = False, may_break_older: bool = False
) -> str:
    """Migrate as the release with this chain would."""
    return database.run(
        lambda c: upgrade_in(
            c, chain=chain, expand_only=expand_only, may_break_older=may_break_older
        )
    )


def checked(database: Database, chain: Chain | None = None) -> None:
    """Check at start as a process of that release would, or of this version."""
    database.run(lambda c: schema_state.check(c, "ackbox", chain))


def test_an_expanding_revision_runs_beside_older_processes(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """The older process beats on, starts anew, and leaves the newer schema alone."""
    process = started(claims)
    chain = longer_chain(tmp_path, "expand")
    with pytest.raises(ConfigError, match="is older"):
        checked(database, chain)
    assert migrated(database, chain) == later(1)
    checked(database, chain)
    checked(database)
    assert claims.beat(process.worker_id)
    started(claims)
    assert migrated(database, longer_chain(tmp_path)) == later(1)


def test_a_contracting_revision_is_refused_while_an_older_process_beats(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """Each process is named, nothing is changed; it goes when they have ended."""
    chain = longer_chain(tmp_path, "expand", "contract")
    older = [started(claims), started(claims, "relay")]
    newer = started(claims, "reaper", later(1))
    with pytest.raises(Refused) as refused:
        migrated(database, chain)
    assert refused.value.code == "older_processes"
    for part in ("worker on web-3 (pid 4711, ackbox ", "relay on web-3", f" at {head()})"):
        assert part in refused.value.what
    assert "reaper" not in refused.value.what
    assert "--expand-only" in refused.value.next_step
    checked(database)
    for process in older:
        claims.stop(process.worker_id)
    assert migrated(database, chain) == later(2)
    assert claims.beat(newer.worker_id)


def test_what_expands_goes_first(database: Database, claims: ClaimStore, tmp_path: Path) -> None:
    """With it the new release runs beside the old one; the contracting one waits."""
    process = started(claims)
    chain = longer_chain(tmp_path, "expand", "contract")
    assert migrated(database, chain, expand_only=True) == later(1)
    checked(database, chain)
    checked(database)
    (rest,) = database.run(lambda c: plan_in(c, chain=chain))
    assert (rest.name, rest.kind, rest.works_from) == (later(2), "contract", later(1))
    with pytest.raises(Refused):
        migrated(database, chain)
    assert claims.beat(process.worker_id)


def test_a_process_that_died_long_ago_holds_nothing_up(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """Its row is older than any living process's."""
    started(claims)
    age = text("UPDATE ackbox.worker SET beat_at = beat_at - interval '10 minutes'")
    database.run(lambda connection: connection.execute(age))
    assert migrated(database, longer_chain(tmp_path, "expand", "contract")) == later(2)


def test_an_older_process_meets_a_contracted_schema(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """It is told at its start, and where it registers or beats after the schema has moved on."""
    process = started(claims)
    migrated(database, longer_chain(tmp_path, "expand", "contract"), may_break_older=True)
    with pytest.raises(ConfigError, match=f"works with {later(1)} or newer") as told:
        checked(database)
    assert told.value.code == "newer_schema"
    assert not claims.beat(process.worker_id)
    restore = text("ALTER TABLE ackbox.worker ADD COLUMN lanes text[] DEFAULT '{}'")
    database.run(lambda connection: connection.execute(restore))
    with pytest.raises(ConfigError, match="gone beyond this process"):
        claims.register(process)


def test_rows_of_before_the_column_count_as_the_first(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """Processes that say nothing are the oldest, also on a schema without the columns."""
    started(claims)
    drop = text("ALTER TABLE ackbox.worker DROP COLUMN revision, DROP COLUMN version")
    database.run(lambda connection: connection.execute(drop))
    found = database.run(lambda c: schema_state.older_processes(c, "ackbox", later(1), 30.0))
    assert [(one.revision, one.version) for one in found] == [("0001", None)]


def test_no_process_slips_in_while_a_contracting_revision_runs(
    database: Database, claims: ClaimStore, tmp_path: Path
) -> None:
    """A heartbeat row cannot be written until the migration has ended, and then is refused."""
    chain = longer_chain(tmp_path, "expand", "contract")
    with database.engine.connect() as connection, connection.begin():
        upgrade_in(connection, chain=chain)
        locks = text(
            "SELECT mode FROM pg_locks WHERE relation = 'ackbox.worker'::regclass AND granted"
            " AND pid = pg_backend_pid()"
        )
        assert "ShareRowExclusiveLock" in set(connection.scalars(locks))
