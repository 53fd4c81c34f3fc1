"""How a connection to Postgres is made: URL, session limits, schema names, the engine.

May import SQLAlchemy and psycopg. Nothing here runs a statement of the protocol, and no message
repeats any part of a URL but its scheme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import QueuePool

from ..errors import ConfigError

DRIVER = "postgresql+psycopg"
_SCHEMES = {"postgres", "postgresql", DRIVER}
_NAME_LIMIT_BYTES = 63
# Server-side prepared statements pay from the second execution on (measured: 0.72 without them).
_PREPARE_AFTER = 2
_CONNECT_TIMEOUT_SECONDS = 5

READ_ONLY = "25006"
_STALE_PLAN = ("0A000", "RevalidateCachedQuery")


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """What a session may take before Postgres ends its statement or its transaction."""

    statement_timeout_seconds: float = 10.0
    idle_in_transaction_seconds: float = 10.0
    lock_timeout_seconds: float = 0.5

    def settings(self) -> dict[str, int]:
        """Return the server settings in milliseconds; 0 would mean no limit, hence at least 1."""
        return {
            "statement_timeout": max(1, round(self.statement_timeout_seconds * 1000)),
            "idle_in_transaction_session_timeout": max(
                1, round(self.idle_in_transaction_seconds * 1000)
            ),
            "lock_timeout": max(1, round(self.lock_timeout_seconds * 1000)),
        }


def postgres_url(url: str | URL) -> URL:
    """Return the URL with ackbox's driver. Raises ConfigError for anything but PostgreSQL."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise _bad_url("it is not a URL") from None
    if parsed.drivername not in _SCHEMES:
        raise _bad_url(f"its scheme is {parsed.drivername!r}")
    return parsed.set(drivername=DRIVER)


def _bad_url(problem: str) -> ConfigError:
    return ConfigError(
        f"the database URL cannot be used: {problem}",
        next_step="set ACKBOX_DATABASE_URL to postgresql://user@host:5432/database",
    )


def quoted(name: str) -> str:
    """Return an identifier in double quotes, safe inside any statement.

    Raises ConfigError for a name that Postgres would cut off or cannot hold.
    """
    if not name or "\x00" in name or len(name.encode()) > _NAME_LIMIT_BYTES:
        raise ConfigError(
            f"a schema name has 1 to {_NAME_LIMIT_BYTES} bytes and no U+0000",
            next_step="set ACKBOX_SCHEMA to a shorter name",
        )
    return '"' + name.replace('"', '""') + '"'


def connect_arguments(url: URL, limits: SessionLimits, *, pooler: bool, name: str) -> Any:
    """Return the driver's keyword arguments that go with the URL.

    Behind a transaction-mode pooler a session belongs to nobody: no start-up options, no prepared
    statements. `pooler_role_sql` gives the limits to the role instead.
    """
    arguments: dict[str, Any] = {
        "application_name": name,
        "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "prepare_threshold": None if pooler else _PREPARE_AFTER,
    }
    if not pooler:
        own = [f"-c {key}={value}" for key, value in limits.settings().items()]
        given = url.query.get("options", ())
        arguments["options"] = " ".join([*own, *([given] if isinstance(given, str) else given)])
    return arguments


def pooler_role_sql(role: str, limits: SessionLimits | None = None) -> str:
    """Return the statements that give a role the limits which direct URLs set at connect."""
    settings = (limits or SessionLimits()).settings()
    return "\n".join(
        f"ALTER ROLE {quoted(role)} SET {key} = {value};" for key, value in settings.items()
    )


def engine_options(
    arguments: dict[str, Any], pool_size: int, pool_wait_seconds: float
) -> dict[str, Any]:
    """Return what every engine is made with, but for the class of its pool."""
    return {
        "isolation_level": "READ COMMITTED",
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": pool_wait_seconds,
        # The warmest connection first: it has the prepared statements.
        "pool_use_lifo": True,
        "connect_args": arguments,
        "hide_parameters": True,
        "use_native_hstore": False,
    }


def make_engine(
    url: URL, arguments: dict[str, Any], pool_size: int, pool_wait_seconds: float
) -> Engine:
    """Return an engine whose pool never exceeds `pool_size` and drops what cannot write."""
    options = engine_options(arguments, pool_size, pool_wait_seconds)
    return watched(create_engine(url, poolclass=QueuePool, **options))


def watched(engine: Engine) -> Engine:
    """Have an engine drop connections that cannot be used any more; returns the engine."""
    event.listen(engine, "handle_error", _drop_useless_connections)
    return engine


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error of any driver; None where the server said nothing."""
    said = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
    return state if isinstance(state, str) else None


def _drop_useless_connections(context: ExceptionContext) -> None:
    """Treat a demoted server, and a plan that a migration outdated, like a lost connection.

    SQLAlchemy then discards every connection of the pool that is as old as this one.
    """
    error = context.original_exception
    if isinstance(error, psycopg.Error):
        origin = (error.sqlstate, error.diag.source_function)
        if error.sqlstate == READ_ONLY or origin == _STALE_PLAN:
            context.is_disconnect = True
