"""Fixtures of the acceptance tests: the nursery, the provider, a shared bus and buses of one's own.

The shared bus has one process with every background role and no worker: each test brings its own
workers and lanes, and what it does to them is no other test's business.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.app.embedded import EmbeddedServices

from ..integration.valkey_process import ValkeyProcess
from ..support.databases import Databases
from ..support.services import migrate_template
from .support import Bus, opened
from .support_children import Nursery, Provider


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Give the process that starts all others."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    """Give the fake provider, shared by all tests: keys are theirs alone."""
    provider = Provider()
    yield provider
    provider.close()


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyProcess]:
    """Give the Redis of the shared bus, which no test may hurt."""
    valkey = ValkeyProcess(tmp_path_factory.mktemp("valkey"))
    valkey.start()
    yield valkey
    valkey.close()


@pytest.fixture(scope="session")
def shared_bus(
    nursery: Nursery,
    provider: Provider,
    databases: Databases,
    shared_redis: ValkeyProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Bus]:
    """Give the bus that undisturbing tests share, with its background roles running."""
    url = databases.create(databases.template(migrate_template))
    folder = tmp_path_factory.mktemp("bus")
    with opened(Bus(nursery, provider, url, shared_redis.url, folder)) as bus:
        bus.roles()
        yield bus
    databases.drop(url)


@pytest.fixture
def bus(shared_bus: Bus) -> Iterator[Bus]:
    """Give the shared bus; what a test has started on it ends with the test."""
    before = len(shared_bus.children)
    yield shared_bus
    for child in shared_bus.children[before:]:
        child.kill()


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyProcess]:
    """Give a Redis of the test's own, to be killed, emptied and filled."""
    folder = tmp_path / "valkey"
    folder.mkdir()
    valkey = ValkeyProcess(folder)
    valkey.start()
    yield valkey
    valkey.close()


@pytest.fixture
def own_bus(
    nursery: Nursery, provider: Provider, database_url: str, valkey: ValkeyProcess, tmp_path: Path
) -> Iterator[Bus]:
    """Give a bus of the test's own, without any process yet."""
    folder = tmp_path / "bus"
    folder.mkdir()
    with opened(Bus(nursery, provider, database_url, valkey.url, folder)) as bus:
        yield bus


@pytest.fixture
def fragile_bus(
    nursery: Nursery,
    provider: Provider,
    private_services: EmbeddedServices,
    private_database_url: str,
    valkey: ValkeyProcess,
    tmp_path: Path,
) -> Iterator[Bus]:
    """Give a bus whose PostgreSQL is the test's own too."""
    folder = tmp_path / "bus"
    folder.mkdir()
    with opened(Bus(nursery, provider, private_database_url, valkey.url, folder)) as bus:
        yield bus
