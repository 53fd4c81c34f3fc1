"""What a command needs to ask a database: the limits in force and a pool.

Apart from `parts`, since a command that only asks should not wait for the import of tools and
Redis. May import what the store may.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..outbox.defaults import Limits, broken_constraints
from ..outbox.errors import ConfigError
from ..outbox.shell.database import Database

if TYPE_CHECKING:
    from .settings import Settings


def checked_limits(settings: Settings) -> Limits:
    """Return the limits in force. Raises ConfigError where two of them contradict each other."""
    limits = replace(Limits(), **settings.limits)
    problems = broken_constraints(limits)
    if problems:
        raise ConfigError("; ".join(problems), next_step="ackbox config")
    return limits


def own_database(settings: Settings, name: str, pool_size: int = 1) -> Database:
    """Return a new pool to the database of the settings. Raises ConfigError where none is named."""
    limits = checked_limits(settings)
    url = settings.database_url
    if url is None:
        raise ConfigError(
            "no database is configured and no running ackbox up was found",
            next_step="set ACKBOX_DATABASE_URL, or start ackbox up in this folder",
        )
    direct = settings.database_direct_url
    return Database(
        url.reveal(),
        direct_url=direct.reveal() if direct else None,
        schema=settings.schema_name,
        pool_size=pool_size,
        application_name=name,
        lock_timeout_seconds=limits.lock_timeout_seconds,
        pooler=settings.database_pooler is not None,
    )
