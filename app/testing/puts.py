"""What a transaction has put and not committed yet, as its own session sees it.

Decides where to look: at what is staged on a bus in memory, else at the schema in Postgres.
Composition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from ...outbox.defaults import DEFAULTS
from ...outbox.errors import ConfigError
from ...outbox.intent import Intent
from ...outbox.shell.planner_store import intent_of
from ...outbox.shell.statements import Statements
from ...planner.plan import tool_name
from ...tool_adapters.function import FunctionTool
from .staging import Owner, staged_on
from .tools import decoded

_ASYNC = (AsyncSession, AsyncConnection)


@dataclass(frozen=True, slots=True)
class Put:
    """One intent that a transaction has put."""

    intent: Intent[Any]
    args: Mapping[str, Any] = field(repr=False)
    """As the tool's function will get them, where `puts` was given the tool; else as stored."""


def puts(
    session: Session | Connection | AsyncSession | AsyncConnection,
    tool: object = None,
    *,
    schema: str = "ackbox",
) -> list[Put]:
    """Return what a session's open transaction has put, of every tool or of one, in order.

    What was committed before is not in it, and what others put is not either. An AsyncSession on
    Postgres is asked by `await session.run_sync(puts)`.
    """
    name = None if tool is None else tool_name(tool)
    found = _found(session, schema)
    return [
        Put(intent, decoded(tool, args, version) if isinstance(tool, FunctionTool) else args)
        for intent, args, version in found
        if name in (None, intent.tool)
    ]


def _found(session: Any, schema: str) -> list[tuple[Intent[Any], Mapping[str, Any], int]]:
    owner = _sync(session)
    staged = [] if owner is None else staged_on(owner)
    if staged:
        return [(one.intent(created=True), one.args, one.tool_version) for one in staged]
    if owner is None or not owner.in_transaction() or _dialect(owner) != "postgresql":
        return []
    if isinstance(session, _ASYNC):
        raise ConfigError(
            f"an {type(session).__name__} cannot be asked without awaiting",
            next_step="await session.run_sync(puts)",
        )
    statement, _ = Statements(schema, DEFAULTS).named("uncommitted")
    rows = owner.execute(statement).mappings()
    return [(intent_of(row, created=True), row["args"], row["tool_version"]) for row in rows]


def _sync(session: Any) -> Owner | None:
    if isinstance(session, AsyncSession):
        return session.sync_session
    if isinstance(session, AsyncConnection):
        return session.sync_connection
    if isinstance(session, Session | Connection):
        return session
    raise ConfigError(
        f"puts() looks at a session or connection of SQLAlchemy, not a {type(session).__name__}",
        next_step="give the session that the put was given as on=",
    )


def _dialect(owner: Owner) -> str:
    """Return which kind of database it is on; empty for a session that is on none."""
    try:
        return owner.get_bind().dialect.name if isinstance(owner, Session) else owner.dialect.name
    except UnboundExecutionError:
        return ""
