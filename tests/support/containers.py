"""Services from a Docker engine, for those who ask for them (ACKBOX_TEST_SERVICES=testcontainers).

Images are settings with the public default, so that stand-ins can be used.
"""

import gc
import os
import warnings
from collections.abc import Iterable

import docker  # type: ignore[import-untyped]
from docker.errors import DockerException, NotFound  # type: ignore[import-untyped]
from testcontainers.community.postgres import PostgresContainer
from testcontainers.community.redis import RedisContainer
from testcontainers.core.config import testcontainers_config

POSTGRES_IMAGE = os.environ.get("ACKBOX_POSTGRES_IMAGE", "postgres:18")
REDIS_IMAGE = os.environ.get("ACKBOX_REDIS_IMAGE", "redis:8")

Started = tuple[str, str, tuple[str, ...]]


def start_containers() -> Started | str:
    """Start both; returns Postgres URL, Redis URL and container ids, or why it cannot be."""
    # The reaper container would end them with the worker that started them; the last worker of
    # the run ends them instead.
    testcontainers_config.ryuk_disabled = True
    try:
        postgres = PostgresContainer(POSTGRES_IMAGE, driver=None).start()
        redis = RedisContainer(REDIS_IMAGE).start()
    except DockerException as error:
        reason = f"no Docker engine answers ({type(error).__name__})"
    else:
        return _describe(postgres, redis)
    _collect_leaked_sockets()
    return reason


def _describe(postgres: PostgresContainer, redis: RedisContainer) -> Started:
    address = f"{redis.get_container_host_ip()}:{redis.get_exposed_port(redis.port)}"
    ids = tuple(str(started.get_wrapped_container().id) for started in (postgres, redis))
    return postgres.get_connection_url(), f"redis://{address}/0", ids


def _collect_leaked_sockets() -> None:
    """Collect the socket that the Docker client leaves open when nobody answers it.

    Left to chance, its warning would fail whichever test runs when it is collected.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def stop_containers(ids: Iterable[str]) -> None:
    """Remove containers by id; what is gone already is fine."""
    for container_id in ids:
        client = docker.from_env()
        try:
            client.containers.get(container_id).remove(force=True, v=True)
        except NotFound:
            continue
        finally:
            client.close()
