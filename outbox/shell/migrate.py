"""The schema of an outbox: bring it to this version, ask what it is, refuse what does not fit.

Alembic runs out of the installed package, in one transaction under one advisory lock, so that any
number of starters may call `upgrade` at once. May import SQLAlchemy, and Alembic where it runs:
every command asks `check` first, and waits for no import that only `upgrade` needs.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import psycopg
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql import quoted_name

from ..errors import ConfigError, StoreUnavailable
from .connection import postgres_url, quoted
from .partitions import ensure_event_partitions
from .revisions import PACKAGE, revisions

if TYPE_CHECKING:
    from alembic.config import Config

VERSION_TABLE = "schema_version"
EDGES_SCRIPT = "generated_edges.sql"
_EDGES_FACT = "generated_edges"
_NEXT = "ackbox migrate"
_CONNECT_TIMEOUT_SECONDS = 5
# How long a DDL statement waits for a table's lock before it gives way to what holds it: while it
# waits, everybody else queues up behind it.
_LOCK_TIMEOUT_SECONDS = 5
# Alembic keeps the running environment in a module: one at a time in a process.
_alembic = threading.Lock()


def upgrade(url: str, *, schema: str = "ackbox", outbox: str = "default") -> str:
    """Create or upgrade the schema; return the revision it is at now.

    Everything happens in one transaction or not at all. Wants a direct URL: a lock is held over
    several statements. Raises ConfigError for a newer schema or another outbox's, and
    StoreUnavailable where the database does not answer.
    """
    with _locked(url, schema) as connection:
        found = _revision(connection, schema)
        _refuse_newer(found, schema)
        _create_schema(connection, schema)
        if found != head():
            _run_alembic(connection, schema)
        _apply_edges(connection, schema)
        _name_outbox(connection, schema, outbox)
        now = connection.scalar(text(f"SELECT {_escaped(schema)}.clock_now()"))
        ensure_event_partitions(connection, schema, now)
    return head()


def current(url: str, schema: str = "ackbox") -> str | None:
    """Return the revision that the database's schema is at; None where there is none."""
    with _connected(url) as connection:
        return _revision(connection, schema)


@cache
def head() -> str:
    """Return the revision that this version of ackbox works with."""
    return revisions()[-1][0]


def plan(url: str, schema: str = "ackbox") -> list[str]:
    """Return what `upgrade` would run, in order; empty where there is nothing to do."""
    with _connected(url) as connection:
        found = _revision(connection, schema)
        _refuse_newer(found, schema)
        pending = [line for name, line in revisions() if found is None or name > found]
        if found is None or _edges_fact(connection, schema) != _edges_digest():
            pending.append(f"{EDGES_SCRIPT}: the state check and the edge trigger")
        return pending


def check(connection: Connection, schema: str = "ackbox") -> None:
    """Raise ConfigError unless the schema is the one that this version works with."""
    found = _revision(connection, schema)
    if found is None:
        raise _unfit(f"the database has no schema {schema!r} of ackbox")
    _refuse_newer(found, schema)
    if found != head():
        raise _unfit(f"schema {schema!r} is older ({found}) than this version ({head()})")
    if _edges_fact(connection, schema) != _edges_digest():
        raise _unfit(f"schema {schema!r} enforces another table of edges than this version's")


def _refuse_newer(found: str | None, schema: str) -> None:
    if found is not None and found not in {name for name, _ in revisions()}:
        raise ConfigError(
            f"schema {schema!r} is newer ({found}) than this version of ackbox ({head()})",
            next_step="install the newer ackbox, then: ackbox migrate",
        )


def _unfit(what: str) -> ConfigError:
    return ConfigError(what, next_step=_NEXT)


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
def _locked(url: str, schema: str) -> Iterator[Connection]:
    """Hold the schema's migration lock for one transaction; a name is judged before that."""
    quoted(schema)
    with _connected(url) as connection:
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
            {"name": f"ackbox migrate {schema}"},
        )
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT_SECONDS}s'"))
        yield connection


def _configuration() -> Config:
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", f"{PACKAGE}:migrations")
    configuration.set_main_option("path_separator", "os")
    return configuration


def _run_alembic(connection: Connection, schema: str) -> None:
    from alembic import command

    configuration = _configuration()
    configuration.attributes.update(
        connection=connection,
        schema=quoted_name(schema, quote=True),
        version_table=VERSION_TABLE,
        run_sql=lambda name: _run_script(connection, schema, _read("migrations/versions", name)),
    )
    with _alembic:
        command.upgrade(configuration, "head")


def _read(folder: str, name: str) -> str:
    return (resources.files(PACKAGE) / folder / name).read_text(encoding="utf-8")


def _run_script(connection: Connection, schema: str, script: str) -> None:
    """Run a file of several statements; the driver must not look for parameters in it."""
    connection.exec_driver_sql(
        script.replace("{schema}", quoted(schema)), execution_options={"no_parameters": True}
    )


def _escaped(schema: str) -> str:
    """Return the quoted name for use inside `text`, where a colon would begin a parameter."""
    return quoted(schema).replace(":", "\\:")


def _revision(connection: Connection, schema: str) -> str | None:
    if _table(connection, schema, VERSION_TABLE) is None:
        return None
    question = text(f"SELECT version_num FROM {_escaped(schema)}.{VERSION_TABLE}")
    found: str | None = connection.scalar(question)
    return found


def _table(connection: Connection, schema: str, name: str) -> str | None:
    found: str | None = connection.scalar(
        text("SELECT CAST(to_regclass(:name) AS text)"), {"name": f"{quoted(schema)}.{name}"}
    )
    return found


def _create_schema(connection: Connection, schema: str) -> None:
    """Create the schema; a role that owns one but may create none is not asked for more."""
    question = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
    if connection.scalar(question, {"name": schema}) is None:
        _run_script(connection, schema, "CREATE SCHEMA {schema}")


@cache
def _edges_digest() -> str:
    return hashlib.sha256(_read("sql", EDGES_SCRIPT).encode()).hexdigest()


def _edges_fact(connection: Connection, schema: str) -> str | None:
    found: str | None = connection.scalar(
        text(f"SELECT value FROM {_escaped(schema)}.meta WHERE name = :name"), {"name": _EDGES_FACT}
    )
    return found


def _apply_edges(connection: Connection, schema: str) -> None:
    """Run the repeatable script where the database holds another one: it locks the state table."""
    if _edges_fact(connection, schema) == _edges_digest():
        return
    _run_script(connection, schema, _read("sql", EDGES_SCRIPT))
    connection.execute(
        text(
            f"INSERT INTO {_escaped(schema)}.meta (name, value) VALUES (:name, :value)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        ),
        {"name": _EDGES_FACT, "value": _edges_digest()},
    )


def _name_outbox(connection: Connection, schema: str, outbox: str) -> None:
    """Write whose schema this is. Raises ConfigError where it is another outbox's."""
    space = _escaped(schema)
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
