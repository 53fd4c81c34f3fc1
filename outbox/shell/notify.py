"""Rings through Postgres: one channel per schema, whose payload is a lane and nothing else.

A notification is a hint: losing, doubling or reordering it costs time only. Never sent inside a
planner's transaction. May import SQLAlchemy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sqlalchemy import Connection

from .statements import Statements

_PREFIX = "ackbox_"
_NAME_LIMIT_BYTES = 63


def channel_name(schema: str) -> str:
    """Return the channel of a schema's rings, short enough for LISTEN. Quote it as a name."""
    name = f"{_PREFIX}{schema}"
    if len(name.encode()) <= _NAME_LIMIT_BYTES:
        return name
    return _PREFIX + hashlib.sha256(schema.encode()).hexdigest()[:32]


def notify(connection: Connection, statements: Statements, lanes: Iterable[str]) -> None:
    """Ring lanes when the caller's transaction commits."""
    statement, _ = statements.named("notify")
    values = {"channel": channel_name(statements.schema), "lanes": sorted(set(lanes))}
    connection.execute(statement, values)
