"""The embedded Valkey: its configuration and the question that proves it is ours.

It carries wake tokens only, which may be lost; it still keeps them over a restart (append-only
file, synced every second) and refuses writes when full instead of evicting. Asks over a plain
socket: every command in a folder asks first, and the client library is slow to import.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from io import BufferedRWPair
from pathlib import Path
from typing import ClassVar

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
        questions = (("AUTH", self._password), ("INFO", "server"), ("CONFIG", "GET", "dir"))
        try:
            _, said, folder = _answers(port, questions)
            facts = dict(line.split(":", 1) for line in str(said).splitlines() if ":" in line)
            if os.path.realpath(str(folder[1])) != os.path.realpath(self.folder):
                return None
            return Answer(int(facts["process_id"]), facts["valkey_version"])
        except (OSError, EOFError, ValueError, LookupError):
            return None

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


def _answers(port: int, questions: Sequence[Sequence[str]]) -> list[str | list[str]]:
    """Ask in one session. Raises OSError, EOFError or ValueError for anything but answers."""
    address = (HOST, port)
    with (
        socket.create_connection(address, _SOCKET_TIMEOUT_SECONDS) as connection,
        connection.makefile("rwb") as stream,
    ):
        for words in questions:
            stream.write(b"*%d\r\n" % len(words))
            for word in words:
                stream.write(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
        stream.flush()
        return [_answer(stream) for _ in questions]


def _answer(stream: BufferedRWPair) -> str | list[str]:
    """Read one reply: a line, a text or a list of texts. Raises ValueError for an error reply."""
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise EOFError
    kind, rest = line[:1], line[1:-2]
    if kind == b"+":
        return rest.decode()
    if kind == b"$":
        return stream.read(int(rest) + 2)[:-2].decode()
    if kind == b"*":
        return [str(_answer(stream)) for _ in range(int(rest))]
    raise ValueError("an error reply, or another protocol")
