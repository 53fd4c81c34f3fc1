"""One real outbox for one trace: schema, roles as threads, a fake provider, worker processes.

Everything is the trace's own and is gone afterwards. Workers are what pools start: real RQ
processes, which a fault point or a signal may end.
"""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from redis import Redis
from rq import Queue
from sqlalchemy import Connection, text

from ...outbox.shell.database import Database
from ...outbox.shell.fault_points import PLAN_VARIABLE
from ...outbox.shell.migrate import upgrade
from ...outbox.shell.people_store import PeopleStore
from ...outbox.shell.redis_bus import TokenBus, queue_name, results_queue_name
from ...planner.shell.planner import Planner
from ...sim.shell.stack_map import StackPlan
from ...sim.shell.stack_tools import TOOLS_PLACE, stack_tools, write_tools
from ...sim.tool_specs import ToolSpec
from ...tool_adapters.registry import Tools
from ...tool_adapters.shell.fake_server import FakeServer
from ..parts import Parts, build_parts
from ..roles import background_roles
from ..rq_process import COMMAND, child_environ
from ..settings import Settings
from ..stores import own_database
from ..urls import revealed

LIMITS: dict[str, float | int] = {
    "claim_lease_seconds": 4.0,
    "prepare_limit_seconds": 3.0,
    "clock_allowance_seconds": 0.2,
    "heartbeat_seconds": 0.25,
    "dead_after_seconds": 1.5,
    "backoff_base_seconds": 0.1,
    "backoff_cap_seconds": 0.5,
}
POLL_SECONDS = 0.2
LOOK_SECONDS = 0.05
DEADLINE_SECONDS = 30.0
T = TypeVar("T")


class Late(Exception):
    """Something did not come about in time; the text says what."""


def await_that(what: str, look: Callable[[], T], seconds: float = DEADLINE_SECONDS) -> T:
    """Look until there is something; returns it. Raises Late."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise Late(f"{what}: not within {seconds:g} seconds")
        pause.wait(LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class StackParts(Parts):
    """Parts that remember the pools they have handed out: roles end here, the process does not."""

    opened: list[Database] = field(default_factory=list)

    def own_database(self, name: str, pool_size: int = 1) -> Database:
        """Return another pool, which `dispose` closes."""
        self.opened.append(own_database(self.settings, name, pool_size))
        return self.opened[-1]

    def dispose(self) -> None:
        """Close every pool."""
        for database in (self.database, *self.opened):
            database.dispose()


class Worker:
    """One real worker process."""

    def __init__(self, environ: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                COMMAND, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.pid = self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.code is None:
            self._process.send_signal(number)

    def end(self, seconds: float) -> None:
        """Let it go on and finish what it is at; hard if it does not."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class StackSide:
    """A running outbox as a replay acts on it and looks at it."""

    def __init__(
        self, parts: Parts, planner: Planner, provider_url: str, plan: StackPlan, folder: Path,
        environ: Mapping[str, str],
    ) -> None:  # fmt: skip
        self.parts = parts
        self.planner = planner
        self.people = PeopleStore(parts.database, parts.statements, parts.limits)
        self.plan = plan
        self.workers: dict[str, Worker] = {}
        self._url = provider_url
        self._folder = folder
        self._environ = environ
        self._every: list[Worker] = []

    # -- processes -------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a worker, and wait until it has introduced itself."""
        worker = Worker(self._environ, self._folder / "workers.log")
        self.workers[name] = worker
        self._every.append(worker)
        asked = "SELECT 1 FROM {s}.worker WHERE role = 'worker' AND pid = :pid"
        await_that(f"{name} introduces itself", lambda: self.sql(asked, pid=worker.pid))

    def end_workers(self) -> None:
        """End every worker in order, so that whatever one still wanted to do is done."""
        for worker in self._every:
            worker.end(self.parts.limits.term_grace_seconds)

    def fired(self, point: str, step: str) -> bool:
        """Return whether a planned signal was sent."""
        return (self._folder / f"fired-{point}-{step}").exists()

    # -- the provider ----------------------------------------------------------------------------

    def ask(self, path: str, document: Any = None) -> Any:
        """Ask a control path of the provider; with a document, change something."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self._url}{path}", data=data)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    # -- rows ------------------------------------------------------------------------------------

    def sql(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Run a look of the replay's own; `{s}` is the outbox's schema."""
        clause = text(statement.replace("{s}", self.parts.database.quoted_schema))

        def work(connection: Connection) -> list[dict[str, Any]]:
            found = connection.execute(clause, values)
            return [dict(row) for row in found.mappings()]

        return self.parts.database.run(work)

    def live_row(self, step: str) -> dict[str, Any]:
        """Return the live state row of a step."""
        (row,) = self.sql(
            "SELECT s.* FROM {s}.intent i JOIN {s}.intent_state s USING (seq)"
            " WHERE i.intent_id = :step AND s.live", step=step,
        )  # fmt: skip
        return row


@contextmanager
def stack_side(
    settings: Settings, plan: StackPlan, specs: Mapping[str, ToolSpec]
) -> Iterator[StackSide]:
    """Bring a real outbox up for one trace, and down again however the block ends."""
    own = _own_settings(settings, plan)
    with ExitStack() as stack:
        upgrade(revealed(own.direct_url), schema=own.schema_name, outbox=own.outbox)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ackbox-replay-")))
        provider = stack.enter_context(FakeServer())
        parts = _stack_parts(own, Tools(*stack_tools(specs, provider.url)))
        stack.callback(parts.dispose)
        stack.callback(_clear, parts, own)
        bus = TokenBus(revealed(own.redis_url), own.outbox)
        planner = stack.enter_context(Planner(
            parts.own_database("ackbox sim replay planner", 4), limits=parts.limits, bus=bus
        ))  # fmt: skip
        environ = _environ(own, folder)
        write_tools(folder, specs, provider.url)
        _write_plan(folder, plan)
        side = StackSide(parts, planner, provider.url, plan, folder, environ)
        stack.enter_context(background_roles(parts))
        stack.callback(side.end_workers)
        yield side


def _stack_parts(own: Settings, registry: Tools) -> StackParts:
    built = replace(build_parts(own, name="ackbox sim replay"), registry=registry)
    return StackParts(**{one.name: getattr(built, one.name) for one in fields(built)})


def _own_settings(settings: Settings, plan: StackPlan) -> Settings:
    name = f"ackbox_replay_{secrets.token_hex(4)}"
    return settings.model_copy(update={
        "schema_name": name, "outbox": name, "lanes": tuple(sorted(set(plan.lanes.values()))),
        "tools": (), "worker_processes": 1, "poll_seconds": POLL_SECONDS, "limits": LIMITS,
    })  # fmt: skip


def _environ(own: Settings, folder: Path) -> dict[str, str]:
    settings = own.model_copy(update={"tools": (TOOLS_PLACE,), "log_format": "json"})
    return {**child_environ(settings), PLAN_VARIABLE: str(folder / "plan.json")}


def _write_plan(folder: Path, plan: StackPlan) -> None:
    (folder / "plan.json").write_text(json.dumps(plan.points), encoding="utf-8")


def _clear(parts: Parts, own: Settings) -> None:
    """Drop the trace's schema and its queues."""
    drop = text(f"DROP SCHEMA {parts.database.quoted_schema} CASCADE")
    parts.database.run(lambda connection: connection.execute(drop))
    names = [queue_name(lane, own.outbox) for lane in _lanes(parts, own.lanes)]
    with Redis.from_url(revealed(own.redis_url)) as connection:
        for name in (*names, results_queue_name(own.outbox)):
            Queue(name, connection=connection).delete(delete_jobs=True)


def _lanes(parts: Parts, lanes: Sequence[str]) -> set[str]:
    return {*lanes, *parts.registry.lanes()}
