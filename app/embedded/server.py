"""One embedded server: start it, believe it only after it answered, stop or kill it.

What both servers share: port and pid file, the lock that the server inherits, waiting for its
first answer, signals that reach the recorded process only. May import the standard library and
`outbox.errors`; the servers' own modules add their client libraries.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from ...outbox.errors import ConfigError
from .binaries import USE_OWN_SERVERS
from .identity import ProcessIdentity, children_of
from .locks import exclusive, is_held
from .place import Place
from .waiting import wait_for

HOST = "127.0.0.1"
# Below the range from which systems lend ports to outgoing connections: a server that restarts
# on its port must not find a client of somebody else there.
_PORTS = range(20_000, 30_000)
_PORT_TRIES = 5
START_DEADLINE_SECONDS = 60.0
STOP_DEADLINE_SECONDS = 20.0
_KILL_DEADLINE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said about itself when it was asked."""

    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """The pid and port file of a server: a hint about where to ask, never a proof."""

    port: int
    pid: int = 0
    started: str = ""

    @property
    def process(self) -> ProcessIdentity:
        """The process that was recorded."""
        return ProcessIdentity(self.pid, self.started)


class EmbeddedServer(ABC):
    """A server of one data directory. Not thread-safe; one object per process and server."""

    name: ClassVar[str]
    title: ClassVar[str]
    stop_signals: ClassVar[tuple[signal.Signals, ...]]

    def __init__(self, place: Place, password: str) -> None:
        self.place = place
        self._password = password
        self._child: subprocess.Popen[bytes] | None = None

    def __repr__(self) -> str:
        """Name server, port and folder; never the password."""
        return f"<{type(self).__name__} port={self.record.port} folder={self.folder}>"

    @property
    def folder(self) -> Path:
        """Where the server keeps its data."""
        return self.place.base / self.name

    @property
    def log(self) -> Path:
        """The file that the server's own messages are appended to."""
        return self.place.data_dir / f"{self.name}.log"

    @property
    def record(self) -> ServerRecord:
        """Read the pid and port file; port 0 when the server never ran."""
        try:
            return ServerRecord(**json.loads(self._record_file.read_text()))
        except FileNotFoundError:
            return ServerRecord(port=0)

    @property
    def port(self) -> int:
        """The port on the loopback interface, the same one again after a restart."""
        return self.record.port

    @abstractmethod
    def ask(self, port: int) -> Answer | None:
        """Ask a server on this port who it is; None unless it is ours and ready."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder and configuration, once. Called while no server runs."""

    @abstractmethod
    def command(self, port: int) -> list[str | Path]:
        """Build the command line that runs the server in the foreground."""

    def is_running(self) -> bool:
        """Ask the server now; the pid file alone is never believed."""
        record = self.record
        return record.port > 0 and self.ask(record.port) is not None

    def version(self) -> str | None:
        """Tell the running server's version; None when it does not answer."""
        answer = self.ask(self.port) if self.port else None
        return answer.version if answer else None

    def adopt(self) -> bool:
        """Take over a server that already runs; False when none does.

        A server that lives without answering yet (it starts or recovers) is waited for.
        """
        if self.is_running():
            self._remember_who_answers()
            return True
        if not is_held(self._lock_file):
            return False
        wait_for(lambda: self.is_running() or not is_held(self._lock_file), START_DEADLINE_SECONDS)
        if not self.is_running():
            return self._give_up_on_silent_server()
        self._remember_who_answers()
        return True

    def start(self) -> None:
        """Start the server and wait for its first answer; `ConfigError` when none comes."""
        with exclusive(
            self._lock_file,
            deadline_seconds=STOP_DEADLINE_SECONDS,
            reason=f"{self.title} already runs for {self.place.data_dir}, or still stops",
        ) as lock:
            self.prepare()
            for port in self._candidate_ports():
                if self._start_on(port, lock):
                    return
        raise self._start_failure()

    def stop(self) -> None:
        """Stop the server in order, waiting until it is gone; harder signals follow late."""
        process = self.record.process
        for number in (*self.stop_signals, signal.SIGKILL):
            process.send(number)
            if self._wait_gone(process, STOP_DEADLINE_SECONDS):
                return

    def kill(self) -> None:
        """SIGKILL the server and its children, as a crash of the machine would."""
        process = self.record.process
        family = children_of(process.pid) if process.is_alive() else []
        for member in (process, *family):
            member.send(signal.SIGKILL)
        self._wait_gone(process, _KILL_DEADLINE_SECONDS)
        wait_for(lambda: not any(member.is_alive() for member in family), _KILL_DEADLINE_SECONDS)

    def restart(self) -> None:
        """Stop what still runs and start again on the same port."""
        self.stop()
        self.start()

    def let_go(self) -> None:
        """Leave the server running when this process ends, without Python complaining."""
        if self._child is not None:
            # Popen warns about a running child when it is collected, unless it has a result.
            self._child.returncode = 0
            self._child = None

    @property
    def _record_file(self) -> Path:
        return self.place.data_dir / f"{self.name}.json"

    @property
    def _lock_file(self) -> Path:
        return self.place.data_dir / f"{self.name}.lock"

    def _write_record(self, record: ServerRecord) -> None:
        unfinished = self._record_file.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(record)))
        unfinished.replace(self._record_file)

    def _candidate_ports(self) -> Iterator[int]:
        recorded = self.record.port
        if recorded:
            yield recorded
        free = (port for port in random.sample(_PORTS, len(_PORTS)) if _is_free(port))
        for _ in range(_PORT_TRIES):
            yield next(free)

    def _start_on(self, port: int, lock: int) -> bool:
        if not _is_free(port):
            return False
        # The port is written before the server exists: killed in between, the next starter
        # still knows where to ask.
        self._write_record(ServerRecord(port))
        child = self.place.account.spawn(self.command(port), log=self.log, kept_open=lock)
        self._child = child
        process = ProcessIdentity.of(child.pid)
        if process is not None:
            self._write_record(ServerRecord(port, process.pid, process.started))
        wait_for(lambda: self.is_running() or child.poll() is not None, START_DEADLINE_SECONDS)
        return child.poll() is None and self.is_running()

    def _remember_who_answers(self) -> None:
        record = self.record
        answer = self.ask(record.port)
        process = ProcessIdentity.of(answer.pid) if answer else None
        if process is not None and process != record.process:
            self._write_record(ServerRecord(record.port, process.pid, process.started))

    def _give_up_on_silent_server(self) -> bool:
        if not is_held(self._lock_file):
            return False
        raise ConfigError(
            f"{self.title} runs for {self.place.data_dir} (pid {self.record.pid}) "
            f"but does not answer",
            next_step=f"look into {self.log}, end it with: kill {self.record.pid}",
        )

    def _start_failure(self) -> ConfigError:
        if self._child is not None and self._child.poll() is None:
            self.stop()
        return ConfigError(
            f"{self.title} did not start: {_last_line(self.log)}",
            next_step=f"look into {self.log}, or {USE_OWN_SERVERS}",
        )

    def _wait_gone(self, process: ProcessIdentity, deadline_seconds: float) -> bool:
        """Wait until the process is dead and its last child has let go of the lock."""
        return wait_for(lambda: self._is_gone(process), deadline_seconds)

    def _is_gone(self, process: ProcessIdentity) -> bool:
        if self._child is not None and self._child.pid == process.pid:
            # A leader thread can look dead before its process can be collected.
            if self._child.poll() is None:
                return False
            self._child = None
        return not process.is_alive() and not is_held(self._lock_file)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")
