"""Whether the server lets every process of this outbox open the connections that it may need.

Pools open a connection when all theirs are in use, so that a limit that is too low shows under
load only: then a heartbeat is refused and a process looks dead.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...outbox.defaults import Limits
from ...outbox.shell.database import Database
from ...outbox.shell.statements import Statements
from ..parts import POOL_SIZE
from ..roles import CONSUMER_POOL_SIZE
from ..settings import Settings
from .finding import FAIL, OK, Finding

_BEAT, _LISTEN = 1, 1
_OF_PROCESS = {
    "worker": POOL_SIZE + _BEAT,
    "relay": POOL_SIZE + _BEAT + _LISTEN,
    "reaper": POOL_SIZE + _BEAT,
    "reconciler": POOL_SIZE + _BEAT,
    "consumer": POOL_SIZE + CONSUMER_POOL_SIZE + _BEAT,
}
"""The most connections that one process of a role opens."""


def check_connections(
    database: Database, statements: Statements, settings: Settings, limits: Limits
) -> Iterator[Finding]:
    """Yield whether all pools together fit: of what lives, and of the settings' workers."""
    facts, _ = statements.named("server_facts")
    beats, _ = statements.named("role_beats")
    allowed = int(database.run(lambda c: c.execute(facts).mappings().one())["connections_allowed"])
    values = {"host": None, "dead_after_seconds": limits.dead_after_seconds}
    rows = database.run(lambda c: list(c.execute(beats, values).mappings()))
    living = {row["role"]: int(row["living"]) for row in rows}
    living["worker"] = max(living.get("worker", 0), settings.worker_processes)
    needed = sum(size * max(living.get(role, 0), 1) for role, size in _OF_PROCESS.items())
    text = f"all processes together may open {needed} connections, the server allows {allowed}"
    if needed <= allowed:
        yield Finding(OK, "connections", text)
        return
    step = "raise max_connections (or the role's or database's limit), or lower worker_processes"
    yield Finding(FAIL, "connections", text, step)
