"""Where a planner finds its database and, if it has one, its Redis.

Reads its settings from the environment because a library has no configuration file; starts no
server. Shell.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from ...outbox.errors import ConfigError
from ...outbox.pooler import POOLER_VARIABLE, TRANSACTION
from .bell import TokenRinger

FindRunning = Callable[[], str | None]
RUNNING = "ackbox.app.environment:running_database_url"
URL_VARIABLE = "ACKBOX_DATABASE_URL"
REDIS_VARIABLE = "ACKBOX_REDIS_URL"
SCHEMA_VARIABLE = "ACKBOX_SCHEMA"
OUTBOX_VARIABLE = "ACKBOX_OUTBOX"
NO_DATABASE = "no_database"
"""The code of the error where nothing names a database and none runs nearby."""


def database_url(url: str | None, find_running: FindRunning | None) -> str:
    """Return the URL given, or the environment's, or that of a bus which runs nearby.

    Raises ConfigError where there is none.
    """
    found = url or os.environ.get(URL_VARIABLE) or (find_running or _running_nearby)()
    if not found:
        raise ConfigError(
            "no database is named for the planner",
            next_step=f"set {URL_VARIABLE}=postgresql://user@host/database, or run ackbox up",
            code=NO_DATABASE,
        )
    return found


def _running_nearby() -> str | None:
    """Return the database of an `ackbox up` of this folder's data directory; starts nothing.

    Named by a string, since the application stands above the library.
    """
    module_name, _, function_name = RUNNING.partition(":")
    found: str | None = getattr(importlib.import_module(module_name), function_name)()
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """Where a planner's outbox stands, and how it rings."""

    url: str = field(repr=False)
    schema: str
    outbox: str
    bus: TokenRinger | None
    pooler: bool


def place_of(
    url: str | None,
    redis_url: str | None,
    schema: str | None,
    outbox: str | None,
    pooler: bool | None,
    find_running: FindRunning | None,
) -> Place:
    """Return what was given, else what the environment names, else the defaults.

    Raises ConfigError where no database is named, or where a URL or a pooler cannot be used.
    """
    name = outbox or os.environ.get(OUTBOX_VARIABLE) or "default"
    return Place(
        database_url(url, find_running),
        schema or os.environ.get(SCHEMA_VARIABLE) or "ackbox",
        name,
        token_bus(redis_url, name),
        pooler if pooler is not None else _declared_pooler(),
    )


def _declared_pooler() -> bool:
    """Return whether the environment declares a transaction-mode pooler."""
    declared = os.environ.get(POOLER_VARIABLE, "").lower()
    if declared in ("", TRANSACTION):
        return declared == TRANSACTION
    raise ConfigError(
        f"the environment declares a pooler of another mode than {TRANSACTION}",
        next_step=f"set {POOLER_VARIABLE}={TRANSACTION}, or unset it",
    )


def token_bus(url: str | None, outbox: str) -> TokenRinger | None:
    """Return the bus of a Redis URL given or in the environment, else None.

    A planner without one never imports a Redis client. Raises ConfigError for a bad URL.
    """
    url = url or os.environ.get(REDIS_VARIABLE)
    if not url:
        return None
    from ...outbox.shell.redis_bus import TokenBus

    try:
        return TokenBus(url, outbox)
    except ValueError:
        raise ConfigError(
            "the Redis URL or the outbox's name cannot be used",
            next_step=f"set {REDIS_VARIABLE}=redis://host:6379/0, or leave it out",
        ) from None
