"""The outbox on Postgres, as the tests of this package ask it; its clock stands still."""

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from ackbox.outbox.commands import Claimed, GiveBack, MarkSend, Record
from ackbox.outbox.defaults import DEFAULTS, Limits
from ackbox.outbox.intent import Address, Content, Draft
from ackbox.outbox.model import Actor, GateDecision
from ackbox.outbox.shell.attempt_store import AttemptStore
from ackbox.outbox.shell.bind_store import BindStore
from ackbox.outbox.shell.claim_store import ClaimStore, Incarnation
from ackbox.outbox.shell.compensation_store import order_compensation
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.gate_store import Gate, decide_gate, gates_due, time_out_gate
from ackbox.outbox.shell.hold_store import HoldStore
from ackbox.outbox.shell.people_store import PeopleStore
from ackbox.outbox.shell.planner_store import PlannerStore
from ackbox.outbox.shell.reap_store import ReapStore
from ackbox.outbox.shell.reconcile_store import ReconcileStore
from ackbox.outbox.shell.rows import RowReader
from ackbox.outbox.shell.statements import Statements
from ackbox.sim.clock import BEGINNING

from .outboxes import COLUMNS, SERVED, TOOLS

_TABLES = (
    "intent", "intent_state", "contract", "claim_batch", "settled_batch", "observation", "event",
    "to_tell", "worker", "gate", "paused", "domain",
)  # fmt: skip


class PostgresOutbox:
    """The outbox on a real database, its clock standing where the test puts it."""

    kind = "postgres"

    def __init__(self, url: str, limits: Limits = DEFAULTS) -> None:
        self.database = Database(url)
        self.statements = Statements(self.database.schema, limits)
        self._reader = RowReader(self.statements, limits)
        self._planner = PlannerStore(self.statements, limits)
        self._claims = ClaimStore(self.database, self.statements)
        self._attempts = AttemptStore(self.database, self.statements, limits, draw=_whole)
        self._reaper = ReapStore(self.database, self.statements, limits)
        self._holds = HoldStore(self.database, self.statements, limits, draw=_whole)
        self._unknowns = ReconcileStore(self.database, self.statements, limits, draw=_whole)
        self._binding = BindStore(self.statements)
        self.people = PeopleStore(self.database, self.statements, limits)
        self.beat, self.stop = self._claims.beat, self._claims.stop
        self.suspect_ready = self._claims.suspect_ready
        self.reap = self._reaper.reap
        self.hold_step, self.order = self._holds.hold_step, self._holds.order
        self.finish_undo = self._holds.finish_undo
        self.record_probe, self.resend = self._unknowns.record_probe, self._unknowns.resend
        self.look_again, self.park = self._unknowns.look_again, self._unknowns.park
        self.begin()

    def begin(self) -> None:
        """Begin anew: no rows, the beginning of time, the declarations of all tools."""
        tables = ", ".join(f"{{schema}}.{name}" for name in _TABLES)
        self._sql(f"TRUNCATE {tables} RESTART IDENTITY")
        self._now: datetime = BEGINNING
        self._set_clock()
        self._contracts = self._claims.contract_ids(TOOLS)
        self._claims._low_water.clear()

    def close(self) -> None:
        self.database.dispose()

    def _run(self, work: Callable[[Connection], Any]) -> Any:
        return self.database.run(work)

    def _sql(self, statement: str, **values: Any) -> list[Any]:
        clause = text(statement.replace("{schema}", self.database.quoted_schema))

        def work(connection: Connection) -> list[Any]:
            found = connection.execute(clause, values)
            return list(found.mappings()) if found.returns_rows else []

        found: list[Any] = self._run(work)
        return found

    def _set_clock(self) -> None:
        self._sql(
            "CREATE OR REPLACE FUNCTION {schema}.clock_now() RETURNS timestamptz LANGUAGE sql"
            f" STABLE PARALLEL SAFE AS 'SELECT timestamptz ''{self._now.isoformat()}'''"
        )

    def put(self, draft: Draft, *, keep: bool = False) -> Any:
        return self._run(lambda c: self._planner.put(c, [draft], keep=keep))[0]

    def supersede(self, address: Address, generation: int, content: Content | None) -> Any:
        return self._run(lambda c: self._planner.supersede(c, address, generation, content))

    def cancel(self, address: Address) -> Any:
        return self._run(lambda c: self._planner.cancel(c, address))

    def tell(self, name: tuple[str, str]) -> Any:
        return self._run(lambda c: self._planner.steps(c, [name])).get(name)

    def register(
        self, owner: uuid.UUID, tools: Sequence[str] = SERVED, role: str = "worker"
    ) -> None:
        self._claims.register(Incarnation(owner, role, "here", 1, tuple(tools)))

    def claim(
        self,
        lane: str,
        limit: int,
        owner: uuid.UUID,
        *,
        alone: bool = False,
        knows: Sequence[str] = SERVED,
    ) -> list[Claimed]:
        contracts = {name: one for name, one in self._contracts.items() if name in knows}
        return self._claims.claim(lane, limit, owner, contracts, alone=alone)

    def mark(self, command: MarkSend, owner: uuid.UUID) -> Any:
        return self._attempts.mark([command], owner)[0]

    def record(self, command: Record) -> Any:
        return self._attempts.record([command])[0]

    def give_back(self, command: GiveBack) -> Any:
        return self._attempts.give_back([command])[0]

    def ready_lanes(self) -> Any:
        return self._reaper.ready_lanes(1000)

    def find_overdue(self) -> tuple[int, ...]:
        return self._reaper.find_overdue(100)

    def find_held(self) -> tuple[int, ...]:
        return self._holds.find_held(100)

    def find_undone(self) -> tuple[int, ...]:
        return self._holds.find_undone(100)

    def compensate(self, seq: int, plan: Any, actor: Actor = Actor.PLANNER) -> Any:
        return self._run(
            lambda c: order_compensation(
                c, self.statements, self._reader, seq=seq, plan=plan, actor=actor
            )
        )

    def decide(self, seq: int, decision: GateDecision, fingerprint: str) -> Any:
        gate = self._run(
            lambda c: decide_gate(
                c, self.statements, self._reader, seq=seq, decision=decision, actor=Actor.PERSON,
                actor_name="ops", reason="looked at it", fingerprint=fingerprint,
            )
        )  # fmt: skip
        return gate.decision if isinstance(gate, Gate) else gate

    def gates_due(self) -> Any:
        return self._run(lambda c: gates_due(c, self.statements, 100))

    def time_out(self, seq: int, fingerprint: str) -> Any:
        return self._run(
            lambda c: time_out_gate(c, self.statements, self._reader, seq, fingerprint)
        )

    def find_unknown(self) -> Any:
        return self._unknowns.find_unknown(100)

    def due(self, stage: str) -> tuple[int, ...]:
        due: tuple[int, ...] = self._run(lambda c: self._binding.due(c, stage, 100))
        return due

    def bind_rows(self, seqs: Sequence[int], hand_over: Sequence[str] = ()) -> Any:
        return self._run(lambda c: self._binding.bind_rows(c, sorted(seqs), hand_over))

    def pause(self, tool: str, *, on: bool) -> None:
        if on:
            self._sql(
                "INSERT INTO {schema}.paused (tool, actor, reason, created_at)"
                " VALUES (:tool, 'ops', 'a pause', {schema}.clock_now()) ON CONFLICT DO NOTHING",
                tool=tool,
            )  # fmt: skip
        else:
            self._sql("DELETE FROM {schema}.paused WHERE tool = :tool", tool=tool)

    def touch(self, domain: str) -> None:
        self._sql(
            "INSERT INTO {schema}.domain (namespace, name, version) VALUES ('default', :name, 1)"
            " ON CONFLICT (namespace, name) DO UPDATE SET version = domain.version + 1",
            name=domain,
        )

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._set_clock()
        # The hint is a host's time; it would hide rows from a clock that stands still.
        self._claims._low_water.clear()

    def seqs(self) -> list[int]:
        return [row["seq"] for row in self._sql("SELECT seq FROM {schema}.intent ORDER BY seq")]

    def row(self, seq: int) -> dict[str, Any]:
        (found,) = self._sql("SELECT * FROM {schema}.intent_state WHERE seq = :seq", seq=seq)
        return {name: found[name] for name in COLUMNS}

    def events(self) -> list[tuple[Any, ...]]:
        rows = self._sql(
            "SELECT seq, name, from_state, to_state, actor, fence, reason FROM {schema}.event"
            " ORDER BY event_id"
        )
        return [tuple(row.values()) for row in rows]

    def observations(self) -> list[tuple[Any, ...]]:
        rows = self._sql(
            "SELECT seq, fence, kind, number, outcome, ref, actor FROM {schema}.observation"
            " ORDER BY seq, fence, kind, number"
        )
        return [tuple(row.values()) for row in rows]


def _whole() -> float:
    return 1.0
