"""The order of a diagnosis: what has to work for the next check to make sense comes first."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...outbox.errors import AckboxError, ConfigError
from ...outbox.shell.database import Database
from ...outbox.shell.fault_points import PLAN_VARIABLE
from ...outbox.shell.statements import Statements
from ...tool_adapters.registry import Tools
from ..loading import loading
from ..parts import load_registry
from ..settings import Settings, unknown_variables
from ..stores import checked_limits, own_database
from .connections import check_connections
from .finding import FAIL, WARN, Finding
from .outbox import check_outbox
from .postgres import check_schema, check_server
from .tokens import check_redis

_DATABASE_POOL = 2
_ENDS = ("postgres_reachable", "pooler")
"""Findings after which no statement can be relied on."""


def diagnose(settings: Settings) -> Iterator[Finding]:
    """Yield the findings for these settings, in which a running `ackbox up` is filled in."""
    yield from _environment()
    try:
        limits = checked_limits(settings)
        database = own_database(settings, "ackbox doctor", _DATABASE_POOL)
    except ConfigError as error:
        yield Finding(FAIL, "settings", error.what, error.next_step)
        return
    statements = Statements(settings.schema_name, limits)
    try:
        yield from _services(settings, database, statements)
    finally:
        database.dispose()


def _services(settings: Settings, database: Database, statements: Statements) -> Iterator[Finding]:
    limits = checked_limits(settings)
    server = list(check_server(database, statements, settings, limits))
    yield from server
    fits = False
    if not any(one.level == FAIL and one.check in _ENDS for one in server):
        schema = list(check_schema(database, settings, limits))
        fits = all(one.level != FAIL for one in schema)
        yield from schema
    yield from check_redis(settings)
    registry = Tools()
    try:
        with loading():
            registry = load_registry(settings, limits)
    except AckboxError as error:
        yield Finding(FAIL, "tools_load", error.what, error.next_step)
    if fits:
        yield from check_outbox(database, statements, registry, limits)
        yield from check_connections(database, statements, settings, limits)


def _environment() -> Iterator[Finding]:
    if os.environ.get(PLAN_VARIABLE):
        text = f"{PLAN_VARIABLE} is set: workers started from here kill themselves on purpose"
        yield Finding(FAIL, "fault_plan", text, f"unset {PLAN_VARIABLE}")
    for name, nearest in unknown_variables():
        step = f"write {nearest} instead" if nearest else f"unset {name}, or see: ackbox config"
        yield Finding(WARN, "unknown_variable", f"{name} is no setting and has no effect", step)
