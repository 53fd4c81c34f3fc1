"""The passes find their few rows among many settled ones without reading those."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ..support.databases import Databases
from ..support.seed import Seeded, seeded_outbox

SETTLED_ROWS = 20_000
PASSES: dict[str, dict[str, Any]] = {
    "find_held": {"row_limit": 50},
    "find_undone": {"row_limit": 50},
    "find_unknown": {"row_limit": 50},
    "gates_due": {"row_limit": 50},
    "unknowns": {"row_limit": 200, "namespace": None},
}


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give an outbox with many settled rows and a few others."""
    for seeded in seeded_outbox(databases):
        seeded.sql(
            "WITH n AS (INSERT INTO {schema}.intent (namespace, intent_id, generation, tool,"
            " tool_version, lane, args, fingerprint, content, created_at)"
            " SELECT 'default', 'old-' || i, 0, 't', 1, 'l', '{}', 'f', 'f', now()"
            " FROM generate_series(1, :rows) i RETURNING seq)"
            " INSERT INTO {schema}.intent_state (seq, generation, lane, state, observation_id,"
            " settled_at) SELECT seq, 0, 'l', 'committed', 1, now() FROM n", rows=SETTLED_ROWS
        )  # fmt: skip
        seeded.sql(
            "INSERT INTO {schema}.gate (seq, opened_at, fingerprint, decision)"
            " SELECT seq, now(), 'f', 'approved' FROM {schema}.intent"
        )
        seeded.sql(
            "INSERT INTO {schema}.observation (seq, fence, kind, number, outcome, document, actor,"
            " created_at) SELECT seq, 1, 'attempt', 0, 'applied', '{}', 'worker', now()"
            " FROM {schema}.intent"
        )
        seeded.sql(
            "INSERT INTO {schema}.event (at, seq, name, actor)"
            " SELECT now(), seq, 'put', 'planner' FROM {schema}.intent"
        )
        seeded.unknown("unknown")
        seeded.put("held", held_for="policy")
        seeded.sql("ANALYZE")
        yield seeded


def scanned(connection: Connection, seeded: Seeded, name: str) -> set[str]:
    """Return the large tables that a named statement's plan reads from end to end."""
    statement, limits = seeded.statements.named(name)
    plan = connection.execute(
        text(f"EXPLAIN (FORMAT JSON) {statement.text}"), {**limits, **PASSES[name]}
    ).scalar_one()
    found: set[str] = set()
    waiting = [plan[0]["Plan"]]
    while waiting:
        node = waiting.pop()
        waiting += node.get("Plans", [])
        if node["Node Type"] == "Seq Scan":
            found.add(node["Relation Name"])
    large = text("SELECT relname FROM pg_class WHERE relkind = 'r' AND reltuples > 1000")
    return found & set(connection.scalars(large))


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_reads_no_table_from_end_to_end(outbox: Seeded, name: str) -> None:
    """Partial indexes hold just the rows that somebody has to look at."""
    read = outbox.run(lambda connection: scanned(connection, outbox, name))
    assert read == set()
