"""What a database says of the schema in it: its revision, its facts, who still works with it.

Decides whether a process can work with a schema: it needs every expanding revision that its code
knows; a newer schema does while it names this process's head, or an older one, as the oldest that
fits. May import SQLAlchemy.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import Connection, text

from ..errors import ConfigError
from .connection import quoted
from .revisions import FIRST, PACKAGE, Chain, shipped

VERSION_TABLE = "schema_version"
EDGES_SCRIPT = "generated_edges.sql"
EDGES_FACT = "generated_edges"
WORKS_FROM_FACT = "works_from"
_NEXT = "ackbox migrate"


@dataclass(frozen=True, slots=True)
class OlderProcess:
    """A living process whose ackbox is older than somebody asked about."""

    role: str
    host: str
    pid: int
    version: str | None
    revision: str

    def __str__(self) -> str:
        known = f"ackbox {self.version} at {self.revision}" if self.version else self.revision
        return f"{self.role} on {self.host} (pid {self.pid}, {known})"

    def as_dict(self) -> dict[str, Any]:
        """Return the parts under stable keys."""
        return asdict(self)


def check(connection: Connection, schema: str = "ackbox", chain: Chain | None = None) -> None:
    """Raise ConfigError unless this version can work with the schema."""
    chain = chain or shipped()
    found = revision_of(connection, schema)
    if found is None:
        raise _unfit(f"the database has no schema {schema!r} of ackbox")
    if is_newer(connection, schema, found, chain):
        return
    if found < chain.needed:
        raise _unfit(f"schema {schema!r} is older ({found}) than this version ({chain.needed})")
    if fact(connection, schema, EDGES_FACT) != edges_digest():
        raise _unfit(f"schema {schema!r} enforces another table of edges than this version's")


def is_newer(connection: Connection, schema: str, found: str | None, chain: Chain) -> bool:
    """Return whether a newer ackbox has made the schema, and this one still fits.

    Raises ConfigError where it does not. A newer schema's edges are the newer version's business.
    """
    if found is None or chain.find(found) is not None:
        return False
    oldest = fact(connection, schema, WORKS_FROM_FACT)
    if found > chain.head and oldest is not None and oldest <= chain.head:
        return True
    needs = f" and works with {oldest} or newer" if oldest else ""
    raise ConfigError(
        f"schema {schema!r} is newer ({found}{needs}) than this version of ackbox ({chain.head})",
        next_step="install the newer ackbox, then: ackbox migrate",
        code="newer_schema",
    )


def older_processes(
    connection: Connection, schema: str, revision: str, dead_after_seconds: float
) -> list[OlderProcess]:
    """Return the living processes whose ackbox knows no revision as new as this one.

    Read through the row's JSON form: the columns may not be there yet.
    """
    space = escaped(schema)
    rows = connection.execute(
        text(
            "SELECT w.role, w.host, w.pid, to_jsonb(w) ->> 'version' AS version,"
            " coalesce(to_jsonb(w) ->> 'revision', CAST(:first AS text)) AS revision"
            f" FROM {space}.worker w WHERE w.stopped_at IS NULL AND w.beat_at >"
            f" {space}.clock_now() - make_interval(secs => CAST(:seconds AS double precision))"
            " AND coalesce(to_jsonb(w) ->> 'revision', CAST(:first AS text)) <"
            " CAST(:revision AS text) ORDER BY w.role, w.host, w.pid"
        ),
        {"first": FIRST, "seconds": dead_after_seconds, "revision": revision},
    )
    return [OlderProcess(**row) for row in rows.mappings()]


def revision_of(connection: Connection, schema: str) -> str | None:
    """Return the revision that a schema is at; None where there is none."""
    table = connection.scalar(
        text("SELECT CAST(to_regclass(CAST(:name AS text)) AS text)"),
        {"name": f"{quoted(schema)}.{VERSION_TABLE}"},
    )
    if table is None:
        return None
    question = text(f"SELECT version_num FROM {escaped(schema)}.{VERSION_TABLE}")
    found: str | None = connection.scalar(question)
    return found


def fact(connection: Connection, schema: str, name: str) -> str | None:
    """Return what a schema says of itself under a name."""
    question = text(f"SELECT value FROM {escaped(schema)}.meta WHERE name = :name")
    found: str | None = connection.scalar(question, {"name": name})
    return found


def keep_fact(connection: Connection, schema: str, name: str, value: str) -> None:
    """Write what a schema says of itself under a name."""
    statement = text(
        f"INSERT INTO {escaped(schema)}.meta (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    connection.execute(statement, {"name": name, "value": value})


def run_script(connection: Connection, schema: str, script: str) -> None:
    """Run a file of several statements; no driver may look for parameters in it."""
    rendered = script.replace("{schema}", quoted(schema))
    driver: Any = connection.connection.dbapi_connection
    if hasattr(driver, "run_async"):  # asyncpg prepares what it is given: one statement at a time
        driver.run_async(lambda session: session.execute(rendered))
        return
    connection.exec_driver_sql(rendered, execution_options={"no_parameters": True})


def escaped(schema: str) -> str:
    """Return the quoted name for use inside `text`, where a colon would begin a parameter."""
    return quoted(schema).replace(":", "\\:")


@cache
def edges_script() -> str:
    """Return the generated script: the state check and the edge trigger."""
    return (resources.files(PACKAGE) / "sql" / EDGES_SCRIPT).read_text(encoding="utf-8")


@cache
def edges_digest() -> str:
    """Return the digest by which a schema says which table of edges it enforces."""
    return hashlib.sha256(edges_script().encode()).hexdigest()


def _unfit(what: str) -> ConfigError:
    return ConfigError(what, next_step=_NEXT)
