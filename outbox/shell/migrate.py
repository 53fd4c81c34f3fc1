"""Brings the schema of an outbox to this version, on a URL or in a caller's own transaction.

Decides that a contracting revision waits for every older process, and that an older ackbox leaves
a newer schema alone. Everything happens in one transaction under one advisory lock, so that any
number of starters may call `upgrade` at once. May import SQLAlchemy, and Alembic where it runs:
what only looks waits for no import of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import quoted_name

from ..defaults import DEFAULTS
from ..errors import ConfigError, Refused, StoreUnavailable
from .connection import postgres_url, quoted
from .partitions import ensure_event_partitions
from .revisions import PACKAGE, Chain, Revision, head, shipped
from .schema_state import (
    EDGES_FACT,
    EDGES_SCRIPT,
    VERSION_TABLE,
    WORKS_FROM_FACT,
    OlderProcess,
    check,
    edges_digest,
    edges_script,
    escaped,
    fact,
    is_newer,
    keep_fact,
    older_processes,
    revision_of,
    run_script,
)

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

__all__ = [
    "EDGES_SCRIPT", "VERSION_TABLE", "Step", "check", "current", "head", "plan", "plan_in",
    "upgrade", "upgrade_in",
]  # fmt: skip
_CONNECT_TIMEOUT_SECONDS = 5
# How long a DDL statement waits for a table's lock before it gives way to what holds it: while it
# waits, everybody else queues up behind it.
_LOCK_TIMEOUT_SECONDS = 5
_REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that `upgrade` would do. `works_from` is the oldest revision that fits after it."""

    name: str
    kind: str
    title: str
    works_from: str

    def __str__(self) -> str:
        """Return the line that people read."""
        needs = "" if self.kind != "contract" else f", ends what is older than {self.works_from}"
        return f"{self.name} ({self.kind}{needs}): {self.title}"

    def as_dict(self) -> dict[str, str]:
        """Return the parts under stable keys."""
        return asdict(self)


def upgrade(
    url: str,
    *,
    schema: str = "ackbox",
    outbox: str = "default",
    expand_only: bool = False,
    may_break_older: bool = False,
) -> str:
    """Create or upgrade the schema in a transaction of its own; see `upgrade_in`.

    Wants a direct URL: a lock is held over several statements. Raises StoreUnavailable where the
    database does not answer.
    """
    quoted(schema)
    with _connected(url) as connection:
        return upgrade_in(
            connection, schema=schema, outbox=outbox, expand_only=expand_only,
            may_break_older=may_break_older,
        )  # fmt: skip


def upgrade_in(
    connection: Connection,
    *,
    schema: str = "ackbox",
    outbox: str = "default",
    expand_only: bool = False,
    may_break_older: bool = False,
    chain: Chain | None = None,
) -> str:
    """Create or upgrade the schema in the caller's transaction; return the revision it is at.

    `expand_only` leaves out contracting revisions and what comes after the first of them. Raises
    ConfigError for a schema that is too new or another outbox's, and Refused("older_processes")
    where a contracting revision would end a process that still beats; nothing is changed then.
    """
    chain = chain or shipped()
    with _locked(connection, schema):
        found = revision_of(connection, schema)
        if is_newer(connection, schema, found, chain):
            return str(found)
        steps = _chosen(chain.after(found), expand_only=expand_only)
        if found is not None and not may_break_older:
            _refuse_older_processes(connection, schema, steps)
        _create_schema(connection, schema)
        if steps:
            _run_steps(connection, schema, chain, steps[-1].name)
            keep_fact(connection, schema, WORKS_FROM_FACT, steps[-1].works_from)
        if fact(connection, schema, EDGES_FACT) != edges_digest():
            _apply_edges(connection, schema)
        _name_outbox(connection, schema, outbox)
        now = connection.scalar(text(f"SELECT {escaped(schema)}.clock_now()"))
        ensure_event_partitions(connection, schema, now)
        return str(revision_of(connection, schema))


def current(url: str, schema: str = "ackbox") -> str | None:
    """Return the revision that the database's schema is at; None where there is none."""
    with _connected(url) as connection:
        return revision_of(connection, schema)


def plan(url: str, schema: str = "ackbox") -> list[Step]:
    """Return what `upgrade` would do, in order; empty where there is nothing to do."""
    with _connected(url) as connection:
        return plan_in(connection, schema=schema)


def plan_in(
    connection: Connection, *, schema: str = "ackbox", chain: Chain | None = None
) -> list[Step]:
    """Return what `upgrade_in` would do. Raises ConfigError for a schema that is too new."""
    chain = chain or shipped()
    found = revision_of(connection, schema)
    if is_newer(connection, schema, found, chain):
        return []
    revisions = chain.after(found)
    steps = [Step(one.name, one.kind, one.title, one.works_from) for one in revisions]
    if found is None or fact(connection, schema, EDGES_FACT) != edges_digest():
        title = "the state check and the edge trigger"
        steps.append(Step(EDGES_SCRIPT, _REFRESH, title, chain.revisions[-1].works_from))
    return steps


def blocking(url: str, schema: str = "ackbox") -> list[OlderProcess]:
    """Return the living processes that the pending contracting revisions wait for."""
    with _connected(url) as connection:
        found = revision_of(connection, schema)
        return [] if found is None else _ended_by(connection, schema, shipped().after(found))


def _ended_by(
    connection: Connection, schema: str, steps: tuple[Revision, ...]
) -> list[OlderProcess]:
    """Return the living processes that could not go on after these revisions."""
    newest = max((one.works_from for one in steps if one.kind == "contract"), default=None)
    if newest is None:
        return []
    return older_processes(connection, schema, newest, DEFAULTS.dead_after_seconds)


def _chosen(pending: tuple[Revision, ...], *, expand_only: bool) -> tuple[Revision, ...]:
    if not expand_only:
        return pending
    first = next((n for n, one in enumerate(pending) if one.kind == "contract"), len(pending))
    return pending[:first]


def _refuse_older_processes(
    connection: Connection, schema: str, steps: tuple[Revision, ...]
) -> None:
    """Raise Refused for a process that could not go on; none can begin until the transaction ends.

    A process registers by the same table, and is told there if it comes too late.
    """
    contracting = [one.name for one in steps if one.kind == "contract"]
    if not contracting:
        return
    run_script(connection, schema, "LOCK TABLE {schema}.worker IN SHARE ROW EXCLUSIVE MODE")
    if found := _ended_by(connection, schema, steps):
        raise Refused(
            "older_processes",
            "end them, then: ackbox migrate; what only expands can go first: "
            "ackbox migrate --expand-only",
            what=f"contracting revision {', '.join(contracting)} would end processes that still "
            f"beat: {'; '.join(map(str, found))}",
        )


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    engine = create_engine(
        postgres_url(url),
        poolclass=NullPool,
        hide_parameters=True,
        use_native_hstore=False,
        connect_args={
            "application_name": "ackbox migrate",
            "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
            "prepare_threshold": None,
        },
    )
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except OperationalError as error:
        raise StoreUnavailable(_reason(error), next_step="ackbox doctor") from error
    except DBAPIError as error:
        raise ConfigError(_reason(error), next_step="look at the role's rights") from error


def _reason(error: DBAPIError) -> str:
    known = error.orig.diag.message_primary if isinstance(error.orig, psycopg.Error) else None
    return f"the database said: {known or str(error.orig).splitlines()[0]}"


@contextmanager
def _locked(connection: Connection, schema: str) -> Iterator[None]:
    """Hold the schema's migration lock to the end of the transaction, and bound waits for others.

    The caller's own bound holds again afterwards; a failure ends the transaction anyway.
    """
    connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended(CAST(:name AS text), 0))"),
        {"name": f"ackbox migrate {schema}"},
    )
    before = connection.scalar(text("SELECT current_setting('lock_timeout')"))
    limit = text("SELECT set_config('lock_timeout', CAST(:value AS text), true)")
    connection.execute(limit, {"value": f"{_LOCK_TIMEOUT_SECONDS}s"})
    yield
    connection.execute(limit, {"value": before})


def _run_steps(connection: Connection, schema: str, chain: Chain, target: str) -> None:
    """Let Alembic walk to a revision, without its module-wide proxies: the caller may use them."""
    from alembic.runtime.migration import MigrationContext

    scripts = _scripts(chain)
    options: dict[str, Any] = {
        "fn": lambda found, _: scripts._upgrade_revs(target, found),
        "version_table": VERSION_TABLE,
        "version_table_schema": quoted_name(schema, quote=True),
        "script": scripts,
    }
    context = MigrationContext.configure(connection, opts=options)

    def run_sql(name: str) -> None:
        run_script(connection, schema, (chain.folder / name).read_text(encoding="utf-8"))

    context.run_migrations(run_sql=run_sql)


def _scripts(chain: Chain) -> ScriptDirectory:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    configuration = Config()
    configuration.set_main_option("script_location", f"{PACKAGE}:migrations")
    configuration.set_main_option("path_separator", "newline")
    configuration.set_main_option("version_locations", str(chain.folder).replace("%", "%%"))
    return ScriptDirectory.from_config(configuration)


def _create_schema(connection: Connection, schema: str) -> None:
    """Create the schema; a role that owns one but may create none is not asked for more."""
    question = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
    if connection.scalar(question, {"name": schema}) is None:
        run_script(connection, schema, "CREATE SCHEMA {schema}")


def _apply_edges(connection: Connection, schema: str) -> None:
    """Run the repeatable script where the database holds another one: it locks the state table."""
    run_script(connection, schema, edges_script())
    keep_fact(connection, schema, EDGES_FACT, edges_digest())


def _name_outbox(connection: Connection, schema: str, outbox: str) -> None:
    """Write whose schema this is. Raises ConfigError where it is another outbox's."""
    space = escaped(schema)
    owner = connection.scalar(text(f"SELECT name FROM {space}.outbox"))
    if owner is None:
        connection.execute(
            text(f"INSERT INTO {space}.outbox (name) VALUES (:name)"), {"name": outbox}
        )
    elif owner != outbox:
        raise ConfigError(
            f"schema {schema!r} belongs to the outbox {owner!r}, not to {outbox!r}",
            next_step="give each outbox a schema of its own (ACKBOX_SCHEMA)",
        )
