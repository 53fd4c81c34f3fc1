"""The embedded PostgreSQL: initdb, command line, and the question that proves it is ours.

Durable as a real one (fsync and synchronous_commit on), since what runs on it must mean
something. May import psycopg besides what `server` may.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg import sql

from ...outbox.errors import ConfigError
from .binaries import USE_OWN_SERVERS
from .server import HOST, Answer, EmbeddedServer

ROLE = "ackbox"
DATABASE = "ackbox"
_ADMIN_DATABASE = "postgres"
_CONNECT_TIMEOUT_SECONDS = 2

_INITDB_OPTIONS = (
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--auth=scram-sha-256",
    "--no-instructions",
)
_SETTINGS = {
    "listen_addresses": HOST,
    "shared_buffers": "64MB",
    "max_connections": "200",
    "fsync": "on",
    "synchronous_commit": "on",
    # The role is called like the default schema: "$user" would hide a missing schema prefix.
    "search_path": "public",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # A failing statement's text and its details hold arguments: they stay out of the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    # The password is random and long, so slow hashing would buy nothing but slow connects.
    "scram_iterations": "1",
}


class PostgresServer(EmbeddedServer):
    """PostgreSQL of one data directory, on a loopback port and a unix socket."""

    name: ClassVar[str] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    # Fast shutdown, then immediate shutdown.
    stop_signals: ClassVar[tuple[signal.Signals, ...]] = (signal.SIGINT, signal.SIGQUIT)

    @property
    def url(self) -> str:
        """SQLAlchemy URL over TCP, password included: never print it."""
        return f"postgresql+psycopg://{ROLE}:{self._password}@{HOST}:{self.port}/{DATABASE}"

    @property
    def socket_url(self) -> str:
        """SQLAlchemy URL over the unix socket, password included: never print it."""
        return (
            f"postgresql+psycopg://{ROLE}:{self._password}@/{DATABASE}"
            f"?host={self.place.socket_dir}&port={self.port}"
        )

    @property
    def socket_dir(self) -> Path:
        """The folder of the unix socket."""
        return self.place.socket_dir

    def prepare(self) -> None:
        """Run initdb once; an interrupted one leaves nothing that looks finished."""
        version_file = self.folder / "PG_VERSION"
        if version_file.exists():
            self._require_same_major(version_file.read_text().strip())
            return
        unfinished = self.place.server_folder(f"{self.name}.new")
        shutil.rmtree(unfinished)
        unfinished = self.place.server_folder(f"{self.name}.new")
        self._initdb(unfinished)
        unfinished.rename(self.folder)

    def command(self, port: int) -> list[str | Path]:
        """Build the command line; settings stand there, so that a later start applies them."""
        settings = {**_SETTINGS, "unix_socket_directories": f'"{self.place.socket_dir}"'}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [self.place.postgres.postgres, "-D", self.folder, "-p", str(port), *options]

    def ask(self, port: int) -> Answer | None:
        """Ask for version and data folder; another server on this port is not believed."""
        question = "SELECT current_setting('data_directory'), current_setting('server_version')"
        try:
            with self._connect(port, _ADMIN_DATABASE) as connection:
                row = connection.execute(question).fetchone()
        except psycopg.Error:
            return None
        if row is None or os.path.realpath(row[0]) != os.path.realpath(self.folder):
            return None
        pid = self._postmaster_pid()
        return None if pid is None else Answer(pid, str(row[1]).split()[0])

    def ensure_database(self) -> None:
        """Create the database of ackbox when it is missing."""
        question = "SELECT 1 FROM pg_database WHERE datname = %s"
        with self._connect(self.port, _ADMIN_DATABASE) as connection:
            if connection.execute(question, [DATABASE]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def _connect(self, port: int, database: str) -> psycopg.Connection[tuple[str, ...]]:
        return psycopg.connect(
            host=HOST,
            port=port,
            user=ROLE,
            password=self._password,
            dbname=database,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_SECONDS,
            sslmode="disable",
        )

    def _postmaster_pid(self) -> int | None:
        try:
            return int((self.folder / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    def _initdb(self, folder: Path) -> None:
        password_file = folder.with_name(f"password.{secrets.token_hex(8)}")
        try:
            password_file.touch(mode=0o600)
            password_file.write_text(self._password)
            self.place.account.give(password_file)
            given = (f"--pwfile={password_file}", "-U", ROLE, "-c", "scram_iterations=1")
            initdb = self.place.postgres.initdb
            done = self.place.account.run([initdb, "-D", folder, *given, *_INITDB_OPTIONS])
        finally:
            password_file.unlink(missing_ok=True)
        if done.returncode != 0:
            raise ConfigError(
                f"initdb failed: {done.stderr.strip().splitlines()[-1:] or 'no message'}",
                next_step=f"free space or another ACKBOX_DATA_DIR, or {USE_OWN_SERVERS}",
            )

    def _require_same_major(self, data_version: str) -> None:
        shown = self.place.account.run([self.place.postgres.postgres, "--version"]).stdout
        if shown.split()[-1].split(".")[0] != data_version:
            raise ConfigError(
                f"{self.folder} holds data of PostgreSQL {data_version}, installed is {shown!r}",
                next_step="pg_dumpall with the older version, then start with an empty "
                "ACKBOX_DATA_DIR and load the dump",
            )
