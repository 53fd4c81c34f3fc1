"""What the acceptance tests share: one bus with real processes, looked at from outside.

Effects are counted where they happen, at the fake provider in its own process. Rows are read with
plain SQL; nothing here decides anything about them.
"""

import json
import os
import sys
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from ackbox.outbox.intent import Intent
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.fault_points import PLAN_VARIABLE
from ackbox.planner.shell.planner import Planner

from ..integration.valkey_process import INHERITED_PATH
from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support_children import PROGRAM, Child, Nursery, Provider
from .support_tools import TOOL_URL

DEAD_AFTER_SECONDS = 4.0
"""Waited for by each test with a death, and out of reach for a process that is merely slow."""
LIMITS: dict[str, float] = {
    "claim_lease_seconds": 60.0,
    "prepare_limit_seconds": 40.0,
    "clock_allowance_seconds": 0.2,
    "heartbeat_seconds": 0.25,
    "dead_after_seconds": DEAD_AFTER_SECONDS,
    "backoff_base_seconds": 0.1,
    "backoff_cap_seconds": 0.5,
    "unready_limit_seconds": 2.0,
    "max_claims": 2,
}
SETTLED = ("committed", "failed", "cancelled", "compensated")
ROLES = ("relay", "reaper", "reconciler", "consumer")


class Bus:
    """One outbox on real servers, with the processes that a test starts."""

    def __init__(
        self, nursery: Nursery, provider: Provider, database_url: str, redis_url: str, folder: Path
    ) -> None:
        self.provider = provider
        self.folder = folder
        self.redis_url = redis_url
        self.database = Database(database_url, application_name="acceptance test", pool_size=8)
        self.planner = Planner(self.database)
        self.children: list[Child] = []
        self._nursery = nursery
        self._plan: list[dict[str, str]] = []
        self._plan_path = folder / "plan.json"
        self._write_plan()
        self._environ = {
            "ACKBOX_DATABASE_URL": database_url,
            "ACKBOX_REDIS_URL": redis_url,
            "ACKBOX_TOOLS": "support_tools:build",
            "ACKBOX_POLL_SECONDS": "0.2",
            "ACKBOX_TERM_GRACE_SECONDS": "60",
            "ACKBOX_LOG_FORMAT": "json",
            # The queue's own lines are told at debug only; some tests wait for them.
            "ACKBOX_LOG_LEVEL": "debug",
            PLAN_VARIABLE: str(self._plan_path),
            TOOL_URL: provider.url,
            "PYTHONPATH": os.pathsep.join([str(PROGRAM.parent), *INHERITED_PATH]),
        }
        self.set_limits()

    # -- processes -------------------------------------------------------------------------------

    def start(self, *command: str, nursery: Nursery | None = None, **environ: str) -> Child:
        """Start one process; its output goes to a file of its own."""
        log = self.folder / f"{len(self.children)}-{command[0]}.log"
        nursery = nursery or self._nursery
        child = nursery.start(command, log, {**self._environ, **environ})
        self.children.append(child)
        return child

    def environ(self, **environ: str) -> dict[str, str]:
        """Return the environment of this bus for a process that a test starts by itself."""
        return {**os.environ, **self._environ, **environ}

    def set_limits(self, **limits: float) -> None:
        """Change limits for the processes that are started from now on."""
        both = LIMITS | limits
        self._environ["ACKBOX_LIMITS"] = ",".join(f"{k}={v}" for k, v in both.items())

    def roles(self, *names: str, nursery: Nursery | None = None) -> Child:
        """Start background roles in one process, all of them unless named."""
        return self.start("roles", *(names or ROLES), nursery=nursery)

    def worker(self, *lanes: str, nursery: Nursery | None = None, **environ: str) -> Child:
        """Start a worker on these lanes, and wait until it has introduced itself."""
        (child,) = self.workers([lanes], nursery=nursery, **environ)
        return child

    def workers(
        self, lanes: Sequence[Sequence[str]], nursery: Nursery | None = None, **environ: str
    ) -> list[Child]:
        """Start a worker for each group of lanes, and wait until all have introduced themselves."""
        known = self.worker_ids()
        children = []
        for group in lanes:
            served = {"ACKBOX_LANES": ",".join(group), **environ}
            children.append(self.start("worker", *group, nursery=nursery, **served))
        what = f"{len(lanes)} workers have introduced themselves"
        wait_until(lambda: len(self.worker_ids() - known) == len(lanes), DEADLINE_SECONDS, what)
        return children

    def worker_ids(self) -> set[uuid.UUID]:
        """Return the incarnations of worker processes that ever introduced themselves."""
        return {row["worker_id"] for row in self.sql("SELECT * FROM {s}.worker")
                if row["role"] == "worker"}  # fmt: skip

    def close(self) -> None:
        """End every process that is left, and the connections of the test."""
        for child in self.children:
            child.kill()
        self.planner.close()

    # -- faults ----------------------------------------------------------------------------------

    def plan(self, point: str, intent_id: str, action: str = "kill") -> None:
        """Plan a signal for the process that reaches this point with this intent first."""
        self._plan.append({"point": point, "intent_id": intent_id, "action": action})
        self._write_plan()

    def fired(self, point: str, intent_id: str) -> bool:
        """Return whether a planned signal was sent."""
        return (self.folder / f"fired-{point}-{intent_id}").exists()

    def wait_fired(self, point: str, intent_id: str) -> None:
        """Wait until a planned signal was sent."""
        what = f"{point} of {intent_id} is reached"
        wait_until(lambda: self.fired(point, intent_id), DEADLINE_SECONDS, what)

    def _write_plan(self) -> None:
        unfinished = self._plan_path.with_suffix(".new")
        unfinished.write_text(json.dumps(self._plan))
        unfinished.replace(self._plan_path)

    # -- rows ------------------------------------------------------------------------------------

    def put(self, tool: str, lane: str, intent_id: str | None = None, **args: Any) -> Intent:
        """Put one intent and ring its lane."""
        return self.planner.put(tool, args, intent_id=intent_id or unique(lane), lane=lane)

    def put_many(
        self, tool: str, lane: str, count: int, *, slow_seconds: float = 0.0, **args: Any
    ) -> list[Intent]:
        """Put many intents of one lane in one transaction; the tool may be slow for all of them."""
        names = [unique(lane) for _ in range(count)]
        if slow_seconds:
            fault = {"fault": "delay_before_effect", "seconds": slow_seconds}
            self.provider.ask("/_faults", [{**fault, "wire_key": name} for name in names])
        drafts = [self.planner.draft(tool, args, intent_id=name, lane=lane) for name in names]
        return self.planner.put_many(drafts)

    def open_calls(self, lane: str, count: int, **args: Any) -> tuple[list[Intent], Path]:
        """Have a lane in calls that have had their effect and end when a file is there."""
        gate = self.folder / f"gate-{unique(lane)}"
        intents = self.put_many("patient", lane, count, gate=str(gate), **args)
        self.wait_effect(*intents)
        return intents, gate

    def sql(self, statement: str, **values: Any) -> list[RowMapping]:
        """Run a test's own SQL; `{s}` is the outbox's schema."""
        clause = text(statement.replace("{s}", self.database.quoted_schema))

        def read(connection: Connection) -> list[RowMapping]:
            found = connection.execute(clause, values)
            return list(found.mappings()) if found.returns_rows else []

        return self.database.run(read)

    def row(self, intent: Intent) -> RowMapping:
        """Return the state row."""
        (found,) = self.rows([intent])
        return found

    def rows(self, intents: Collection[Intent]) -> list[RowMapping]:
        """Return the state rows, in the order of the intents."""
        seqs = [intent.seq for intent in intents]
        statement = "SELECT * FROM {s}.intent_state WHERE seq = ANY(:seqs)"
        by_seq = {row["seq"]: row for row in self.sql(statement, seqs=seqs)}
        return [by_seq[seq] for seq in seqs]

    def states(self, intents: Collection[Intent]) -> list[str]:
        """Return the states of many rows."""
        return [row["state"] for row in self.rows(intents)]

    def wait_states(
        self, intents: Collection[Intent], *states: str, seconds: float = DEADLINE_SECONDS
    ) -> None:
        """Wait until each row is in one of these states."""
        what = f"{len(intents)} rows are {' or '.join(states)}"

        def reached() -> bool:
            return all(state in states for state in self.states(intents))

        try:
            wait_until(reached, seconds, what)
        except BaseException:
            self._print_trail(intents)
            raise

    def wait_state(self, intent: Intent, *states: str, seconds: float = DEADLINE_SECONDS) -> None:
        """Wait until a row is in one of these states."""
        self.wait_states([intent], *states, seconds=seconds)

    def wait_parked(self, intent: Intent) -> None:
        """Wait until a row is unknown and in front of a person."""
        self.wait_state(intent, "indeterminate")
        what = f"{intent.intent_id} is parked"
        wait_until(lambda: self.row(intent)["parked_at"] is not None, DEADLINE_SECONDS, what)

    def wait_effect(self, *intents: Intent) -> None:
        """Wait until the tool has counted one effect of each; their rows may lag behind."""
        what = f"{len(intents)} calls have had their effect"
        once = [1] * len(intents)
        wait_until(lambda: self.effects(*intents) == once, DEADLINE_SECONDS, what)

    def events(self, intent: Intent, name: str | None = None) -> list[RowMapping]:
        """Return a row's events in order, or those of one name."""
        found = self.sql("SELECT * FROM {s}.event WHERE seq = :seq ORDER BY event_id",
                         seq=intent.seq)  # fmt: skip
        return [row for row in found if name in (None, row["name"])]

    def effects(self, *intents: Intent) -> list[int]:
        """Return the effects at the provider, intent by intent, of generation 0."""
        counted = self.provider.effects()
        return [counted.get(intent.intent_id, 0) for intent in intents]

    def _print_trail(self, intents: Collection[Intent]) -> None:
        for row in self.rows(intents):
            if row["state"] not in SETTLED:
                trail = [f"{e['at']:%S.%f} {e['name']} {e['detail'] or ''}" for e in self.sql(
                    "SELECT * FROM {s}.event WHERE seq = :seq ORDER BY event_id", seq=row["seq"]
                )]  # fmt: skip
                sys.stdout.write(f"{row['seq']} {row['state']}: {trail}\n")
        for child in self.children:
            sys.stdout.write(f"-- {child.pid} {child.code}\n{child.output()[-2000:]}\n")


def unique(lane: str) -> str:
    """Return an intent id that no other test has."""
    return f"{lane}-{uuid.uuid4().hex[:12]}"


def new_lane(name: str) -> str:
    """Return a lane that no other test uses."""
    return f"{name}-{uuid.uuid4().hex[:6]}"


@contextmanager
def opened(bus: Bus) -> Iterator[Bus]:
    """Close a bus afterwards, whatever the test did."""
    try:
        yield bus
    finally:
        bus.close()
