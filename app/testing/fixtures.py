"""Fixtures of pytest for an application's tests; opt-in, and every name begins with `ackbox_`.

Decides where servers come from: embedded ones, one pair for each process of a run, unless a
conftest overrides `ackbox_server_url`. Composition; the only module here that needs pytest.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from ...outbox.shell.migrate import upgrade
from ..embedded import EmbeddedServices
from .bus import MemoryBus
from .real_bus import SCHEMA, EmbeddedBus, clean_schema

MakeBus = Callable[..., MemoryBus]
"""What `ackbox_memory_bus` gives: it takes the arguments of MemoryBus."""


@pytest.fixture
def ackbox_memory_bus() -> Iterator[MakeBus]:
    """Give what makes a MemoryBus, with its arguments; all of them are closed after the test."""
    with ExitStack() as closing:

        def make(*args: Any, **options: Any) -> MemoryBus:
            return closing.enter_context(MemoryBus(*args, **options))

        yield make


@pytest.fixture(scope="session")
def ackbox_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServices]:
    """Give the run's PostgreSQL and Valkey; they are stopped and removed at its end."""
    folder = tmp_path_factory.mktemp("ackbox")
    with EmbeddedServices.start_or_attach(folder) as services:
        yield services
    place = services.place
    for one in {place.data_dir, place.base, place.socket_dir}:
        shutil.rmtree(one, ignore_errors=True)


@pytest.fixture(scope="session")
def ackbox_server_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of a server and a role that may create databases: override it for your own."""
    services: EmbeddedServices = request.getfixturevalue("ackbox_services")
    return services.database_url


@pytest.fixture(scope="session")
def ackbox_redis_url(ackbox_services: EmbeddedServices) -> str:
    """Give the URL of the embedded Valkey, for tests that start workers of their own."""
    return ackbox_services.redis_url


@pytest.fixture(scope="session")
def ackbox_database_url(ackbox_server_url: str) -> Iterator[str]:
    """Give a new database of this process of the run, with the schema; dropped at its end."""
    name = f"ackbox_{secrets.token_hex(6)}"
    _run(ackbox_server_url, "CREATE DATABASE {}", name)
    url = make_url(ackbox_server_url).set(drivername="postgresql+psycopg", database=name)
    try:
        shown = url.render_as_string(hide_password=False)
        upgrade(shown, schema=SCHEMA)
        yield shown
    finally:
        _run(ackbox_server_url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


@pytest.fixture
def ackbox_bus(ackbox_database_url: str) -> Iterator[EmbeddedBus]:
    """Give a real bus with an empty schema; the database's other tables are left alone."""
    clean_schema(ackbox_database_url)
    bus = EmbeddedBus(ackbox_database_url)
    yield bus
    bus.close()


def _run(server_url: str, command: str, name: str) -> None:
    url = make_url(server_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(command).format(sql.Identifier(name)))
