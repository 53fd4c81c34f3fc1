"""Fixtures for real services; what they come from is decided in `support.services`."""

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from sqlalchemy.engine import make_url

from ackbox.app.embedded import EmbeddedServices
from ackbox.outbox.errors import AckboxError

from .support.databases import Databases
from .support.services import (
    Services,
    migrate_template,
    own_services,
    pristine_data,
    remove_files,
    seed,
    shared_services,
    stop_left_behind,
    unavailable,
)

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
# Database 0 of a server that somebody lent us is never flushed.
_REDIS_NUMBERS = range(1, 16)


@pytest.fixture(scope="session")
def services_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder by which all workers of this run find the shared services."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder / "services"


@pytest.fixture(scope="session")
def services(services_folder: Path) -> Iterator[Services]:
    """Give the services of this run, shared by all its workers."""
    stop_left_behind(services_folder.parent.parent)
    with shared_services(services_folder) as shared:
        yield shared


@pytest.fixture(scope="session")
def postgres_admin_url(services: Services) -> str:
    """Give the URL of a role that may create databases on the shared server."""
    return services.postgres_url


@pytest.fixture(scope="session")
def databases(services: Services, postgres_admin_url: str, services_folder: Path) -> Databases:
    """Give the maker of databases of this worker."""
    databases = Databases(postgres_admin_url, services.run, _WORKER, services_folder)
    try:
        databases.check()
    except psycopg.OperationalError:
        unavailable("the server at ACKBOX_TEST_POSTGRES_URL does not answer")
    return databases


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """Give a new database without any schema."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """Give a new database with the newest schema of ackbox."""
    url = databases.create(databases.template(migrate_template))
    yield url
    databases.drop(url)


@pytest.fixture
def redis_url(services: Services) -> str:
    """Give an empty Redis database that no other worker of this run uses."""
    index = int(_WORKER.removeprefix("gw"))
    if index >= len(_REDIS_NUMBERS):
        pytest.fail(f"a run has Redis databases for {len(_REDIS_NUMBERS)} workers only")
    url = make_url(services.redis_url).set(database=str(_REDIS_NUMBERS[index]))
    text = url.render_as_string(hide_password=False)
    with redis.Redis.from_url(text) as client:
        client.flushdb()
    return text


@pytest.fixture(scope="session")
def pristine_data_dir(services: Services, services_folder: Path) -> Path:
    """Give a data directory to copy; the shared services' end removes it."""
    try:
        return pristine_data(services_folder)
    except AckboxError as error:
        unavailable(str(error))


@pytest.fixture
def private_services(tmp_path: Path, pristine_data_dir: Path) -> Iterator[EmbeddedServices]:
    """Give servers of the test's own, to be killed, stopped, filled and restarted."""
    with own_services(tmp_path / "private", pristine_data_dir) as services:
        yield services


@pytest.fixture
def private_database_url(private_services: EmbeddedServices) -> str:
    """Give the database of the private server, with the newest schema of ackbox."""
    migrate_template(private_services.database_url)
    return private_services.database_url


@pytest.fixture
def data_dir(tmp_path: Path, pristine_data_dir: Path) -> Iterator[Path]:
    """Give a data directory whose servers are gone afterwards, whatever the test did."""
    folder = tmp_path / "data"
    seed(folder, pristine_data_dir)
    yield folder
    if folder.exists():
        with EmbeddedServices.start_or_attach(folder) as services:
            if not services.is_owner:
                pytest.fail("a test has left an owner behind")
        remove_files(services)
