"""Every named statement is understood by Postgres in a schema of any name, with no search_path."""

from collections.abc import Iterator
from importlib.resources import files

import pytest
from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import ProgrammingError

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.migrate import EDGES_SCRIPT, upgrade
from ackbox.outbox.shell.statements import Statements
from ackbox.outbox.transitions import EDGES

ODD = 'Odd "Name" :me %s'
FOLDER = files("ackbox.outbox") / "sql"
# edge.sql is rendered for each edge; the edges' script is not one statement.
NAMES = sorted(
    one.name.removesuffix(".sql")
    for one in FOLDER.iterdir()
    if one.name.endswith(".sql") and one.name not in ("edge.sql", EDGES_SCRIPT)
)
MOVING = [edge.name for edge in EDGES if edge.sources]


@pytest.fixture
def connection(empty_database_url: str) -> Iterator[Connection]:
    """Give a connection to a database whose only schema of ackbox has an odd name."""
    upgrade(empty_database_url, schema=ODD)
    database = Database(empty_database_url)
    with database.engine.connect() as connection:
        connection.execute(text("SET search_path TO ''"))
        yield connection
    database.dispose()


def explain(connection: Connection, clause: TextClause) -> None:
    """Let Postgres parse, analyse and plan a statement, without running it."""
    question = text(f"EXPLAIN {clause.text}")
    connection.execute(question, dict.fromkeys(question._bindparams))


def test_every_named_statement_is_understood(connection: Connection) -> None:
    """No name lacks its schema, no column is misspelt, no parameter lacks a type."""
    statements = Statements(ODD, DEFAULTS)
    for name in NAMES:
        explain(connection, statements.named(name)[0])


def test_every_edge_is_understood(connection: Connection) -> None:
    """Each edge's condition and SET list make one statement that Postgres accepts."""
    statements = Statements(ODD, DEFAULTS)
    for name in MOVING:
        explain(connection, statements.edge(name)[0])


@pytest.mark.parametrize("name", [*NAMES, "edge"])
def test_every_statement_has_its_header(name: str) -> None:
    """A file says its purpose, the edges it performs, and what zero rows mean."""
    lines = (FOLDER / f"{name}.sql").read_text(encoding="utf-8").splitlines()
    words = [line.partition(":")[0] for line in lines if line.startswith("-- ")]
    parts = ["-- purpose", "-- edges", "-- zero rows"]
    assert [word for word in words if word in parts] == parts


def test_a_name_without_its_schema_is_caught(connection: Connection) -> None:
    """Planted: a statement that relies on the search path is not understood."""
    with pytest.raises(ProgrammingError, match="does not exist"):
        explain(connection, text("SELECT seq FROM intent_state"))
