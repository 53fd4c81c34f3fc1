"""A real PgBouncer in transaction mode in front of a database of the tests.

It refuses to run as root, so that root starts it as an account that owns nothing. Few backends, so
that sessions do change hands; no support for prepared statements, as before its version 1.21.
"""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from sqlalchemy.engine import URL, make_url

from ackbox.app.embedded.account import choose_account

from .waiting import wait_until

BACKENDS = 4
PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
MISSING = "the command pgbouncer is missing (Debian: apt-get install pgbouncer)"
_PREPARES_SINCE = (1, 21)


@contextmanager
def pgbouncer(url: str, *ignored: str) -> Iterator[str]:
    """Run a pooler in front of the URL's server; yields the URL of its database through it.

    `ignored` are start-up parameters that it takes and drops, where it would refuse them.
    """
    account, port = choose_account(), _free_port()
    # Not below a folder of the test's own, which the other account could not enter.
    with TemporaryDirectory(prefix="pgbouncer-") as folder:
        place = Path(folder)
        config = place / "pgbouncer.ini"
        config.write_text(_configuration(make_url(url), port, ignored))
        for path in (place, config):
            account.give(path)
        options: dict[str, Any] = {"user": account.uid, "group": account.gid, "extra_groups": []}
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                [str(PROGRAM), str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", **(options if account.is_other else {}),
            )  # fmt: skip
        try:
            through = make_url(url).set(host="127.0.0.1", port=port, query={})
            wait_until(lambda: _answers(through, process, place / "log"), message="it answers")
            yield through.render_as_string(hide_password=False)
        finally:
            process.kill()
            process.wait()


def _configuration(target: URL, port: int, ignored: tuple[str, ...]) -> str:
    user = target.username or ""
    words = {"host": target.query.get("host") or target.host, "port": target.port,
             "user": user, "password": target.password}  # fmt: skip
    where = " ".join(f"{name}='{value}'" for name, value in words.items() if value)
    lines = [
        "[databases]", f"* = {where}", "[pgbouncer]", "listen_addr = 127.0.0.1",
        f"listen_port = {port}", "unix_socket_dir =", "auth_type = any", "pool_mode = transaction",
        f"default_pool_size = {BACKENDS}", f"ignore_startup_parameters = {','.join(ignored)}",
    ]  # fmt: skip
    if _version() >= _PREPARES_SINCE:
        lines.append("max_prepared_statements = 0")
    return "\n".join(lines) + "\n"


def _version() -> tuple[int, ...]:
    told = subprocess.run([str(PROGRAM), "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+)\.(\d+)", told.stdout)
    assert found is not None, told.stdout
    return tuple(int(number) for number in found.groups())


def _answers(url: URL, process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        psycopg.connect(plain, connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
