"""Builds the parts of one outbox from settings: the composition root's lower half.

Nothing is global: each call builds its own. The roles stand in `roles`, commands in `cli`.
"""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from uuid import UUID, uuid4

from ..outbox.defaults import Limits
from ..outbox.errors import ConfigError
from ..outbox.shell.bell import Bell
from ..outbox.shell.claim_store import Incarnation, served_name
from ..outbox.shell.database import Database
from ..outbox.shell.redis_bus import TokenBus
from ..outbox.shell.statements import Statements
from ..tool_adapters.registry import Tools
from .settings import Settings
from .stores import checked_limits, own_database

POOL_SIZE = 6
"""Connections that a process may have open for its work; heartbeats and LISTEN have their own."""


@dataclass(frozen=True, slots=True)
class Parts:
    """One process's view of one outbox."""

    settings: Settings
    limits: Limits
    statements: Statements
    database: Database
    registry: Tools
    bus: TokenBus | None
    worker_id: UUID

    def bell(self) -> Bell:
        """Return a new bell; the caller closes it."""
        return Bell(self.bus)

    def own_database(self, name: str, pool_size: int = 1) -> Database:
        """Return another pool, for a part that must never wait for the others' connections."""
        return own_database(self.settings, name, pool_size)

    def incarnation(self, role: str, lanes: tuple[str, ...] = ()) -> Incarnation:
        """Return this start of this process, as its heartbeat row shows it."""
        tools = tuple(served_name(tool, version) for tool, version in self.registry.served())
        return Incarnation(self.worker_id, role, host_name(), os.getpid(), tools, lanes)


def host_name() -> str:
    """Return this host's name, as heartbeat rows show it."""
    return socket.gethostname() or platform.node()


def build_parts(settings: Settings, *, pool_size: int = POOL_SIZE, name: str = "ackbox") -> Parts:
    """Build the parts; opens no connection. Raises ConfigError for what contradicts itself."""
    limits = checked_limits(settings)
    registry = load_registry(settings, limits)
    redis_url = settings.redis_url
    return Parts(
        settings=settings,
        limits=limits,
        statements=Statements(settings.schema_name, limits),
        database=own_database(settings, name, pool_size),
        registry=registry,
        bus=TokenBus(redis_url.reveal(), settings.outbox) if redis_url else None,
        worker_id=uuid4(),
    )


def load_registry(settings: Settings, limits: Limits) -> Tools:
    """Load the tools that settings and installed packages name. Raises ConfigError."""
    registry = Tools()
    registry.load_entry_points()
    for place in settings.tools:
        registry.load(place)
    problems = registry.problems(limits)
    if problems:
        raise ConfigError("; ".join(problems), next_step="change the tool's declaration")
    return registry
