"""Rows in any legal state, made by the store's own edges; its clock is in the test's hand."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, text

from ackbox.outbox.commands import Claimed, Marked, MarkSend, Record, Recorded
from ackbox.outbox.contract import ProbeStrength, ToolContract, idempotent
from ackbox.outbox.defaults import DEFAULTS, Limits
from ackbox.outbox.intent import Address, Content, Intent, Terms, content_of, draft_of
from ackbox.outbox.model import Actor, GateDecision, State
from ackbox.outbox.outcome import Applied, Outcome, Unknown
from ackbox.outbox.people import Said, Stated
from ackbox.outbox.shell.attempt_store import AttemptStore
from ackbox.outbox.shell.claim_store import ClaimStore, Incarnation, served_name
from ackbox.outbox.shell.compensation_store import order_compensation
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.gate_store import decide_gate
from ackbox.outbox.shell.hold_store import HoldStore
from ackbox.outbox.shell.people_store import PeopleStore
from ackbox.outbox.shell.planner_store import PlannerStore
from ackbox.outbox.shell.reap_store import ReapStore
from ackbox.outbox.shell.reconcile_store import ReconcileStore
from ackbox.outbox.shell.rows import RowReader
from ackbox.outbox.shell.statements import Statements

from .databases import Databases
from .services import migrate_template

T = TypeVar("T")
KEYED = ToolContract("keyed", key=idempotent(None), probe=ProbeStrength.NONE, compensates=True)
WINDOWED = ToolContract("windowed", key=replace(idempotent(None), window_seconds=86_400.0))
PROBED = ToolContract("probed", probe=ProbeStrength.STRONG, compensates=True, ensure_absent=True)
WEAK = ToolContract("weak", probe=ProbeStrength.WEAK, compensates=True)
KEYLESS = ToolContract("keyless")
UNDO = ToolContract("undo")
TABLES = (
    "intent", "intent_state", "contract", "claim_batch", "settled_batch", "observation", "event",
    "to_tell", "worker", "gate", "paused", "domain",
)  # fmt: skip
TOOLS = (KEYED, WINDOWED, PROBED, WEAK, KEYLESS, UNDO)


class Seeded:
    """One outbox on one database, with a registered worker that knows every tool above."""

    def __init__(self, url: str, limits: Limits = DEFAULTS) -> None:
        self.url = url
        self.database = Database(url)
        self.statements = Statements(self.database.schema, limits)
        self.reader = RowReader(self.statements, limits)
        self.planner = PlannerStore(self.statements, limits)
        self.claims = ClaimStore(self.database, self.statements)
        self.attempts = AttemptStore(self.database, self.statements, limits)
        self.reaper = ReapStore(self.database, self.statements, limits)
        self.holds = HoldStore(self.database, self.statements, limits, draw=lambda: 1.0)
        self.unknowns = ReconcileStore(self.database, self.statements, limits, draw=lambda: 0.0)
        self.people = PeopleStore(self.database, self.statements, limits)
        self.owner = uuid.uuid4()
        self._start()

    def _start(self) -> None:
        self.contracts = self.claims.contract_ids(TOOLS)
        self._offset_seconds = 0.0
        self._said: dict[tuple[int, int], int] = {}
        self.register(self.owner)

    def wipe(self) -> "Seeded":
        """Begin anew on the same database: no rows, the real time, one worker."""
        self.sql(f"TRUNCATE {', '.join('{schema}.' + name for name in TABLES)} RESTART IDENTITY")
        if self._offset_seconds:
            self.advance(-self._offset_seconds)
        self._start()
        return self

    def register(self, owner: uuid.UUID) -> None:
        """Start one more worker process, as far as the store knows."""
        served = tuple(served_name(tool.tool, tool.version) for tool in TOOLS)
        self.claims.register(Incarnation(owner, "worker", "here", 1, served))

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction."""
        return self.database.run(work)

    def sql(self, statement: str, **values: Any) -> list[RowMapping]:
        """Run a test's own SQL; `{schema}` is the outbox's."""
        clause = text(statement.replace("{schema}", self.database.quoted_schema))

        def work(connection: Connection) -> list[RowMapping]:
            found = connection.execute(clause, values)
            return list(found.mappings()) if found.returns_rows else []

        return self.run(work)

    def advance(self, seconds: float) -> None:
        """Move the store's clock on; the worker stays alive."""
        self._offset_seconds += seconds
        self.sql(
            "CREATE OR REPLACE FUNCTION {schema}.clock_now() RETURNS timestamptz LANGUAGE sql"
            " STABLE PARALLEL SAFE AS 'SELECT statement_timestamp()"
            f" + make_interval(secs => {self._offset_seconds})'"
        )
        self.claims.beat(self.owner)

    def row(self, seq: int) -> RowMapping:
        """Return a state row."""
        (found,) = self.sql("SELECT * FROM {schema}.intent_state WHERE seq = :seq", seq=seq)
        return found

    def state(self, seq: int) -> str:
        """Return a row's state."""
        return str(self.row(seq)["state"])

    def events(self, seq: int) -> list[str]:
        """Return the names of a row's events, in order."""
        rows = self.sql(
            "SELECT name FROM {schema}.event WHERE seq = :seq ORDER BY event_id", seq=seq
        )
        return [row["name"] for row in rows]

    def divergence(self, seq: int) -> int:
        """Return the number of the latest divergence on record for a row."""
        (row,) = self.sql(
            "SELECT max(event_id) AS number FROM {schema}.event"
            " WHERE seq = :seq AND name = 'divergence'", seq=seq
        )  # fmt: skip
        return int(row["number"])

    # -- what planners and workers do --------------------------------------------------------------

    def put(
        self,
        intent_id: str,
        tool: ToolContract = KEYLESS,
        *,
        held_for: str | None = None,
        **args: Any,
    ) -> int:
        """Put one intent in a lane of its own and return its seq."""
        content = self.content(intent_id, tool, **args)
        draft = draft_of(content, Terms(held_for=held_for), intent_id=intent_id)
        (intent,) = self.run(lambda c: self.planner.put(c, [draft]))
        assert isinstance(intent, Intent), intent
        return intent.seq

    def content(self, intent_id: str, tool: ToolContract, **args: Any) -> Content:
        """Return a call of a tool in the intent's own lane."""
        return content_of(tool.tool, tool.version, intent_id, args)

    def supersede(
        self, intent_id: str, from_generation: int = 0, tool: ToolContract = KEYLESS, **args: Any
    ) -> int:
        """Supersede the live generation; without args by the same call. Returns the new seq."""
        content = self.content(intent_id, tool, **args) if args else None
        intent = self.run(
            lambda c: self.planner.supersede(
                c, Address("default", intent_id), from_generation, content
            )
        )
        assert isinstance(intent, Intent), intent
        return intent.seq

    def claim(self, lane: str, owner: uuid.UUID | None = None) -> Claimed:
        """Claim the one ready row of a lane."""
        (claimed,) = self.claims.claim(lane, 1, owner or self.owner, self.contracts)
        return claimed

    def send(self, lane: str, digest: str = "digest") -> Claimed:
        """Claim the ready row of a lane and write its send mark."""
        claimed = self.claim(lane)
        (marked,) = self.attempts.mark([MarkSend(claimed, digest)], self.owner)
        assert isinstance(marked, Marked), marked
        return replace(claimed, sends=claimed.sends + 1)

    def record(self, claim: Claimed, outcome: Outcome) -> Recorded:
        """Hand in an attempt's outcome; what it says after its first word is late evidence."""
        said = self._said.get((claim.seq, claim.fence), 0)
        self._said[claim.seq, claim.fence] = said + 1
        kind = "evidence" if said else "attempt"
        (recorded,) = self.attempts.record([Record(claim, outcome, kind, said)])
        return recorded

    # -- rows in a state ---------------------------------------------------------------------------

    def awaiting(self, intent_id: str, tool: ToolContract = KEYLESS, **args: Any) -> Claimed:
        """Return an attempt whose request may be on the wire."""
        self.put(intent_id, tool, **args)
        return self.send(intent_id)

    def unknown(
        self, intent_id: str, tool: ToolContract = KEYLESS, *, quiet: bool = True, **args: Any
    ) -> Claimed:
        """Return the attempt of an unknown row, quiet unless said otherwise."""
        claim = self.awaiting(intent_id, tool, **args)
        self.record(claim, Unknown("read timeout"))
        if quiet:
            self.advance(200)
        return claim

    def committed(
        self, intent_id: str, tool: ToolContract = KEYED, ref: str | None = "ref-1", **args: Any
    ) -> Claimed:
        """Return the attempt that committed a row."""
        claim = self.awaiting(intent_id, tool, **args)
        self.record(claim, Applied(ref))
        assert self.state(claim.seq) == State.COMMITTED
        return claim

    def false_failed(self, intent_id: str, tool: ToolContract = KEYLESS, **args: Any) -> Claimed:
        """Return the attempt of a row that a person wrongly called failed."""
        claim = self.unknown(intent_id, tool, **args)
        said = Said(claim.seq, "ops", "seen nothing", claim.fence)
        assert isinstance(self.people.not_landed(said), Stated)
        return claim

    # -- holds and compensations -------------------------------------------------------------------

    def hold_step(self, seq: int) -> tuple[str | None, str]:
        """Look at one held row; returns the edge and the reason."""
        answer = self.holds.hold_step(seq)
        return answer.edge, answer.reason

    def order(self, seq: int, plan: Any, **said: Any) -> Any:
        """Order a compensation in a transaction of its own."""
        values = {"actor": Actor.PLANNER, **said}
        return self.run(
            lambda c: order_compensation(
                c, self.statements, self.reader, seq=seq, plan=plan, **values
            )
        )

    def decide(self, seq: int, decision: GateDecision, fingerprint: str | None = None) -> Any:
        """Decide a gate for what its row says."""
        (gate,) = self.sql("SELECT fingerprint FROM {schema}.gate WHERE seq = :seq", seq=seq)
        return self.run(
            lambda c: decide_gate(
                c, self.statements, self.reader, seq=seq, decision=decision, actor=Actor.PERSON,
                actor_name="ops", reason="looked at it",
                fingerprint=fingerprint or gate["fingerprint"],
            )
        )  # fmt: skip


def seeded_outbox(databases: Databases) -> Iterator[Seeded]:
    """Give an outbox on a database of its own, for a module whose tests wipe it one by one."""
    url = databases.create(databases.template(migrate_template))
    seeded = Seeded(url)
    yield seeded
    seeded.database.dispose()
    databases.drop(url)
