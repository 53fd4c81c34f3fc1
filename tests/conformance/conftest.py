"""Gives each test the outbox in memory and the outbox on Postgres, one after the other."""

from collections.abc import Iterator

import pytest

from ..support.databases import Databases
from ..support.services import migrate_template
from .memory_outbox import MemoryOutbox
from .outboxes import Outbox
from .postgres_outbox import PostgresOutbox
from .story import Story


@pytest.fixture(scope="package")
def postgres_outbox(databases: Databases) -> Iterator[PostgresOutbox]:
    """Give one outbox on a database of this package; tests begin it anew."""
    url = databases.create(databases.template(migrate_template))
    outbox = PostgresOutbox(url)
    yield outbox
    outbox.close()
    databases.drop(url)


@pytest.fixture(params=["memory", "postgres"])
def outbox(request: pytest.FixtureRequest) -> Outbox:
    """Give an empty outbox of each kind."""
    if request.param == "memory":
        return MemoryOutbox()
    postgres: PostgresOutbox = request.getfixturevalue("postgres_outbox")
    postgres.begin()
    return postgres


@pytest.fixture
def story(outbox: Outbox) -> Story:
    """Give an empty outbox with a worker, and short ways to bring rows into any state."""
    return Story(outbox)
