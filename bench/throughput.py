"""Intents per second through put, claim, mark, an in-process tool, settle and bind, all durable.

Real RQ worker processes, relay and consumer on the configured servers, in a schema of its own that
is dropped afterwards. Beside it the raw-SQL ceiling of the same statements in the same run. May
import the application.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from uuid import uuid4

from sqlalchemy import text

from ..app.parts import Parts, build_parts
from ..app.roles import start_consumer, start_reaper, start_relay
from ..app.rq_process import COMMAND, child_environ
from ..app.settings import Settings
from ..app.stores import own_database
from ..outbox.errors import AckboxError
from ..outbox.intent import Terms, content_of, draft_of
from ..outbox.shell.connection import quoted
from ..outbox.shell.migrate import upgrade
from ..outbox.shell.planner_store import PlannerStore
from ..workers.shell.pool import PoolLimits, WorkerPool
from .ceiling import ceiling_per_second
from .noop import LANE

PUT_BATCH = 100
TOOL_PLACE = "ackbox.bench.noop:noop"
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """What to run. `batch` is the ceiling's batch; the bus chooses its own by load."""

    intents: int = 10_000
    workers: int = 2
    batch: int = 64
    in_flight_max: int = 200
    deadline_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class Throughput:
    """The figures, under the keys that `--json` prints."""

    intents_per_second: float
    ceiling_per_second: float
    ratio: float
    workers: int
    batch: int
    in_flight_max: int

    def as_dict(self) -> dict[str, float]:
        """Return the figures by key."""
        return asdict(self)


def measure(settings: Settings, load: Load) -> Throughput:
    """Run the bus and the ceiling and return both. Raises AckboxError where intents do not end."""
    with _own_schema(settings, load) as own:
        parts = build_parts(own, name="ackbox bench")
        ceiling_before = _ceiling(parts, load)
        rate = _run_bus(parts, load)
        ceiling_after = _ceiling(parts, load)
        parts.database.dispose()
    # The machine's speed drifts: the bus is compared with the mean of before and after.
    ceiling = (ceiling_before + ceiling_after) / 2
    return Throughput(
        round(rate, 1), round(ceiling, 1), round(rate / ceiling, 3),
        load.workers, load.batch, load.in_flight_max,
    )  # fmt: skip


def _ceiling(parts: Parts, load: Load) -> float:
    return ceiling_per_second(parts.database, load.batch, max(load.intents // load.batch // 4, 10))


@contextmanager
def _own_schema(settings: Settings, load: Load) -> Iterator[Settings]:
    name = f"ackbox_bench_{uuid4().hex[:8]}"
    own = settings.model_copy(
        update={
            "schema_name": name,
            "outbox": name[-20:].replace("_", ""),
            "lanes": (LANE,),
            "tools": (TOOL_PLACE,),
            "in_flight_max": load.in_flight_max,
            "poll_seconds": 0.25,
            "log_level": "warning",
        }
    )
    assert own.direct_url is not None, "the caller has resolved the servers"
    upgrade(own.direct_url.reveal(), schema=name, outbox=own.outbox)
    try:
        yield own
    finally:
        # Every process of the run has ended: nothing else holds the schema.
        database = own_database(own, "ackbox bench")
        drop = text(f"DROP SCHEMA {quoted(name)} CASCADE")
        database.run(lambda connection: connection.execute(drop))
        database.dispose()


def _run_bus(parts: Parts, load: Load) -> float:
    stop = threading.Event()
    pool = WorkerPool(
        load.workers, COMMAND, environ=child_environ(parts.settings), limits=PoolLimits()
    )
    roles = [start(parts, stop) for start in (start_relay, start_reaper, start_consumer)]
    pool_thread = threading.Thread(target=pool.run, name="ackbox-pool")
    pool_thread.start()
    try:
        _drive(parts, 200, load)
        started = time.perf_counter()
        _drive(parts, load.intents, load)
        return load.intents / (time.perf_counter() - started)
    finally:
        pool.stop()
        pool_thread.join()
        stop.set()
        for role in roles:
            role.close()


def _drive(parts: Parts, intents: int, load: Load) -> None:
    """Put intents in batches and wait until the last one is bound."""
    store = PlannerStore(parts.statements, parts.limits)
    run = uuid4().hex[:8]
    for first in range(0, intents, PUT_BATCH):
        drafts = [
            draft_of(content_of("bench.noop", 1, LANE, {"n": n}), Terms(), run_id=run, step=str(n))
            for n in range(first, min(first + PUT_BATCH, intents))
        ]
        parts.database.run(lambda connection, some=drafts: store.put(connection, some))  # type: ignore[misc]
        if parts.bus is not None:
            parts.bus.ring(LANE, 1000)
    _wait_bound(parts, run, intents, load.deadline_seconds)


def _wait_bound(parts: Parts, run: str, intents: int, deadline_seconds: float) -> None:
    schema = quoted(parts.settings.schema_name)
    count = text(
        f"SELECT count(*) FROM {schema}.intent_state s JOIN {schema}.intent n ON n.seq = s.seq"
        " WHERE n.run_id = :run AND s.bound_at IS NOT NULL"
    )
    end = time.perf_counter() + deadline_seconds
    pause = threading.Event()
    while parts.database.run(lambda c: c.scalar(count, {"run": run})) < intents:
        if time.perf_counter() > end:
            raise AckboxError(
                f"not all of {intents} intents were bound within {deadline_seconds:g} s",
                next_step="run again on a quieter machine, or with fewer --intents",
            )
        pause.wait(LOOK_SECONDS)
