"""What the tests of the embedded servers share: another process that uses them, and questions."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis
from sqlalchemy import create_engine, text

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.identity import ProcessIdentity

# Another process that uses the servers: says what it is, then lives until its input ends.
USER = """
import sys
from ackbox.app.embedded import EmbeddedServices
with EmbeddedServices.start_or_attach(sys.argv[1]) as services:
    print("owner" if services.is_owner else "user", services.postgres.port, flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_process(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `USER` with warnings as errors; yields the process and the role it got."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USER, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split(" ")[0]
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def processes_of(services: EmbeddedServices) -> list[ProcessIdentity]:
    return [server.record.process for server in services.servers]


def scalar(url: str, query: str) -> str:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            return str(connection.execute(text(query)).scalar())
    finally:
        engine.dispose()


def driver_url(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


def keep_something(services: EmbeddedServices) -> None:
    with psycopg.connect(driver_url(services.database_url)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS x")
    with redis.Redis.from_url(services.redis_url) as client:
        client.set("kept", "7")


def kept(services: EmbeddedServices) -> tuple[str, str]:
    with redis.Redis.from_url(services.redis_url, decode_responses=True) as client:
        return scalar(services.database_url, "SELECT x FROM kept"), str(client.get("kept"))
