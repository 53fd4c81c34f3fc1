"""What the database server promises: durability, time limits, sessions, the schema."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import SQLAlchemyError

from ...outbox.defaults import Limits
from ...outbox.errors import AckboxError, ConfigError, StoreUnavailable
from ...outbox.pooler import DECLARE_STEP, UndeclaredPooler
from ...outbox.shell.connection import SessionLimits, pooler_role_sql, quoted
from ...outbox.shell.database import Database
from ...outbox.shell.migrate import check, head, plan_in
from ...outbox.shell.pooler import is_pooled
from ...outbox.shell.schema_state import older_processes, revision_of
from ...outbox.shell.statements import Statements
from ..settings import Settings
from .finding import FAIL, OK, WARN, Finding

OLDEST_VERSION = 140_000


def check_server(
    database: Database, statements: Statements, settings: Settings, limits: Limits
) -> Iterator[Finding]:
    """Yield what the server says of itself.

    `postgres_reachable` alone where it does not answer, `pooler` where one in between refuses us.
    """
    try:
        started = time.monotonic()
        facts = database.run(lambda c: _facts(c, statements), attempts=1)
        seconds = time.monotonic() - started
    except UndeclaredPooler as error:
        yield Finding(FAIL, "pooler", error.what, error.next_step)
        return
    except (StoreUnavailable, SQLAlchemyError) as error:
        yield _unreachable(error, settings)
        return
    off_seconds = abs((datetime.now(UTC) - facts["now"]).total_seconds()) - seconds
    yield from judge(dict(facts), max(off_seconds, 0.0), limits)
    yield from _sessions(database, settings)


def judge(facts: Mapping[str, Any], off_seconds: float, limits: Limits) -> Iterator[Finding]:
    """Yield what follows from the columns of `server_facts`; `off_seconds` is the clocks' gap."""
    yield _version(facts)
    yield _clock(off_seconds, limits)
    yield from _writable(facts)
    yield from _durable(facts)
    yield from _standbys(facts)
    yield from _time_limits(facts, limits)


def check_schema(database: Database, settings: Settings, limits: Limits) -> Iterator[Finding]:
    """Yield whether this version works with the schema, and who does not follow it."""
    name = settings.schema_name
    try:
        database.run(lambda c: check(c, name), attempts=1)
        yield from database.run(lambda c: list(_schema(c, name, limits)), attempts=1)
    except AckboxError as error:
        yield Finding(FAIL, "schema", error.what, error.next_step)
    except SQLAlchemyError as error:
        step = "give the role USAGE on the schema and rights on its tables"
        yield Finding(FAIL, "schema", f"schema {name!r} cannot be read ({_said(error)})", step)


def _schema(connection: Connection, name: str, limits: Limits) -> Iterator[Finding]:
    found = str(revision_of(connection, name))
    newer = f"; this ackbox knows {head()} and works with it" if found > head() else ""
    yield Finding(OK, "schema", f"schema {name} at {found}{newer}")
    older = older_processes(connection, name, head(), limits.dead_after_seconds)
    for process in older:
        text = f"{process} is older than this ackbox ({head()})"
        yield Finding(WARN, "older_process", text, "end it and start it with this version")
    waiting = [step.name for step in plan_in(connection, schema=name) if step.kind == "contract"]
    if waiting:
        text = f"contracting revision {', '.join(waiting)} is still to be run"
        step = "ackbox migrate" + (", when every older process has ended" if older else "")
        yield Finding(WARN, "contract_pending", text, step)


def _facts(connection: Connection, statements: Statements) -> RowMapping:
    statement, _ = statements.named("server_facts")
    return connection.execute(statement).mappings().one()


def _unreachable(error: Exception, settings: Settings) -> Finding:
    what = error.what if isinstance(error, StoreUnavailable) else _said(error)
    step = "start that server"
    source = settings.source_of("database_url")
    if source != "default":
        step += f", or correct database_url ({source})"
    return Finding(FAIL, "postgres_reachable", f"{what}; {settings.database_url}", step)


def _version(facts: Mapping[str, Any]) -> Finding:
    shown = f"PostgreSQL {str(facts['version']).split()[0]}"
    if facts["version_number"] < OLDEST_VERSION:
        return Finding(
            FAIL, "postgres_version", f"{shown} is too old", "use PostgreSQL 14 or newer"
        )
    return Finding(OK, "postgres_version", f"{shown}, role {facts['role']}")


def _clock(off: float, limits: Limits) -> Finding:
    if off > limits.clock_allowance_seconds:
        text = f"the database's clock is {off:.0f} s from this host's: times in logs do not agree"
        return Finding(WARN, "clock", text, "run a time service (chrony) on both hosts")
    return Finding(OK, "clock", f"clock {off * 1000:.0f} ms from here")


def _writable(facts: Mapping[str, Any]) -> Iterator[Finding]:
    if facts["in_recovery"]:
        text = "the server is a standby: nothing can be written"
        yield Finding(FAIL, "writable", text, "point database_url at the primary")
    elif facts["read_only"] == "on":
        text = f"transactions of role {facts['role']} are read-only"
        step = f"ALTER ROLE {_role(facts)} SET default_transaction_read_only = off"
        yield Finding(FAIL, "writable", text, step)


def _durable(facts: Mapping[str, Any]) -> Iterator[Finding]:
    if facts["synchronous_commit"] == "off":
        text = (
            f"synchronous_commit=off for role {facts['role']}: "
            "an acknowledged intent can vanish in a crash"
        )
        step = f"ALTER ROLE {_role(facts)} SET synchronous_commit = on"
        yield Finding(FAIL, "synchronous_commit", text, step)
    losses = {"fsync": "a crash can lose or damage everything",
              "full_page_writes": "a crash can damage pages"}  # fmt: skip
    off = {name: loss for name, loss in losses.items() if facts[name] == "off"}
    for name, loss in off.items():
        step = f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()"
        yield Finding(FAIL, name, f"{name}=off: {loss}", step)
    if not off and facts["synchronous_commit"] != "off":
        text = f"commits are durable (synchronous_commit={facts['synchronous_commit']}, fsync on)"
        yield Finding(OK, "durable", text)


def _standbys(facts: Mapping[str, Any]) -> Iterator[Finding]:
    names, waits = facts["synchronous_standby_names"], facts["synchronous_commit"]
    if facts["standbys"] == 0:
        if names and waits not in ("off", "local"):
            text = f"no standby is connected and commits wait for one ({names}): nothing moves"
            step = "start it, or ALTER SYSTEM RESET synchronous_standby_names; "
            yield Finding(FAIL, "standbys", text, f"{step}SELECT pg_reload_conf()")
        return
    if names and waits != "local":
        yield Finding(OK, "standbys", f"{facts['standbys']} standbys, synchronous: {names}")
        return
    text = f"{facts['standbys']} standbys, none waited for: a fail-over can lose acknowledged work"
    step = "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf()"
    if names:
        step = f"ALTER ROLE {_role(facts)} SET synchronous_commit = on"
    yield Finding(WARN, "standbys", text, step)


def _time_limits(facts: Mapping[str, Any], limits: Limits) -> Iterator[Finding]:
    if facts["statement_timeout"] == "0" or facts["idle_in_transaction"] == "0":
        text = "the time limits of our sessions do not reach the server (a pooler in between?)"
        session = SessionLimits(lock_timeout_seconds=limits.lock_timeout_seconds)
        step = " ".join(pooler_role_sql(str(facts["role"]), session).split("\n"))
        yield Finding(FAIL, "session_limits", text, step)
    idle = {"idle_session_timeout": "idle_session", "transaction_timeout": "transaction_limit"}
    for name, column in idle.items():
        if facts[column] != "0":
            text = f"{name}={facts[column]} ends sessions that ackbox keeps open on purpose"
            step = f"ALTER ROLE {_role(facts)} SET {name} = 0"
            yield Finding(WARN, name, text, step)


def _sessions(database: Database, settings: Settings) -> Iterator[Finding]:
    if database.pooler:
        text = "a transaction-mode pooler is declared: no session is taken for ours alone"
        yield Finding(OK, "pooler", text)
    elif is_pooled(database.engine):
        text = "a transaction-mode pooler stands in between and is not declared"
        yield Finding(FAIL, "pooler", text, DECLARE_STEP)
    try:
        database.listen_connection().close()
    except ConfigError as error:
        yield Finding(FAIL, "direct_url", error.what, error.next_step)
    except StoreUnavailable as error:
        step = f"correct database_direct_url ({settings.source_of('database_direct_url')})"
        yield Finding(FAIL, "direct_url", f"no session for LISTEN: {error.what}", step)


def _role(facts: Mapping[str, Any]) -> str:
    name = str(facts["role"])
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else quoted(name)


def _said(error: Exception) -> str:
    diagnosis = getattr(getattr(error, "orig", None), "diag", None)
    return getattr(diagnosis, "message_primary", None) or type(error).__name__
