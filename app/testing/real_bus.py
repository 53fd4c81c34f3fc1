"""A bus on a real PostgreSQL, for the tests that a bus in memory cannot replace.

Decides what runs in the test's own process: a worker, reaper, reconciler and consumer as threads,
with limits that a test can wait for. Nothing needs Redis: the worker looks for work by itself.
Composition.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from sqlalchemy import create_engine, text

from ...outbox.shell.connection import quoted
from ...outbox.shell.database import Database
from ...outbox.shell.migrate import upgrade
from ...planner.plan import Plan
from ...planner.shell.async_planner import AsyncPlanner
from ...planner.shell.planner import Planner
from ...tool_adapters.contract import Adapter
from ...tool_adapters.registry import Tools
from ..parts import Parts, build_parts
from ..roles import Role, start_consumer, start_reaper, start_reconciler
from ..settings import Settings
from ..stores import checked_limits
from ..worker_process import WorkerProcess, worker_lanes
from .tools import checked_tools

SCHEMA = "ackbox"
POLL_SECONDS = 0.05
CLAIM_LIMIT = 100
CLAIM_SECONDS = 1.0
LIMITS: dict[str, float | int] = {
    "claim_lease_seconds": 4.0,
    "prepare_limit_seconds": 3.0,
    "clock_allowance_seconds": 0.2,
    "heartbeat_seconds": 0.25,
    "dead_after_seconds": 1.5,
    "backoff_base_seconds": 0.1,
    "backoff_cap_seconds": 0.5,
}
_ROLES: tuple[Callable[[Parts, threading.Event], Role], ...] = (start_reaper, start_reconciler)


def clean_schema(database_url: str) -> None:
    """Drop the schema `ackbox` with all that is in it, and create it anew."""
    engine = create_engine(database_url)
    try:
        with engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {quoted(SCHEMA)} CASCADE"))
    finally:
        engine.dispose()
    upgrade(database_url, schema=SCHEMA)


class EmbeddedBus:
    """One outbox in a database of the tests, empty at the beginning.

    `planner` and `async_planner` are an application's own. Work is done inside `with
    bus.serve(...)` only, by the roles that run in production, and in real time.
    """

    database_url: str
    """Where the outbox is: for the application's own engine. It holds a password."""
    planner: Planner
    """The planner for threads."""
    async_planner: AsyncPlanner
    """The planner for event loops; await its `close` on the loop that used it."""

    def __init__(self, database_url: str) -> None:
        """Use the schema `ackbox` of a database; it is there already."""
        self.database_url = database_url
        given = {"database_url": database_url, "schema": SCHEMA, "poll_seconds": POLL_SECONDS}
        self._settings = Settings.model_validate({**given, "limits": LIMITS})
        limits = checked_limits(self._settings)
        self.planner = Planner(Database(database_url, schema=SCHEMA), limits=limits)
        self.async_planner = AsyncPlanner(Database(database_url, schema=SCHEMA), limits=limits)

    def __repr__(self) -> str:
        return "EmbeddedBus()"

    def close(self) -> None:
        """End the waits and connections of the planner for threads."""
        self.planner.close()

    @contextmanager
    def serve(self, *tools: Adapter | Tools, plan: Plan | None = None) -> Iterator[None]:
        """Run a worker with these tools, and the roles, until the block ends.

        What is on the wire then is waited for; what was not begun stays where it is.
        """
        limits = checked_limits(self._settings)
        registry, stop = checked_tools(tools_of(*tools), limits), threading.Event()
        with ExitStack() as ending:
            self._start_worker(registry, stop, ending)
            for start in _ROLES:
                _keep(start(self._parts(registry, ending), stop), stop, ending)
            parts = self._parts(registry, ending)
            _keep(start_consumer(parts, stop, plan), stop, ending)
            yield

    def _parts(self, registry: Tools, ending: ExitStack) -> Parts:
        """Return parts of their own for a role: each has its heartbeat and its pool."""
        parts = replace(build_parts(self._settings, name="ackbox test"), registry=registry)
        ending.callback(parts.database.dispose)
        return parts

    def _start_worker(self, registry: Tools, stop: threading.Event, ending: ExitStack) -> None:
        parts = self._parts(registry, ending)
        lanes = worker_lanes(parts)
        worker = WorkerProcess(parts, lanes)
        ending.callback(worker.close)

        def claim() -> None:
            while not stop.wait(POLL_SECONDS):
                for lane in lanes:
                    worker.drainer.drain(parts.settings.outbox, lane, CLAIM_LIMIT, CLAIM_SECONDS)

        thread = threading.Thread(target=claim, name="ackbox-claims", daemon=True)
        thread.start()
        _keep(Role("worker", [thread], lambda: None), stop, ending)


def tools_of(*tools: Adapter | Tools) -> Tools:
    """Return one set of all the tools; the only one as it is."""
    if len(tools) == 1 and isinstance(tools[0], Tools):
        return tools[0]
    registry = Tools()
    for one in tools:
        if isinstance(one, Tools):
            registry.include(one)
        else:
            registry.register(one)
    return registry


def _keep(role: Role, stop: threading.Event, ending: ExitStack) -> None:
    """Have a started role end with the block, also where the next one does not start."""

    def end() -> None:
        stop.set()
        role.close()

    ending.callback(end)
