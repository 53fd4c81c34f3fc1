"""Postgres itself refuses what the table of edges and the state's constraints do not allow."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pytest
from psycopg.errors import CheckViolation
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ackbox.outbox.model import SETTLED_STATES, State
from ackbox.outbox.render import edges_sql
from ackbox.outbox.shell.database import Database
from ackbox.outbox.transitions import EDGES, legal_pairs

ILLEGAL_EDGE = "AB001"
PAIRS = list(product(State, State))


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    """Give one open transaction on a migrated database."""
    database = Database(database_url)
    with database.engine.connect() as connection:
        yield connection
    database.dispose()


def columns_of(state: State) -> dict[str, str]:
    """Return the columns that belong to a state, as SQL, so that its constraints hold."""
    moment = "statement_timestamp()"
    return {
        "state": f"'{state.value}'",
        "ready_at": moment if state is State.QUEUED else "NULL",
        "hold_at": moment if state is State.HELD else "NULL",
        "ack_by": moment if state in (State.EXECUTING, State.AWAITING_ACK) else "NULL",
        "probe_at": moment if state is State.INDETERMINATE else "NULL",
        "sends": "1",
        "observation_id": "1" if state in SETTLED_STATES else "NULL",
    }


def insert(
    connection: Connection, seq: int, state: State, other: Mapping[str, str] | None = None
) -> None:
    """Insert a row in a state; `other` overrides columns with SQL expressions."""
    columns = {"seq": str(seq), "generation": "0", "lane": "'default'"} | columns_of(state)
    columns |= other or {}
    connection.execute(
        text(
            f"INSERT INTO ackbox.intent_state ({', '.join(columns)})"
            f" VALUES ({', '.join(columns.values())})"
        )
    )


def move(connection: Connection, seq: int, target: State) -> None:
    """Update a row into a state, with the columns that belong to it."""
    changes = ", ".join(f"{name} = {value}" for name, value in columns_of(target).items())
    connection.execute(text(f"UPDATE ackbox.intent_state SET {changes} WHERE seq = {seq}"))


def outcome_of(connection: Connection, source: State, target: State) -> str | None:
    """Try one pair on a new row and return the SQLSTATE of the refusal, None where it passed."""
    savepoint = connection.begin_nested()
    insert(connection, 1, source)
    try:
        move(connection, 1, target)
    except DBAPIError as error:
        state: str | None = getattr(error.orig, "sqlstate", None)
        return state
    finally:
        savepoint.rollback()
    return None


def outcomes(connection: Connection) -> dict[tuple[State, State], str | None]:
    """Try every ordered pair."""
    return {pair: outcome_of(connection, *pair) for pair in PAIRS}


def test_every_ordered_pair_is_an_edge_or_refused(connection: Connection) -> None:
    """Of 81 pairs exactly the legal ones pass; a write that keeps the state is no move."""
    expected = {
        (source, target): None
        if source is target or (source, target) in legal_pairs()
        else ILLEGAL_EDGE
        for source, target in PAIRS
    }
    assert outcomes(connection) == expected


def test_a_table_without_claims_refuses_claims(connection: Connection) -> None:
    """Planted: one edge less in the table is one pair less in Postgres."""
    before = outcomes(connection)
    fewer = [edge for edge in EDGES if edge.name != "claim"]
    connection.exec_driver_sql(
        edges_sql(fewer).replace("{schema}", "ackbox"), execution_options={"no_parameters": True}
    )
    changed = {pair for pair, state in outcomes(connection).items() if state != before[pair]}
    assert changed == {(State.QUEUED, State.EXECUTING)}


def test_the_trigger_sees_writes_of_many_rows(connection: Connection) -> None:
    """One illegal row in a batch undoes the whole statement."""
    insert(connection, 1, State.QUEUED)
    insert(connection, 2, State.FAILED)
    savepoint = connection.begin_nested()
    with pytest.raises(DBAPIError, match="no edge from failed to executing"):
        connection.execute(
            text(
                "UPDATE ackbox.intent_state SET state = 'executing', ready_at = NULL,"
                " ack_by = statement_timestamp()"
            )
        )
    savepoint.rollback()
    states = connection.scalars(text("SELECT state FROM ackbox.intent_state ORDER BY seq")).all()
    assert states == ["queued", "failed"]


# Each row breaks exactly the constraint that it names.
VIOLATIONS: list[tuple[str, State, dict[str, str]]] = [
    ("ready_at_means_queued", State.QUEUED, {"ready_at": "NULL"}),
    ("ready_at_means_queued", State.COMMITTED, {"ready_at": "statement_timestamp()"}),
    ("hold_at_means_held", State.HELD, {"hold_at": "NULL"}),
    ("hold_at_means_held", State.QUEUED, {"hold_at": "statement_timestamp()"}),
    ("ack_by_means_open_attempt", State.EXECUTING, {"ack_by": "NULL"}),
    ("ack_by_means_open_attempt", State.AWAITING_ACK, {"ack_by": "NULL"}),
    ("ack_by_means_open_attempt", State.INDETERMINATE, {"ack_by": "statement_timestamp()"}),
    ("indeterminate_is_watched", State.INDETERMINATE, {"probe_at": "NULL"}),
    ("out_means_marked", State.AWAITING_ACK, {"sends": "0"}),
    ("out_means_marked", State.INDETERMINATE, {"sends": "0"}),
    ("settled_has_observation", State.COMMITTED, {"observation_id": "NULL"}),
    ("settled_has_observation", State.FAILED, {"observation_id": "NULL"}),
    ("settled_has_observation", State.CANCELLED, {"observation_id": "NULL"}),
    ("settled_has_observation", State.COMPENSATED, {"observation_id": "NULL"}),
    ("bound_is_settled", State.QUEUED, {"bound_at": "statement_timestamp()"}),
    ("state_is_known", State.COMMITTED, {"state": "'done'"}),
]


@pytest.mark.parametrize(("constraint", "state", "broken"), VIOLATIONS)
def test_each_constraint_refuses_its_violation(
    connection: Connection, constraint: str, state: State, broken: dict[str, str]
) -> None:
    """A row that contradicts its state cannot be stored, and the constraint's name says why."""
    insert(connection, 1, state)
    with pytest.raises(DBAPIError) as refused:
        insert(connection, 2, state, broken)
    assert isinstance(refused.value.orig, CheckViolation)
    assert refused.value.orig.diag.constraint_name == constraint


def test_every_constraint_has_a_planted_violation(connection: Connection) -> None:
    """The list above names each check of the state table."""
    names: Any = connection.scalars(
        text(
            "SELECT conname FROM pg_constraint"
            " WHERE conrelid = CAST('ackbox.intent_state' AS regclass) AND contype = 'c'"
        )
    )
    assert set(names) == {constraint for constraint, _, _ in VIOLATIONS}
