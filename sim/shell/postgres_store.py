"""One outbox on Postgres that a world can be played on: set clock, empty tables, plain readings.

It stands in a schema of its own, whose `clock_now()` is replaced: time moves as the world says. May
import the outbox's shells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from ...outbox.contract import ToolContract
from ...outbox.defaults import Limits
from ...outbox.model import Row
from ...outbox.shell.bind_store import BindStore
from ...outbox.shell.hold_store import HoldStore
from ...outbox.shell.people_store import PeopleStore
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.shell.reap_store import ReapStore
from ...outbox.shell.rows import RowReader
from ...outbox.shell.statements import Statements
from .postgres_parts import (
    Attempts,
    Binding,
    Claims,
    Compensations,
    ForgetfulDatabase,
    Gates,
    PlannerSide,
    Unknowns,
    whole,
)

_TABLES = (
    "intent", "intent_state", "contract", "claim_batch", "settled_batch", "observation", "event",
    "to_tell", "worker", "gate", "paused", "domain",
)  # fmt: skip
COLUMNS = tuple(one.name for one in fields(Row) if one.name not in ("fingerprint", "content"))
"""What is compared of a state row; the other two stand in the intent."""


class PostgresWorldStore:
    """The parts of an outbox under the names of `MemoryStore`, on a database of its own."""

    def __init__(self, url: str, schema: str, limits: Limits) -> None:
        self.database = ForgetfulDatabase(url, schema)
        self.begin(limits)

    def begin(self, limits: Limits) -> None:
        """Begin anew under these limits: no rows."""
        database, statements = self.database, Statements(self.database.schema, limits)
        reader = RowReader(statements, limits)
        self.claims = Claims(database, statements)
        self.attempts = Attempts(database, statements, limits)
        self.reaper = ReapStore(database, statements, limits)
        self.planner = PlannerSide(database, PlannerStore(statements, limits))
        self.binding = Binding(database, BindStore(statements))
        self.holds = HoldStore(database, statements, limits, draw=whole)
        self.compensations = Compensations(database, statements, reader)
        self.gates = Gates(database, statements, reader)
        self.unknowns = Unknowns(database, statements, limits)
        self.people = PeopleStore(database, statements, limits)
        self._now: datetime | None = None
        tables = ", ".join(f"{{schema}}.{name}" for name in _TABLES)
        self.sql(f"TRUNCATE {tables} RESTART IDENTITY")

    def close(self) -> None:
        """Close the connections."""
        self.database.dispose()

    def sql(self, statement: str, **values: Any) -> list[Mapping[str, Any]]:
        """Run a statement of the replay's own; `{schema}` is the outbox's schema."""
        clause = text(statement.replace("{schema}", self.database.quoted_schema))

        def work(connection: Connection) -> list[Mapping[str, Any]]:
            found = connection.execute(clause, values)
            return [dict(row) for row in found.mappings()] if found.returns_rows else []

        return self.database.run(work)

    # -- what a world sets by itself -------------------------------------------------------------

    def set_clock(self, now: datetime) -> None:
        """Have the store's clock stand at this moment."""
        if now == self._now:
            return
        self._now = now
        self.sql(
            "CREATE OR REPLACE FUNCTION {schema}.clock_now() RETURNS timestamptz LANGUAGE sql"
            f" STABLE PARALLEL SAFE AS 'SELECT timestamptz ''{now.isoformat()}'''"
        )
        self.claims.forget_hints()

    def declare(self, contracts: Iterable[ToolContract]) -> None:
        """Keep tools' declarations, so that their ids are 1, 2, ... in this order."""
        for contract in contracts:
            self.claims.declare(contract)

    def next_row(self, seq: int) -> None:
        """Number the next row; a put that inserts nothing has used a number up."""
        self.sql(
            "SELECT setval(pg_get_serial_sequence('{schema}.intent', 'seq'), :seq, false)", seq=seq
        )

    def set_moment(self, seq: int, column: str, moment: datetime) -> None:
        """Set a moment of a row, whose last digit was rounded otherwise."""
        if column not in COLUMNS:
            raise ValueError(f"{column} is no column of a row")
        self.sql(f"UPDATE {{schema}}.intent_state SET {column} = :at WHERE seq = :seq",
                 at=moment, seq=seq)  # fmt: skip

    def set_paused(self, tools: Iterable[str]) -> None:
        """Pause the sends of exactly these tools."""
        self.sql("DELETE FROM {schema}.paused")
        for tool in tools:
            self.sql(
                "INSERT INTO {schema}.paused (tool, actor, reason, created_at)"
                " VALUES (:tool, 'ops', 'a pause', {schema}.clock_now())", tool=tool,
            )  # fmt: skip

    def set_domains(self, domains: Mapping[tuple[str, str], int]) -> None:
        """Set the versions of domains in read sets."""
        self.sql("DELETE FROM {schema}.domain")
        for (namespace, name), version in domains.items():
            self.sql(
                "INSERT INTO {schema}.domain (namespace, name, version)"
                " VALUES (:namespace, :name, :version)",
                namespace=namespace, name=name, version=version,
            )  # fmt: skip

    # -- what stands there -----------------------------------------------------------------------

    def rows(self) -> dict[int, dict[str, Any]]:
        """Return every state row by its seq."""
        found = self.sql("SELECT * FROM {schema}.intent_state ORDER BY seq")
        return {row["seq"]: {name: row[name] for name in COLUMNS} for row in found}

    def intents(self) -> list[tuple[Any, ...]]:
        """Return every intent's identity and content."""
        return self._tuples(
            "SELECT seq, namespace, intent_id, generation, tool, lane, args, fingerprint, content,"
            " read_set, deadline, compensates FROM {schema}.intent ORDER BY seq"
        )

    def events(self) -> list[tuple[Any, ...]]:
        """Return every event in order."""
        return self._tuples(
            "SELECT seq, name, from_state, to_state, actor, fence, reason, actor_name"
            " FROM {schema}.event ORDER BY event_id"
        )

    def observations(self) -> list[tuple[Any, ...]]:
        """Return every observation."""
        return self._tuples(
            "SELECT seq, fence, kind, number, outcome, ref, document, actor"
            " FROM {schema}.observation ORDER BY seq, fence, kind, number"
        )

    def gate_rows(self) -> list[tuple[Any, ...]]:
        """Return every gate."""
        return self._tuples(
            "SELECT seq, decision, fingerprint, clock_started_at, decided_at"
            " FROM {schema}.gate ORDER BY seq"
        )

    def batches(self) -> list[tuple[Any, ...]]:
        """Return every batch that waits."""
        return self._tuples(
            "SELECT stage, seqs, due_at, tries FROM {schema}.settled_batch ORDER BY batch_id"
        )

    def _tuples(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.sql(statement)]
