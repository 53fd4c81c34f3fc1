"""`ackbox.migrations` from an application's own Alembic, in the transaction of its revision."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Engine, create_engine, inspect, make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from ackbox import migrations
from ackbox.outbox.errors import ConfigError

ENV = """
from alembic import context
context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
"""
REVISION = '''
"""The application's own tables, and its outbox."""

import sqlalchemy as sa
from alembic import op
from ackbox import migrations

revision = "a1"
down_revision = None


def upgrade():
    op.create_table("step", sa.Column("name", sa.Text))
    assert migrations.plan(op.get_bind(), schema="plans")[0].name == "0001"
    assert migrations.upgrade(op.get_bind(), schema="plans") == migrations.head()
    op.create_index("step_name", "step", ["name"])
'''


@pytest.fixture
def engine(empty_database_url: str) -> Iterator[Engine]:
    """Give an application's engine on an empty database."""
    engine = create_engine(empty_database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def application(tmp_path: Path) -> Config:
    """Give an application's Alembic folder with one revision."""
    versions = tmp_path / "versions"
    versions.mkdir()
    (tmp_path / "env.py").write_text(ENV)
    (versions / "a1.py").write_text(REVISION)
    configuration = Config()
    configuration.set_main_option("script_location", str(tmp_path))
    configuration.set_main_option("path_separator", "os")
    return configuration


def upgraded(engine: Engine, application: Config) -> None:
    """Run the application's migrations in one transaction."""
    with engine.begin() as connection:
        application.attributes["connection"] = connection
        command.upgrade(application, "head")


def test_an_application_migrates_its_outbox_with_its_own_tables(
    engine: Engine, application: Config
) -> None:
    """Ours runs inside the application's revision, which goes on with its own `op` afterwards."""
    upgraded(engine, application)
    found = inspect(engine)
    assert {"intent", "schema_version"} <= set(found.get_table_names("plans"))
    assert set(found.get_table_names()) == {"step", "alembic_version"}
    assert [one["name"] for one in found.get_indexes("step")] == ["step_name"]
    with engine.connect() as connection:
        assert migrations.plan(connection, schema="plans") == []


def test_a_revision_that_fails_takes_the_outbox_back_with_it(
    engine: Engine, application: Config, tmp_path: Path
) -> None:
    """Everything is the application's one transaction."""
    (tmp_path / "versions" / "a1.py").write_text(f"{REVISION}    1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        upgraded(engine, application)
    assert not inspect(engine).has_schema("plans")


def test_the_caller_s_settings_stand_afterwards(engine: Engine) -> None:
    """The bound on waits for locks is ours while we run, and the caller's again after it."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '1234ms'"))
        migrations.upgrade(connection)
        assert connection.scalar(text("SHOW lock_timeout")) == "1234ms"


def test_any_driver_of_postgres_will_do(empty_database_url: str) -> None:
    """The application's engine is its own: psycopg2, or asyncpg inside `run_sync`."""
    url = make_url(empty_database_url)
    engine = create_engine(url.set(drivername="postgresql+psycopg2"))
    with engine.begin() as connection:
        assert migrations.upgrade(connection, schema="one") == migrations.head()
    engine.dispose()
    assert asyncio.run(_upgraded_by_asyncpg(url)) == migrations.head()


async def _upgraded_by_asyncpg(url: URL) -> str:
    engine = create_async_engine(url.set(drivername="postgresql+asyncpg"))
    async with engine.begin() as connection:
        now: str = await connection.run_sync(lambda c: migrations.upgrade(c, schema="two"))
    async with engine.connect() as connection:
        assert await connection.run_sync(lambda c: migrations.plan(c, schema="two")) == []
    await engine.dispose()
    return now


def test_the_same_refusals_as_on_the_command_line(engine: Engine) -> None:
    """Another outbox's schema stays what it is."""
    with engine.begin() as connection:
        migrations.upgrade(connection, outbox="west")
    with engine.connect() as connection, pytest.raises(ConfigError, match="belongs to the outbox"):
        migrations.upgrade(connection, outbox="east")
