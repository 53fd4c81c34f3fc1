"""Each guard and each effect says the same in Python and in SQL, on random rows in Postgres."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.effects import Effect
from ackbox.outbox.guards import GUARDS, NOW, Guard
from ackbox.outbox.model import Row, State
from ackbox.outbox.shell.database import Database
from ackbox.outbox.transitions import EDGES, Edge, set_sql

from ..support.random_rows import Surroundings, draw, moves_document, store

SEEDS = range(1, 7)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Give the database of the test, with room for long statements."""
    database = Database(database_url, statement_timeout_seconds=60)
    yield database
    database.dispose()


@cache
def drawn(seed: int) -> Surroundings:
    """Draw each world once; tests only read it."""
    return draw(seed)


def moves_table() -> str:
    """Return the `m` of the edge statement, so that both read a move in the same way."""
    source = (files("ackbox.outbox") / "sql" / "edge.sql").read_text(encoding="utf-8")
    start = source.index("jsonb_to_recordset")
    return source[start : source.index("), o AS")].strip()


def limits_of(statement: str) -> dict[str, Any]:
    """Return the limits that the statement takes as parameters."""
    return {name: value for name, value in asdict(DEFAULTS).items() if f":{name}" in statement}


def guards_in_sql(
    connection: Connection, world: Surroundings, guards: Iterable[Guard], space: str = "ackbox"
) -> dict[int, dict[str, bool]]:
    """Ask Postgres for every guard on every row with its move."""
    columns = ", ".join(f"coalesce(({one.sql}), false) AS {one.name}" for one in guards)
    statement = (
        f"SELECT s.seq AS row_seq, {columns} FROM {{schema}}.intent_state s"
        f" JOIN {moves_table()} ON m.seq = s.seq"
        " LEFT JOIN {schema}.contract c ON c.contract_id = s.contract_id"
    ).replace("{schema}", space)
    found = connection.execute(
        text(statement), {"moves": moves_document(world.moves), **limits_of(statement)}
    ).mappings()
    return {row["row_seq"]: dict(row) for row in found}


def disagreements(
    connection: Connection, world: Surroundings, guards: Iterable[Guard]
) -> tuple[list[str], set[tuple[str, bool]]]:
    """Return where the two forms differ, and which answers each guard has given."""
    guards = list(guards)
    told = guards_in_sql(connection, world, guards)
    differences, answers = [], set()
    for seq, row in world.rows.items():
        around = world.world(seq)
        for guard in guards:
            expected = guard.holds(row, world.moves[seq], around)
            answers.add((guard.name, expected))
            if told[seq][guard.name] is not expected:
                differences.append(f"{guard.name}: Python {expected} on {row} {world.moves[seq]}")
    return differences, answers


def test_every_guard_agrees_on_random_rows(database: Database) -> None:
    """No row of any drawn world is judged differently, and every guard was seen to say both."""
    answers: set[tuple[str, bool]] = set()
    for seed in SEEDS:
        differences, seen = _in_world(database, drawn(seed), list(GUARDS.values()))
        assert not differences, f"seed {seed}, {len(differences)} rows:\n" + differences[0]
        answers |= seen
    missing = {(name, answer) for name in GUARDS for answer in (True, False)} - answers
    assert not missing, "no drawn row makes these guards say so"


def test_a_wrong_fragment_is_caught(database: Database) -> None:
    """The comparison sees each guard whose SQL says the opposite."""
    wrong = [replace(guard, sql=f"NOT ({guard.sql})") for guard in GUARDS.values()]
    differences, _ = _in_world(database, drawn(1), wrong)
    caught = {difference.partition(":")[0] for difference in differences}
    assert caught == set(GUARDS)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("quiet", "<=", "<"),
        ("ready", "<=", "<"),
        ("wanted", "s.deadline >", "s.deadline >="),
        ("overdue", "w.beat_at >", "w.beat_at >="),
        ("in_key_window", f"{NOW} <", f"{NOW} <="),
        ("unready_too_long", "<=", "<"),
        ("own_fence", "s.fence = m.fence", "s.fence >= m.fence"),
        ("earlier_called_off", "other.generation <", "other.generation <="),
        ("read_set_holds", "d.namespace =", "d.namespace <>"),
    ],
)
def test_a_subtly_wrong_fragment_is_caught(
    database: Database, name: str, right: str, wrong: str
) -> None:
    """The drawn rows meet each limit exactly, so that one wrong comparison is enough."""
    assert right in GUARDS[name].sql
    planted = replace(GUARDS[name], sql=GUARDS[name].sql.replace(right, wrong))
    assert any(_in_world(database, drawn(seed), [planted])[0] for seed in SEEDS)


def _in_world(
    database: Database, world: Surroundings, guards: list[Guard]
) -> tuple[list[str], set[tuple[str, bool]]]:
    """Compare in a transaction that is rolled back, so that each world starts empty."""
    with database.engine.connect() as connection:
        store(connection, database.quoted_schema, world)
        found = disagreements(connection, world, guards)
        connection.rollback()
    return found


def changed(row: Row, edge: Edge, world: Surroundings) -> Row:
    """Return the row after the edge's effects, whatever its guards say."""
    changes: dict[str, Any] = {}
    for effect in edge.writes:  # each sees the row as it was, as a SET list does
        changes |= effect.change(row, world.moves[row.seq], world.world(row.seq))
    row = replace(row, **changes)
    return replace(row, observation_id=77) if "observed" in names_of(edge.effects) else row


def names_of(effects: Iterable[Effect]) -> set[str]:
    """Return the names of effects."""
    return {effect.name for effect in effects}


def rows_after(
    connection: Connection, world: Surroundings, edge: Edge, seqs: list[int], space: str
) -> dict[int, dict[str, Any]]:
    """Let Postgres perform the edge's SET list on the rows, its checks and trigger in force."""
    statement = (
        f"UPDATE {{schema}}.intent_state s SET {set_sql(edge)} FROM {moves_table()}"
        " LEFT JOIN {schema}.contract c ON c.contract_id = m.contract_id"
        " CROSS JOIN (SELECT CAST(77 AS bigint) AS observation_id) o"
        " WHERE s.seq = m.seq RETURNING s.*"
    ).replace("{schema}", space)
    moves = {seq: world.moves[seq] for seq in seqs}
    found = connection.execute(
        text(statement), {"moves": moves_document(moves), **limits_of(statement)}
    ).mappings()
    return {row["seq"]: dict(row) for row in found}


def effect_differences(database: Database, world: Surroundings, edge: Edge) -> list[str]:
    """Return where the two forms of an edge's effects differ, column by column."""
    seqs = [seq for seq, row in world.rows.items() if row.state in edge.sources]
    assert seqs, f"no drawn row can take {edge.name}"
    with database.engine.connect() as connection:
        store(connection, database.quoted_schema, world)
        told = rows_after(connection, world, edge, seqs, database.quoted_schema)
        connection.rollback()
    differences = []
    for seq in seqs:
        expected = changed(world.rows[seq], edge, world)
        for name in (one.name for one in fields(Row) if one.name in told[seq]):
            found = State(told[seq][name]) if name == "state" else told[seq][name]
            if found != getattr(expected, name):
                differences.append(f"{edge.name}.{name}: SQL {found!r}, Python {expected}")
    return differences


MOVING = [edge for edge in EDGES if edge.sources]


@pytest.mark.parametrize("edge", MOVING, ids=[edge.name for edge in MOVING])
def test_every_edge_writes_the_same(database: Database, edge: Edge) -> None:
    """What an edge leaves behind is the same in both forms and keeps every constraint."""
    for seed in SEEDS[:3]:
        differences = effect_differences(database, drawn(seed), edge)
        assert not differences, f"seed {seed}, {len(differences)} cells:\n" + differences[0]


def test_a_wrong_effect_is_caught(database: Database) -> None:
    """The comparison sees an effect whose SQL forgets a part."""
    edge = next(edge for edge in EDGES if edge.name == "lapse")
    (suspected,) = edge.effects
    planted = replace(suspected, sql={**suspected.sql, "suspect": "s.suspect"})
    assert effect_differences(database, drawn(1), replace(edge, effects=(planted,)))
