"""Which database a planner works on, and what it refuses to work on."""

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from ackbox.outbox.errors import ConfigError, Refused
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.migrate import upgrade
from ackbox.planner.shell.planner import Planner

from ..support.callers import KINDS, Caller, plain_url
from ..support.databases import Databases

TOOL = "tickets.create"
ARGS = {"title": "VPN"}
ODD = "Ünö x\"y:z %s '{}'"


@pytest.fixture
def other_url(databases: Databases) -> Iterator[str]:
    """Give a second database, with an outbox of the same name that is another one all the same."""
    url = databases.create()
    upgrade(url)
    yield url
    databases.drop(url)


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement."""
    with psycopg.connect(plain_url(url)) as connection:
        return list(connection.execute(statement.encode()))


def change(url: str, statement: str) -> None:
    """Change a database as no part of ackbox would."""
    with psycopg.connect(plain_url(url)) as connection:
        connection.execute(statement.encode())


async def put(kind: str, url: str, database: Database, **options: Any) -> Any:
    """Put one step in a transaction of the kind on a URL, and commit it."""
    async with Caller(kind, url) as caller:
        planner = caller.planner(database, **options)
        try:
            intent = await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            await caller.commit()
            return intent
        finally:
            await caller.rollback()
            await caller.close_planner(planner)


@pytest.mark.parametrize("kind", KINDS)
def test_a_put_into_another_database_is_refused(
    database_url: str, other_url: str, kind: str
) -> None:
    """The second database by accident: same names, other outbox; nothing is stored in either."""
    with pytest.raises(Refused) as refused:
        asyncio.run(put(kind, other_url, Database(database_url)))
    assert refused.value.code == "other_outbox"
    assert "another database" in refused.value.what
    for url in (database_url, other_url):
        assert rows(url, "SELECT * FROM ackbox.intent") == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_schema_name_works_on_every_driver(empty_database_url: str, kind: str) -> None:
    """Quotes, colons, percents, braces and blanks in the name are nothing special."""
    upgrade(empty_database_url, schema=ODD)
    database = Database(empty_database_url, schema=ODD)
    assert asyncio.run(put(kind, empty_database_url, database)).created
    quoted = ODD.replace('"', '""')
    assert rows(empty_database_url, f'SELECT step FROM "{quoted}".intent') == [("s",)]


@pytest.mark.parametrize("kind", ["connection+psycopg", "async_session+asyncpg", "plain"])
def test_a_refusal_leaves_the_callers_transaction_usable(
    database_url: str, empty_database_url: str, kind: str
) -> None:
    """Also where the schema is missing altogether: nothing was asked that fails."""

    async def body() -> None:
        async with Caller(kind, empty_database_url) as caller:
            planner = caller.planner(Database(database_url))
            await caller.execute("CREATE TABLE own (n integer)")
            with pytest.raises(ConfigError) as error:
                await caller.ask(planner.put, TOOL, ARGS, run_id="r", step="s")
            assert error.value.next_step == "ackbox migrate"
            await caller.insert(1)
            await caller.commit()
            await caller.close_planner(planner)

    asyncio.run(body())
    assert rows(empty_database_url, "SELECT n FROM own") == [(1,)]


@pytest.mark.parametrize(("version", "said"), [("0001", "older"), ("9999", "newer")])
def test_an_unfit_schema_is_named_at_the_first_put(
    database_url: str, version: str, said: str
) -> None:
    """On a caller's connection and on our own; migrated, the same planner works."""
    fits = rows(database_url, "SELECT version_num FROM ackbox.schema_version")[0][0]
    works_from = "SELECT value FROM ackbox.meta WHERE name = 'works_from'"
    fits_from = rows(database_url, works_from)[0][0]

    def become(revision: str, oldest: str) -> None:
        change(database_url, f"UPDATE ackbox.schema_version SET version_num = '{revision}'")
        change(database_url, f"UPDATE ackbox.meta SET value = '{oldest}' WHERE name = 'works_from'")

    become(version, version)
    with Planner(Database(database_url)) as planner:
        with pytest.raises(ConfigError, match=said):
            planner.put(TOOL, ARGS, run_id="r", step="s")
        with pytest.raises(ConfigError, match=said):
            planner.wait("x", timeout_seconds=60)
        with pytest.raises(ConfigError, match=said):
            asyncio.run(put("plain", database_url, Database(database_url)))
        become(fits, fits_from)
        assert planner.put(TOOL, ARGS, run_id="r", step="s").created


def test_the_database_is_asked_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once a put: the first one looks, on each pool."""
    from ackbox.outbox.shell import fitting, migrate

    looked: list[str] = []
    look = migrate.check

    def counted(*given: Any) -> None:
        looked.append("once")
        look(*given)

    monkeypatch.setattr(fitting, "check", counted)
    with Planner(Database(database_url)) as planner:
        for number in range(3):
            planner.put(TOOL, ARGS, run_id="own", step=f"s{number}")
        assert len(looked) == 1

        async def body() -> None:
            async with Caller("session+psycopg2", database_url) as caller:
                for number in range(3):
                    await caller.ask(planner.put, TOOL, ARGS, run_id="on", step=f"s{number}")
                    await caller.commit()

        asyncio.run(body())
    assert len(looked) == 2


def test_several_outboxes_in_one_process(database_url: str, other_url: str) -> None:
    """Two schemas of one database and one of another: each planner sees its own steps."""
    upgrade(database_url, schema="second", outbox="second")
    places = [
        {"url": database_url},
        {"url": database_url, "schema": "second", "outbox": "second"},
        {"url": other_url},
    ]
    planners = [Planner.connect(**place) for place in places]  # type: ignore[arg-type]
    for number, planner in enumerate(planners):
        planner.put(TOOL, {"n": number}, run_id="r", step="shared")
        planner.put(TOOL, {"n": number}, run_id="r", step=f"s{number}")
        assert planner.wait(("r", "shared"), timeout_seconds=0).word == "in_flight"
    for number, planner in enumerate(planners):
        seen = [planner.get(("r", f"s{other}")) is not None for other in range(3)]
        assert seen == [other == number for other in range(3)]
        planner.close()


def test_a_planner_of_another_name_is_told_whose_schema_it_is(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By argument or by ACKBOX_OUTBOX; the name is taken as it is where none was given."""
    monkeypatch.setenv("ACKBOX_OUTBOX", "billing")
    with Planner.connect(database_url) as planner:
        with pytest.raises(ConfigError, match="billing") as error:
            planner.put(TOOL, ARGS, run_id="r", step="s")
        assert error.value.code == "other_outbox"
    with Planner.connect(database_url, outbox="default") as planner:
        assert planner.put(TOOL, ARGS, run_id="r", step="s").created
    with Planner(Database(database_url), outbox=None) as planner:
        assert planner.get(("r", "s")) is not None


def test_a_put_needs_the_callers_database_only(database_url: str) -> None:
    """Ours is down: the intent is stored with the caller's rows, whose outbox's name is checked."""
    down = Database("postgresql://nobody@127.0.0.1:1/nothing")
    assert asyncio.run(put("connection+psycopg", database_url, down)).created
    with pytest.raises(Refused, match="other_outbox"):
        asyncio.run(put("plain", database_url, down, outbox="billing"))
