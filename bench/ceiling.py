"""The raw-SQL ceiling: the bus's own statements, serial on one psycopg connection, nothing else.

What Postgres alone allows for put, claim, mark, settle and bind in batches of the same size: no
attempts, threads, tokens, tools or decisions. May import the store's statements.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
from sqlalchemy import make_url

from ..outbox.contract import ToolContract
from ..outbox.defaults import DEFAULTS
from ..outbox.intent import Draft, Terms, content_of, draft_of
from ..outbox.model import Actor, Move, State
from ..outbox.outcome import Applied
from ..outbox.records import Write, observation_of
from ..outbox.shell.bind_store import SETTLED
from ..outbox.shell.claim_store import ClaimStore, Incarnation, served_name
from ..outbox.shell.database import Database
from ..outbox.shell.edge_batch import move_record
from ..outbox.shell.planner_store import draft_record
from ..outbox.shell.statements import Statements

TOOL = ToolContract("bench.ceiling", lane="ceiling")
_DIALECT = make_url("postgresql+psycopg://").get_dialect()()
_SERVED = served_name(TOOL.tool, TOOL.version)


def ceiling_per_second(database: Database, batch: int, rounds: int) -> float:
    """Return intents per second through the five steps, one client, every commit durable."""
    statements = Statements(database.schema, DEFAULTS)
    claims = ClaimStore(database, statements)
    owner = uuid4()
    contract_id = claims.contract_ids([TOOL])[_SERVED]
    claims.register(Incarnation(owner, "bench", "bench", 0, (_SERVED,), (TOOL.lane,)))
    drafts = [_drafts(f"{owner}-{number}", batch) for number in range(rounds)]
    with database.listen_connection() as connection:
        raw = _Raw(connection, statements, owner, contract_id)
        raw.round(_drafts(f"{owner}-warm", batch))
        started = time.perf_counter()
        for some in drafts:
            raw.round(some)
        return batch * rounds / (time.perf_counter() - started)


class _Raw:
    """The statements as psycopg executes them; autocommit, so each is one durable transaction."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        statements: Statements,
        owner: UUID,
        contract_id: int,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._owner = owner
        self._contract_id = contract_id
        self._texts: dict[str, tuple[bytes, Mapping[str, Any]]] = {}

    def round(self, drafts: Sequence[Draft]) -> None:
        """Take one batch through all five steps."""
        records = json.dumps([draft_record(draft) for draft in drafts])
        self._execute("put", drafts=records)
        claimed = self._execute(
            "claim", lane=TOOL.lane, limit=len(drafts), owner=str(self._owner), alone=False,
            contracts=json.dumps({_SERVED: self._contract_id}), low_water="-infinity",
        )  # fmt: skip
        fences = {row[0]: row[1] for row in claimed}
        self._edge("send", fences, State.EXECUTING)
        with self._connection.transaction():
            self._execute("lock_rows", seqs=sorted(fences))
            self._edge("acknowledge", fences, State.AWAITING_ACK)
        due = self._execute("settled_due", stage=SETTLED, limit=100)
        self._execute("bind_together", batch_ids=[row[0] for row in due])

    def _edge(self, edge: str, fences: Mapping[int, int], source: State) -> None:
        seen = observation_of(Applied("ref")) if edge == "acknowledge" else None
        writes = [
            Write(
                Move(edge, seq, source, fence=fence, owner=self._owner, digest="digest"),
                Actor.WORKER, self._contract_id, seen,
            )
            for seq, fence in fences.items()
        ]  # fmt: skip
        moves = json.dumps([move_record(write) for write in writes], default=str)
        self._execute("edge", edge, moves=moves, edge=edge)

    def _execute(self, name: str, edge_name: str = "", **values: Any) -> list[Any]:
        key = f"{name} {edge_name}"
        if key not in self._texts:
            found = self._statements.edge(edge_name) if edge_name else self._statements.named(name)
            compiled = found[0].compile(dialect=_DIALECT)
            self._texts[key] = (str(compiled).encode(), found[1])
        text, limits = self._texts[key]
        cursor = self._connection.execute(text, {**limits, **values}, prepare=True)
        return cursor.fetchall()


def _drafts(name: str, batch: int) -> list[Draft]:
    content = content_of(TOOL.tool, TOOL.version, TOOL.lane, {"n": 1})
    return [draft_of(content, Terms(), intent_id=f"{name}-{number}") for number in range(batch)]
