"""A psycopg connection as its owner set it up: nothing of it is changed, nothing disturbs us."""

import json
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader
from sqlalchemy import text

from ackbox.outbox.errors import ConfigError, Refused
from ackbox.outbox.model import State
from ackbox.outbox.shell.plain_connection import plain_connection
from ackbox.outbox.told import Committed

from ..support.callers import plain_url
from .planner_support import TOOL, World

ARGS = {"title": "VPN"}
OURS = text("SELECT CAST(:value AS jsonb) AS value, now() AS at, CAST(1 AS bigint) AS n")


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


@pytest.fixture
def driver(world: World) -> Iterator[psycopg.Connection[Any]]:
    """Give a connection that an application has set up in its own way."""
    with psycopg.connect(
        plain_url(world.url), row_factory=dict_row, cursor_factory=psycopg.ClientCursor
    ) as driver:
        driver.prepare_threshold = 0
        set_json_loads(lambda data: json.loads(data, parse_int=Decimal), driver)
        for name in ("timestamptz", "uuid", "int8", "bool"):
            driver.adapters.register_loader(name, TextLoader)
        yield driver


def theirs(driver: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return a row as the application reads it."""
    row: dict[str, Any] = driver.execute("SELECT '[1]'::jsonb AS j, 1::bigint AS n").fetchone()  # type: ignore[assignment]
    return row


def test_rows_are_read_our_way_and_the_owners_way_stays(
    world: World, driver: psycopg.Connection[Any]
) -> None:
    """Loaders, row factory, cursor class and prepared statements are each side's own."""
    before = theirs(driver)
    assert before == {"j": [Decimal(1)], "n": "1"}
    (row,) = plain_connection(driver).execute(OURS, {"value": '{"n": 1}'})
    assert type(row.value["n"]) is int
    assert row.at.tzinfo is not None
    assert row.n == 1
    done = world.to(State.COMMITTED, world.put())
    told = world.planner.get(done, on=driver)
    assert isinstance(told, Committed)
    assert told.result == {"id": done.seq}
    assert type(told.result["id"]) is int
    for number in range(8):
        world.planner.put(TOOL, ARGS, run_id="r", step=f"s{number}", on=driver)
    assert theirs(driver) == before


def test_a_block_of_the_drivers_own_is_a_transaction(
    world: World, driver: psycopg.Connection[Any]
) -> None:
    """In autocommit mode too: inside it a put is taken, and ends as the block ends."""
    driver.autocommit = True
    with pytest.raises(ConfigError, match="autocommit"):
        world.planner.put(TOOL, ARGS, run_id="r", step="s", on=driver)
    with suppress(LookupError), driver.transaction():
        world.planner.put(TOOL, ARGS, run_id="r", step="s", on=driver)
        raise LookupError
    assert world.planner.get(("r", "s")) is None
    with driver.transaction():
        world.planner.put(TOOL, ARGS, run_id="r", step="s", on=driver)
    assert world.planner.get(("r", "s")) is not None


def test_a_savepoint_of_the_drivers_own_is_kept(
    world: World, driver: psycopg.Connection[Any]
) -> None:
    """A refused batch inside a nested block undoes the batch, and neither block."""
    world.put("taken")
    with driver.transaction():
        with driver.transaction():
            world.planner.put(TOOL, ARGS, run_id="r", step="first", on=driver)
            drafts = [
                world.planner.draft(TOOL, ARGS, run_id="r", step="second"),
                world.planner.draft(TOOL, {"title": "other"}, run_id="r1", step="taken"),
            ]
            with pytest.raises(Refused, match="args_conflict"):
                world.planner.put_many(drafts, on=driver)
        world.planner.put(TOOL, ARGS, run_id="r", step="third", on=driver)
    steps = world.rows("SELECT step FROM {s}.intent WHERE run_id = 'r' ORDER BY seq")
    assert [row["step"] for row in steps] == ["first", "third"]


def test_a_pipeline_is_answered_in_order(world: World, driver: psycopg.Connection[Any]) -> None:
    """Statements of the owner that are still on their way come first."""
    with driver.pipeline():
        driver.execute("SELECT 1")
        assert world.planner.put(TOOL, ARGS, run_id="r", step="s", on=driver).created
        driver.execute("SELECT 2")
    driver.commit()
    assert world.planner.get(("r", "s")) is not None


def test_a_connection_that_breaks_in_a_batch_says_so(
    world: World, driver: psycopg.Connection[Any]
) -> None:
    """What the driver raised is not hidden by an attempt to undo anything."""
    driver.execute("SELECT 1")
    plain = plain_connection(driver)

    def ask() -> None:
        with plain.begin_nested():
            world.rows("SELECT pg_terminate_backend(:pid)", pid=driver.info.backend_pid)
            plain.execute(OURS, {"value": "{}"})

    with pytest.raises(psycopg.OperationalError):
        ask()
    assert driver.closed
