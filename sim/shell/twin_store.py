"""A world's store that is two: every call goes to the outbox in memory and to the one on Postgres.

The world goes on with the reply of Postgres; each reply is compared with memory's first, and so is
every row that a step has written. May import `sim` and the outbox's shells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from ...outbox.telling import tell
from ..store import MemoryStore
from ..world import Choice, World
from .comparing import plain, require_same
from .postgres_store import COLUMNS, PostgresWorldStore

_PARTS = (
    "claims", "attempts", "reaper", "planner", "binding", "holds", "compensations", "gates",
    "unknowns", "people",
)  # fmt: skip
ROUNDING = timedelta(microseconds=2)
"""Seconds become an interval in Python and in SQL; their last digits may differ."""
_INSERTING = frozenset({"put", "supersede", "order"})
_UNORDERED = frozenset({"reap"})


class _BothParts:
    """One part of the outbox, twice. Methods are those of the in-memory one."""

    def __init__(self, twin: TwinStore, name: str) -> None:
        self._twin = twin
        self._name = name
        self._memory = getattr(twin.memory, name)
        self._postgres = getattr(twin.postgres, name)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        ask_memory = getattr(self._memory, method)
        ask_postgres = getattr(self._postgres, method)

        def ask(*arguments: Any, **more: Any) -> Any:
            self._twin.follow(inserts=method in _INSERTING)
            reply = ask_postgres(*arguments, **more)
            expected = ask_memory(*arguments, **more)
            self._twin.replies += 1
            require_same(f"the reply to {self._name}.{method}", *_comparable(
                method, expected, reply))  # fmt: skip
            return reply

        return ask


def _comparable(method: str, expected: Any, reply: Any) -> tuple[Any, Any]:
    if method == "take":
        return _leased(expected), _leased(reply)
    if method in ("decide", "time_out"):
        return getattr(expected, "decision", expected), getattr(reply, "decision", reply)
    if method == "steps":
        return _told(expected), _told(reply)
    if method in _UNORDERED:
        return sorted(expected), sorted(reply)
    return expected, reply


def _is_rounding(one: Any, other: Any) -> bool:
    are_moments = isinstance(one, datetime) and isinstance(other, datetime)
    return are_moments and abs(one - other) <= ROUNDING


def _leased(batch: Any) -> Any:
    return None if batch is None else (batch.seqs, batch.tries)


def _told(steps: Any) -> Any:
    """Return what a planner is told of every generation: all that the reply is read for."""
    return {
        name: [tell(found, one.row.generation, now) for one in found]
        for (_, name), (found, now) in steps.items()
    }


def _alike(rows: Iterable[Any]) -> list[Any]:
    """Return facts in an order of their own: one statement writes several in any order."""
    return sorted((plain(row) for row in rows), key=repr)


class TwinStore(MemoryStore):
    """Both outboxes as one, in a world that has begun: what stands in memory is set up on Postgres.

    `tables` are memory's, whose rows are compared with those of Postgres after every step.
    """

    def __init__(self, memory: MemoryStore, postgres: PostgresWorldStore) -> None:
        self.tables = memory.tables
        self.memory = memory
        self.postgres = postgres
        self.replies = 0
        """Replies that were compared."""
        self._paused: frozenset[str] = frozenset()
        self._domains: dict[tuple[str, str], int] = {}
        postgres.begin(memory.tables.limits)
        postgres.set_clock(memory.tables.clock.now)
        postgres.declare(memory.tables.contracts)
        for owner, worker in memory.tables.workers.items():
            postgres.claims.register(owner, worker.tools)
        for name in _PARTS:
            setattr(self, name, _BothParts(self, name))

    def follow(self, *, inserts: bool) -> None:
        """Bring to Postgres what a world changes without a call: time, pauses, domains."""
        tables, postgres = self.tables, self.postgres
        postgres.set_clock(tables.clock.now)
        if tables.paused != self._paused:
            self._paused = tables.paused
            postgres.set_paused(tables.paused)
        if tables.domains != self._domains:
            self._domains = dict(tables.domains)
            postgres.set_domains(tables.domains)
        if inserts:
            postgres.next_row(tables.next_seq)

    def observe(self, world: World, choice: Choice) -> None:
        """Compare the rows after a step that has written any. An observer of a world."""
        if self.tables.dirty:
            self.compare_rows()

    def compare_rows(self) -> None:
        """Compare every state row. Raises Difference."""
        rows = {seq: {name: getattr(row, name) for name in COLUMNS}
                for seq, row in self.tables.rows.items()}  # fmt: skip
        found = self.postgres.rows()
        for one in (*rows.values(), *found.values()):
            one["observation_id"] = one["observation_id"] is not None
        for seq in rows.keys() & found.keys():
            self._align(seq, rows[seq], found[seq])
        require_same("row", rows, found)

    def _align(self, seq: int, row: dict[str, Any], found: dict[str, Any]) -> None:
        """Set moments that the two round differently to memory's: the world waits for that one."""
        for name, moment in row.items():
            if moment != found[name] and _is_rounding(moment, found[name]):
                self.postgres.set_moment(seq, name, moment)
                found[name] = moment

    def compare_all(self) -> None:
        """Compare rows, intents, events, observations, gates and batches. Raises Difference."""
        self.compare_rows()
        tables, postgres = self.tables, self.postgres
        require_same("intent", [
            (i.seq, i.namespace, i.intent_id, i.generation, i.tool, i.lane, i.args, i.fingerprint,
             i.content, i.read_set, i.deadline, i.compensates) for i in tables.intents.values()
        ], postgres.intents())  # fmt: skip
        events = sorted((one for some in tables.events.values() for one in some),
                        key=lambda one: one.event_id)  # fmt: skip
        require_same("event", _alike(
            (e.seq, e.name, e.from_state, e.to_state, e.actor, e.fence, e.reason, e.actor_name)
            for e in events
        ), _alike(postgres.events()))  # fmt: skip
        require_same("observation", sorted(
            [seq, k.fence, k.kind, k.number, k.outcome, k.ref, k.document, k.actor.value]
            for seq, some in tables.observations.items() for k in some
        ), postgres.observations())  # fmt: skip
        require_same("gate", [
            (seq, g.decision, g.fingerprint, g.clock_started_at, g.decided_at)
            for seq, g in sorted(tables.gates.items())
        ], postgres.gate_rows())  # fmt: skip
        require_same("batch", [
            (b.stage, b.seqs, b.due_at, b.tries) for _, b in sorted(tables.batches.items())
        ], postgres.batches())  # fmt: skip
