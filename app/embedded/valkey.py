"""The embedded Valkey: its configuration and the question that proves it is ours.

It carries wake tokens only, which may be lost; it still keeps them over a restart (append-only
file, synced every second) and refuses writes when full instead of evicting. May import redis
besides what `server` may.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, ClassVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .server import HOST, Answer, EmbeddedServer

_SOCKET_TIMEOUT_SECONDS = 2


class ValkeyServer(EmbeddedServer):
    """Valkey of one data directory, on a loopback port."""

    name: ClassVar[str] = "valkey"
    title: ClassVar[str] = "Valkey"
    stop_signals: ClassVar[tuple[signal.Signals, ...]] = (signal.SIGTERM,)

    @property
    def url(self) -> str:
        """Redis URL of database 0, password included: never print it."""
        return f"redis://:{self._password}@{HOST}:{self.port}/0"

    def prepare(self) -> None:
        """Make the data folder, which belongs to the server's account."""
        self.place.server_folder(self.name)

    def command(self, port: int) -> list[str | Path]:
        """Write the configuration and run it from there: a command line is public, it is not."""
        configuration = self.folder / "valkey.conf"
        configuration.unlink(missing_ok=True)
        configuration.touch(mode=0o600)
        configuration.write_text(self._configuration(port))
        self.place.account.give(configuration)
        return [self.place.valkey, configuration]

    def ask(self, port: int) -> Answer | None:
        """Ask for process, version and folder; another server on this port is not believed."""
        client = redis.Redis(
            host=HOST,
            port=port,
            password=self._password,
            socket_timeout=_SOCKET_TIMEOUT_SECONDS,
            socket_connect_timeout=_SOCKET_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        )
        try:
            client.ping()
            said: dict[str, Any] = client.info("server")
            folder = str(client.config_get("dir")["dir"])
        except redis.RedisError:
            return None
        finally:
            client.close()
        if os.path.realpath(folder) != os.path.realpath(self.folder):
            return None
        return Answer(int(said["process_id"]), str(said["valkey_version"]))

    def _configuration(self, port: int) -> str:
        settings = {
            "bind": HOST,
            "port": str(port),
            "requirepass": self._password,
            "dir": _quoted(str(self.folder)),
            "databases": "16",
            "daemonize": "no",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
