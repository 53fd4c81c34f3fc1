"""PostgreSQL and Valkey of one data directory as one thing: started, shared, stopped.

Any number of processes may use them. The first starter owns them and alone stops them; a later
one attaches, or adopts them when their owner is gone. May import what the servers may.
"""

from __future__ import annotations

import os
import secrets
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from ...outbox.errors import ConfigError, StoreUnavailable
from .identity import ProcessIdentity
from .locks import exclusive
from .ownership import ExitHooks, Ownership
from .place import Place, choose_place, find_place
from .postgres import PostgresServer
from .server import EmbeddedServer
from .valkey import ValkeyServer

DEFAULT_DATA_DIR = Path(".ackbox")
_TURN_DEADLINE_SECONDS = 120.0


class EmbeddedServices:
    """A running pair of embedded servers; a context manager that stops them if it owns them."""

    def __init__(self, place: Place, password: str) -> None:
        """Describe the servers of a place; use `start_or_attach` or `attach` instead."""
        self.place = place
        self.postgres = PostgresServer(place, password)
        self.valkey = ValkeyServer(place, password)
        self._ownership = Ownership(place.data_dir)
        self._hooks = ExitHooks(self.stop)
        self._owner_pid: int | None = None

    @classmethod
    def start_or_attach(cls, data_dir: Path | str = DEFAULT_DATA_DIR) -> EmbeddedServices:
        """Use the servers of a data directory: attach, adopt or start them.

        Becomes their owner unless a living process is. Waits while another process starts them.
        Raises `ConfigError` when they cannot run here, `StoreUnavailable` when their owner lives
        but one of them does not answer.
        """
        place = choose_place(Path(data_dir))
        with _turn(place.data_dir):
            services = cls(place, _password(place))
            owner = services._ownership.owner()
            if owner is None:
                services._own()
            else:
                services._require_running(owner)
        return services

    @classmethod
    def attach(cls, data_dir: Path | str = DEFAULT_DATA_DIR) -> EmbeddedServices | None:
        """Use servers that already run for a data directory; None unless both answer."""
        place = find_place(Path(data_dir))
        if place is None or not cls.exist(data_dir):
            return None
        services = cls(place, _password(place))
        return services if all(server.is_running() for server in services.servers) else None

    @staticmethod
    def exist(data_dir: Path | str = DEFAULT_DATA_DIR) -> bool:
        """Return whether servers were started for a data directory before, running or not."""
        place = find_place(Path(data_dir))
        return place is not None and _password_file(place.data_dir).exists()

    @property
    def servers(self) -> tuple[EmbeddedServer, EmbeddedServer]:
        """Both servers, in the order in which they start."""
        return (self.postgres, self.valkey)

    @property
    def data_dir(self) -> Path:
        """The absolute data directory."""
        return self.place.data_dir

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL over TCP, password included: never print it."""
        return self.postgres.url

    @property
    def redis_url(self) -> str:
        """Redis URL of database 0, password included: never print it."""
        return self.valkey.url

    @property
    def notice(self) -> str | None:
        """One line that a person must see, when the files are not in the data directory."""
        return self.place.notice

    @property
    def is_owner(self) -> bool:
        """Say whether this process stops the servers."""
        return self._owner_pid == os.getpid()

    def __repr__(self) -> str:
        """Name the folder and the role; never a password."""
        return f"<EmbeddedServices {self.data_dir} {'owner' if self.is_owner else 'user'}>"

    def __enter__(self) -> EmbeddedServices:
        """Use the servers until the end of the block."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the servers if this process owns them."""
        self.stop()

    def describe(self) -> str:
        """Say which versions run and where, for a person."""
        postgres, valkey = self.postgres.version(), self.valkey.version()
        short = ".".join(valkey.split(".")[:2]) if valkey else None
        return (
            f"PostgreSQL {postgres or '(not running)'} and Valkey {short or '(not running)'} "
            f"embedded in {self.place.base}"
        )

    def ensure_running(self) -> list[str]:
        """Start again what has died, as its owner; returns the titles of what was started."""
        if not self.is_owner:
            return []
        with _turn(self.data_dir):
            return self._start_missing()

    def stop(self) -> None:
        """Stop the servers if this process owns them; do nothing otherwise. Repeatable."""
        if not self.is_owner:
            return
        with _turn(self.data_dir):
            for server in reversed(self.servers):
                server.stop()
            self._disown()

    def release(self) -> None:
        """Leave the servers running without an owner: the next starter adopts them."""
        if not self.is_owner:
            return
        with _turn(self.data_dir):
            for server in self.servers:
                server.let_go()
            self._disown()

    def _own(self) -> None:
        # Recorded before anything is started: killed from here on, we leave a dead owner,
        # which the next starter recognises.
        self._ownership.take()
        self._owner_pid = os.getpid()
        self._hooks.install()
        try:
            self._start_missing()
        except BaseException:
            for server in reversed(self.servers):
                server.stop()
            self._disown()
            raise

    def _start_missing(self) -> list[str]:
        started = []
        for server in self.servers:
            if not server.adopt():
                server.start()
                started.append(server.title)
        self.postgres.ensure_database()
        return started

    def _disown(self) -> None:
        self._ownership.give_up()
        self._owner_pid = None
        self._hooks.remove()

    def _require_running(self, owner: ProcessIdentity) -> None:
        for server in self.servers:
            if not server.is_running():
                raise StoreUnavailable(
                    f"{server.title} of {self.data_dir} does not answer, and process {owner.pid}, "
                    f"which runs it, still lives",
                    next_step=f"look into {server.log}, or end that process: kill {owner.pid}",
                )


def _turn(data_dir: Path) -> AbstractContextManager[int]:
    return exclusive(
        data_dir / "embedded.lock",
        deadline_seconds=_TURN_DEADLINE_SECONDS,
        reason=f"another process starts or stops the servers of {data_dir}",
    )


def _password_file(data_dir: Path) -> Path:
    return data_dir / "password"


def _password(place: Place) -> str:
    """Read the servers' password, or mint it for an empty data directory."""
    file = _password_file(place.data_dir)
    if file.exists():
        return file.read_text()
    if (place.base / PostgresServer.name).exists():
        raise ConfigError(
            f"{file} is missing, and without it nobody can log in to the servers' data",
            next_step=f"put the file back, or start with an empty folder in place of {place.base}",
        )
    password = secrets.token_urlsafe(32)
    unfinished = file.with_suffix(".new")
    unfinished.touch(mode=0o600)
    unfinished.write_text(password)
    unfinished.replace(file)
    return password
