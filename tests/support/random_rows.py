"""Random rows, moves and surroundings, as the core's values and as rows in Postgres.

Times are drawn from few offsets around one fixed now, so that every limit is also met exactly.
What a store would compute for a guard (is the owner alive, is the tool paused) is computed here
a second time, in Python, from the drawn facts alone.
"""

import json
import random
import uuid
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from ackbox.outbox.contract import Key, KeyKind, ProbeStrength, ToolContract
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.model import (
    SETTLED_STATES,
    WITHDRAWABLE_STATES,
    GateDecision,
    Move,
    Row,
    State,
    World,
)
from ackbox.outbox.transitions import EDGES

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
OFFSETS = (-7200, -3600, -3599, -60, -20, -19, -1, 0, 1, 60, 3600)
TOOLS = ("tickets", "mail", "notes")
DOMAINS = ("stock", "prices")
NAMESPACES = ("default", "tenant")
MARGIN_SECONDS = int(ToolContract("any").margin_seconds)
_OPEN_ATTEMPT = (State.EXECUTING, State.AWAITING_ACK)
_OUT = (State.AWAITING_ACK, State.INDETERMINATE)


@dataclass
class Surroundings:
    """One drawn world: rows with what each was drawn with, and everything beside the rows."""

    random: random.Random
    contracts: list[ToolContract] = field(default_factory=list)
    workers: list[dict[str, Any]] = field(default_factory=list)
    paused: set[str] = field(default_factory=set)
    domains: dict[tuple[str, str], int] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    intents: dict[int, dict[str, Any]] = field(default_factory=dict)
    read_sets: dict[int, dict[str, int] | None] = field(default_factory=dict)
    gates: dict[int, GateDecision] = field(default_factory=dict)
    moves: dict[int, Move] = field(default_factory=dict)

    def chance(self, share: float) -> bool:
        """Draw whether something is so."""
        return self.random.random() < share

    def moment(self, share: float = 0.8) -> datetime | None:
        """Draw a time near now, or none."""
        if not self.chance(share):
            return None
        return NOW + timedelta(seconds=self.random.choice(OFFSETS))

    def world(self, seq: int) -> World:
        """Return what the guards may look at for one row."""
        row = self.rows[seq]
        contract = self.contracts[row.contract_id - 1] if row.contract_id else None
        # Without a stamped contract no statement knows the tool; only the pause of all counts.
        stopped = {"*"} | ({contract.tool} if contract else set())
        return World(
            now=NOW,
            contract=contract,
            owner_alive=any(w["worker_id"] == row.owner and alive(w) for w in self.workers),
            tool_served=self._served(seq),
            paused=bool(self.paused & stopped),
            read_set_holds=self._holds(seq),
            gate=self.gates.get(seq),
            step=self._step(seq),
            undo_committed=any(
                intent["compensates"] == seq and self.rows[other].state is State.COMMITTED
                for other, intent in self.intents.items()
            ),
        )

    def _served(self, seq: int) -> bool:
        name = f"{self.intents[seq]['tool']}@{self.intents[seq]['tool_version']}"
        serving = [one for one in self.workers if alive(one) and one["role"] == "worker"]
        lane = self.rows[seq].lane
        return any(
            name in worker["tools"] and (not worker["lanes"] or lane in worker["lanes"])
            for worker in serving
        )

    def _holds(self, seq: int) -> bool:
        namespace = self.intents[seq]["namespace"]
        read_set = self.read_sets[seq] or {}
        return all(
            self.domains.get((namespace, name), 0) == version for name, version in read_set.items()
        )

    def _step(self, seq: int) -> tuple[Row, ...]:
        key = self._step_key(seq)
        step = [row for other, row in self.rows.items() if self._step_key(other) == key]
        return tuple(sorted(step, key=lambda row: row.generation))

    def _step_key(self, seq: int) -> tuple[str, str]:
        return self.intents[seq]["namespace"], self.intents[seq]["intent_id"]


def alive(worker: dict[str, Any]) -> bool:
    """Return whether the worker beat less than `dead_after` ago and has not stopped."""
    limit = NOW - timedelta(seconds=DEFAULTS.dead_after_seconds)
    return worker["stopped_at"] is None and bool(worker["beat_at"] > limit)


def draw(seed: int, steps: int = 120) -> Surroundings:
    """Draw a world of about `steps` * 2.5 rows."""
    world = Surroundings(random.Random(seed))
    _draw_around(world)
    for number in range(steps):
        first = len(world.rows) + 1
        namespace = world.random.choice(NAMESPACES)
        for generation in range(world.random.randint(1, 4)):
            _draw_row(world, namespace, f"step-{number}", generation, first)
    for seq in list(world.rows):
        world.moves[seq] = _draw_move(world, seq)
    return world


def _draw_around(world: Surroundings) -> None:
    draw = world.random
    windows = [None, 0.0, *(float(MARGIN_SECONDS + seconds) for seconds in (19, 20, 60, 3600))]
    for _ in range(12):
        contract = ToolContract(
            tool=draw.choice(TOOLS),
            key=Key(draw.choice(list(KeyKind)), draw.choice(windows)),
            probe=draw.choice(list(ProbeStrength)),
            max_sends=draw.choice((1, 2, 20)),
            max_resends=draw.choice((1, 2, 6)),
            # Makes each declaration distinct, as the table wants them.
            max_probes=100 + len(world.contracts),
        )
        world.contracts.append(contract)
    for _ in range(6):
        world.workers.append(_draw_worker(world))
    world.paused = {name for name in TOOLS if world.chance(0.3)}
    if world.chance(0.25):
        world.paused.add("*")
    for namespace in NAMESPACES:
        for name in DOMAINS:
            if world.chance(0.7):
                world.domains[namespace, name] = draw.randint(0, 2)


def _draw_worker(world: Surroundings) -> dict[str, Any]:
    return {
        "worker_id": uuid.UUID(int=world.random.getrandbits(128), version=4),
        "role": "relay" if world.chance(0.3) else "worker",
        "tools": [f"{tool}@1" for tool in TOOLS if world.chance(0.3)],
        "lanes": world.random.choice(([], ["default", "other"], ["other"])),
        "beat_at": world.moment(1.0),
        "stopped_at": NOW if world.chance(0.3) else None,
    }


def _draw_row(
    world: Surroundings, namespace: str, intent_id: str, generation: int, first: int
) -> None:
    draw, seq = world.random, len(world.rows) + 1
    tool = draw.choice(TOOLS)
    same = world.chance(0.7)
    world.intents[seq] = {
        "seq": seq, "namespace": namespace, "intent_id": intent_id, "generation": generation,
        "tool": tool, "tool_version": draw.choice((1, 1, 2)),
        "fingerprint": "same" if same else draw.choice("ab"),
        "content": "same" if world.chance(0.8) else "other",
        "compensates": draw.randint(1, seq) if world.chance(0.5) else None,
    }  # fmt: skip
    world.read_sets[seq] = (
        {name: draw.randint(0, 1) for name in DOMAINS if world.chance(0.6)}
        if world.chance(0.6)
        else None
    )
    if world.chance(0.5):
        world.gates[seq] = draw.choice(list(GateDecision))
    world.rows[seq] = _draw_state(world, seq, generation, first)


def _draw_state(world: Surroundings, seq: int, generation: int, first: int) -> Row:
    draw = world.random
    state = _draw_settled(world) if world.chance(0.4) else draw.choice(list(State))
    row = Row(
        seq=seq,
        generation=generation,
        state=state,
        fence=draw.randint(0, 2),
        attempts=draw.randint(0, 3),
        sends=draw.randint(1 if state in _OUT else 0, 2),
        resends=draw.randint(0, 2),
        probes=draw.randint(0, 2),
        cut_offs=draw.randint(0, 2),
        suspect=world.chance(0.5),
        suspect_claims=draw.randint(0, DEFAULTS.max_claims),
        deadline=world.moment(0.4),
        owner=draw.choice(world.workers)["worker_id"] if world.chance(0.9) else None,
        request_digest=draw.choice((None, "x", "y")),
        handle=draw.choice((None, {"id": 1}, "text")),
        contract_id=_draw_contract(world, state),
        unresolved=world.chance(0.5),
        key_trusted=world.chance(0.7),
        in_doubt=world.chance(0.3),
        live=world.chance(0.5),
        wanted=world.chance(0.7),
        undo=draw.choice((None, None, 1)),
        adopted_from=draw.randint(first, seq - 1) if seq > first and world.chance(0.4) else None,
        fingerprint=world.intents[seq]["fingerprint"],
        content=world.intents[seq]["content"],
    )
    return replace(row, **_draw_times(world, row))


def _draw_settled(world: Surroundings) -> State:
    return world.random.choice(sorted(SETTLED_STATES))


def _draw_contract(world: Surroundings, state: State) -> int | None:
    """A row past its claim has its contract; one before it may have one of an earlier claim."""
    needs = state not in WITHDRAWABLE_STATES or state is State.EXECUTING
    return world.random.randint(1, len(world.contracts)) if needs or world.chance(0.5) else None


def _draw_times(world: Surroundings, row: Row) -> dict[str, Any]:
    """Draw times that the constraints of the state table allow."""
    settled = row.state in SETTLED_STATES
    parked = world.moment(0.5) if row.state is State.INDETERMINATE else None
    return {
        "ready_at": world.moment(1.0) if row.state is State.QUEUED else None,
        "hold_at": world.moment(1.0) if row.state is State.HELD else None,
        "ack_by": world.moment(1.0) if row.state in _OPEN_ATTEMPT else None,
        "withdraw_at": row.deadline if row.state in WITHDRAWABLE_STATES else None,
        "probe_at": world.moment(1.0) if row.state is State.INDETERMINATE else None,
        "parked_at": parked,
        "unknown_since": world.moment() if row.state is State.INDETERMINATE else None,
        "unready_since": world.moment(0.6),
        "first_sent_at": world.moment(0.8),
        "quiet_at": world.moment(0.8),
        "diverged_at": world.moment(0.4),
        "settled_at": world.moment(1.0) if settled else None,
        "observation_id": row.seq if settled or world.chance(0.3) else None,
        "bound_at": world.moment(0.4) if settled else None,
    }


def _draw_move(world: Surroundings, seq: int) -> Move:
    draw, row = world.random, world.rows[seq]
    return Move(
        edge=draw.choice(EDGES).name,
        seq=seq,
        from_state=row.state if world.chance(0.9) else draw.choice(list(State)),
        fence=draw.choice((None, row.fence, row.fence, row.fence - 1, row.fence + 1)),
        owner=row.owner if world.chance(0.7) else draw.choice(world.workers)["worker_id"],
        contract_id=row.contract_id,
        delay_seconds=draw.choice((0.0, 1.5, 300.0)),
        final=world.chance(0.3),
        transient=world.chance(0.6),
        key_store=world.chance(0.3),
        decisive=world.chance(0.5),
        unready=world.chance(0.5),
        alone=world.chance(0.5),
        digest=draw.choice((None, "x", "y")),
        handle=draw.choice((None, {"id": 2}, [1])),
        may_duplicate=world.chance(0.4),
        drop_handle=world.chance(0.4),
        divergence=row.diverged_at if world.chance(0.5) else world.moment(),
        adopted_from=_draw_adopted(world, seq),
    )


def _draw_adopted(world: Surroundings, seq: int) -> int | None:
    """Mostly an earlier generation that is committed, so that adopting is sometimes right."""
    own = world.rows[seq].generation
    earlier = [row.seq for row in world.world(seq).step if row.generation < own]
    committed = [other for other in earlier if world.rows[other].state is State.COMMITTED]
    if committed and world.chance(0.9):
        return world.random.choice(committed)
    return world.random.choice(earlier) if earlier and world.chance(0.5) else None


def store(connection: Connection, space: str, world: Surroundings) -> None:
    """Write the whole world into an empty schema, and stop its clock."""
    stopped = f"timestamptz ''{NOW.isoformat()}''"
    connection.exec_driver_sql(
        f"CREATE OR REPLACE FUNCTION {space}.clock_now() RETURNS timestamptz LANGUAGE sql"
        f" STABLE PARALLEL SAFE AS 'SELECT {stopped}'"
    )
    _store_around(connection, space, world)
    states = []
    for seq, row in world.rows.items():
        values = {one.name: getattr(row, one.name) for one in fields(Row)}
        states.append(values | {"read_set": world.read_sets[seq]})
    plain: dict[str, Any] = {"run_id": None, "args": {}, "lane": "default", "created_at": NOW}
    _insert(connection, f"{space}.intent", [plain | one for one in world.intents.values()])
    for state in states:
        del state["fingerprint"], state["content"]
    _insert(connection, f"{space}.intent_state", states)


def _store_around(connection: Connection, space: str, world: Surroundings) -> None:
    numbered = enumerate(world.contracts, 1)
    contracts = [{"contract_id": n} | _contract(one) for n, one in numbered]
    _insert(connection, f"{space}.contract", contracts)
    about = {"host": "h", "pid": 1, "started_at": NOW}
    _insert(connection, f"{space}.worker", [about | worker for worker in world.workers])
    who = {"actor": "person", "reason": "test", "created_at": NOW}
    _insert(connection, f"{space}.paused", [who | {"tool": tool} for tool in world.paused])
    domains = [
        {"namespace": namespace, "name": name, "version": version}
        for (namespace, name), version in world.domains.items()
    ]
    _insert(connection, f"{space}.domain", domains)
    opened = {"opened_at": NOW, "fingerprint": "f"}
    gates = [opened | {"seq": seq, "decision": d.value} for seq, d in world.gates.items()]
    _insert(connection, f"{space}.gate", gates)


def _contract(contract: ToolContract) -> dict[str, Any]:
    names = (
        "tool", "version", "settle_seconds", "ack_seconds", "margin_seconds", "max_sends",
        "max_resends", "max_probes", "park_after_seconds",
    )  # fmt: skip
    return {name: getattr(contract, name) for name in names} | {
        "digest": contract.digest(),
        "key_kind": contract.key.kind.value,
        "key_window_seconds": contract.key.window_seconds,
        "probe": contract.probe.value,
        "declared": contract.document(),
    }


def _insert(connection: Connection, table: str, rows: list[dict[str, Any]]) -> None:
    """Insert rows in one statement; JSON carries every type that the columns can read."""
    if not rows:
        return
    columns = ", ".join(rows[0])
    connection.execute(
        text(
            f"INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns}"
            f" FROM jsonb_populate_recordset(CAST(NULL AS {table}), CAST(:rows AS jsonb))"
        ),
        {"rows": json.dumps(rows, default=str)},
    )


def moves_document(moves: dict[int, Move]) -> str:
    """Return the moves as the edge statement takes them."""
    names = [one.name for one in fields(Move)]
    return json.dumps(
        [{name: getattr(move, name) for name in names} for move in moves.values()], default=str
    )
