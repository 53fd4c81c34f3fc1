"""What tests of planners share: a planner, rows looked at and moved by hand, a bound consumer."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, create_engine, text

from ackbox.outbox.contract import Key, KeyKind, ProbeStrength, ToolContract
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import Actor, Move, State
from ackbox.outbox.outcome import Applied, Outcome
from ackbox.outbox.shell.claim_store import ClaimStore, Incarnation
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.moves import Write, observation_of, order, perform
from ackbox.outbox.shell.statements import Statements
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.planner.shell.planner import Planner

from ..support.waiting import DEADLINE_SECONDS

TOOL = "tickets.create"


@dataclass
class World:
    """One outbox as a test drives it: a planner, and a worker made of single statements."""

    url: str
    database: Database = field(init=False)
    statements: Statements = field(init=False)
    planner: Planner = field(init=False)
    consumer: ResultConsumer = field(init=False)
    owner: UUID = field(default_factory=uuid4)

    def __post_init__(self) -> None:
        self.database = Database(self.url, pool_size=12, lock_timeout_seconds=10)
        self.statements = Statements("ackbox", DEFAULTS)
        self.planner = Planner(self.database)
        self.consumer = ResultConsumer(self.database)
        claims = ClaimStore(self.database, self.statements)
        served = (f"{TOOL}@1",)
        claims.register(Incarnation(self.owner, "worker", "test", 1, served, ("default",)))
        contract = ToolContract(TOOL, key=Key(KeyKind.NONE), probe=ProbeStrength.NONE)
        self.contract_id = claims.contract_ids([contract])[f"{TOOL}@1"]

    def close(self) -> None:
        """End the threads and connections of the planner."""
        self.planner.close()

    def put(self, step: str = "open", lane: str | None = None, **args: Any) -> Intent:
        """Put one step of run r1."""
        given = {"title": "VPN", **args}
        return self.planner.put(TOOL, given, run_id="r1", step=step, lane=lane)

    def put_lanes(self, count: int) -> list[Intent]:
        """Put many steps, each in a lane of its own."""
        return self.planner.put_many(
            self.planner.draft(TOOL, {"n": n}, run_id="r1", step=f"s{n}", lane=f"l{n}")
            for n in range(count)
        )

    def one(self, statement: str, **values: Any) -> Any:
        """Return the first value of a statement; `{s}` is the schema."""
        rows = self.rows(statement, **values)
        return next(iter(rows[0].values())) if rows else None

    def rows(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """Return the rows of a statement as dictionaries."""
        clause = text(statement.replace("{s}", "ackbox"))

        def work(connection: Connection) -> list[dict[str, Any]]:
            found = connection.execute(clause, values)
            return [dict(row) for row in found.mappings()] if found.returns_rows else []

        return self.database.run(work)

    def row(self, intent: Intent) -> dict[str, Any]:
        """Return the state row of an intent."""
        return self.rows("SELECT * FROM {s}.intent_state WHERE seq = :seq", seq=intent.seq)[0]

    def state(self, intent: Intent) -> str:
        """Return the state of an intent."""
        return str(self.row(intent)["state"])

    def events(self, intent: Intent) -> list[str]:
        """Return the names of an intent's events, oldest first."""
        found = self.rows(
            "SELECT name FROM {s}.event WHERE seq = :seq ORDER BY event_id", seq=intent.seq
        )
        return [row["name"] for row in found]

    # -- a worker made of single statements ------------------------------------------------------

    def move(self, write: Write) -> bool:
        """Perform one move in a transaction of its own; False where a guard did not hold."""
        moved = self.database.run(lambda c: perform(c, self.statements, [write]))
        return write.move.seq in moved

    def claim(self, seq: int) -> bool:
        """Claim the ready rows of a row's lane; False where the row was not among them."""
        return seq in self.claim_lane(self.one("SELECT lane FROM {s}.intent WHERE seq = :q", q=seq))

    def claim_lane(self, lane: str) -> set[int]:
        """Claim the ready rows of a lane; returns those claimed."""
        clause, limits = self.statements.named("claim")
        values = {
            "lane": lane, "limit": 1000, "owner": str(self.owner), "alone": False,
            "contracts": json.dumps({f"{TOOL}@1": self.contract_id}),
            "low_water": "1970-01-01T00:00:00+00:00",
        }  # fmt: skip
        rows = self.database.run(lambda c: c.execute(clause, {**limits, **values}).all())
        return {row.seq for row in rows}

    def mark(self, seq: int, fence: int = 1) -> bool:
        """Write the send mark of one row."""
        move = Move("send", seq, State.EXECUTING, fence=fence, owner=self.owner, digest="d")
        return self.move(Write(move, Actor.WORKER, self.contract_id))

    def lose(self, seq: int, fence: int = 1) -> bool:
        """Record an unknown outcome."""
        move = Move("lose", seq, State.AWAITING_ACK, fence=fence, reason="no_answer")
        return self.move(Write(move, Actor.WORKER, self.contract_id))

    def acknowledge(
        self, seq: int, outcome: Outcome | None = None, state: State = State.AWAITING_ACK
    ) -> bool:
        """Settle one row as committed."""
        move = Move("acknowledge", seq, state, fence=1, decisive=True)
        seen = observation_of(outcome or Applied(ref=f"T-{seq}", result={"id": seq}))
        return self.move(Write(move, Actor.WORKER, self.contract_id, seen))

    def refuse(self, seq: int) -> bool:
        """Settle one row as failed."""
        move = Move("refuse", seq, State.AWAITING_ACK, fence=1, final=True, decisive=True)
        return self.move(Write(move, Actor.WORKER, self.contract_id, order("422")))

    def to(self, state: State, intent: Intent) -> Intent:
        """Drive a freshly put intent to a state by legal edges."""
        path: dict[State, Sequence[Callable[[int], bool]]] = {
            State.QUEUED: (),
            State.EXECUTING: (self.claim,),
            State.AWAITING_ACK: (self.claim, self.mark),
            State.INDETERMINATE: (self.claim, self.mark, self.lose),
            State.COMMITTED: (self.claim, self.mark, self.acknowledge),
            State.FAILED: (self.claim, self.mark, self.refuse),
        }
        for step in path[state]:
            assert step(intent.seq), f"{step.__name__} of {intent.seq}"
        return intent


@contextmanager
def caller(url: str) -> Iterator[Connection]:
    """Give a connection that belongs to the application, without a transaction."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def race(*sides: Callable[[], Any]) -> list[Any]:
    """Run the sides at once from behind a barrier and return their answers in order."""
    barrier = threading.Barrier(len(sides))

    def run(side: Callable[[], Any]) -> Any:
        barrier.wait(DEADLINE_SECONDS)
        return side()

    with ThreadPoolExecutor(len(sides)) as pool:
        return [
            answer.result(DEADLINE_SECONDS) for answer in [pool.submit(run, side) for side in sides]
        ]


def race_often(rounds: Sequence[Any], *sides: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """Run the sides against each other once for each round, each side in one thread."""
    barrier = threading.Barrier(len(sides))

    def run(side: Callable[[Any], Any]) -> list[Any]:
        answers = []
        for one in rounds:
            barrier.wait(DEADLINE_SECONDS)
            answers.append(side(one))
        return answers

    with ThreadPoolExecutor(len(sides)) as pool:
        columns = [answer.result(300) for answer in [pool.submit(run, s) for s in sides]]
    return list(zip(*columns, strict=True))
