"""Which process a recorded pid means, so that a reused pid or a zombie is never believed.

A pid alone says little: it may belong to another program by now, or to a dead child that nobody
collected. Pid and start time together name one process for as long as the machine is up, and
the boot id keeps two boots apart. May import the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_BOOT_ID = _PROC / "sys/kernel/random/boot_id"
_DEAD_STATES = "ZX"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, told apart from later processes with the same pid by its start time."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity | None:
        """Read the identity of a running process; None when there is none with this pid."""
        started = _start_time(pid)
        return None if started is None else cls(pid, started)

    @classmethod
    def own(cls) -> ProcessIdentity:
        """Read the identity of this process."""
        identity = cls.of(os.getpid())
        if identity is None:
            raise RuntimeError("the operating system does not tell this process's start time")
        return identity

    def is_alive(self) -> bool:
        """Say whether this very process still runs. A zombie does not."""
        return ProcessIdentity.of(self.pid) == self

    def send(self, number: signal.Signals) -> None:
        """Signal this very process; do nothing when it is gone or its pid is someone else's."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def children_of(pid: int) -> list[ProcessIdentity]:
    """List the direct children of a process."""
    found = (ProcessIdentity.of(child) for child, parent in _all_parents() if parent == pid)
    return [identity for identity in found if identity is not None]


def _start_time(pid: int) -> str | None:
    if pid <= 0:
        return None
    return _start_time_of_proc(pid) if _BOOT_ID.exists() else _start_time_of_ps(pid)


def _start_time_of_proc(pid: int) -> str | None:
    fields = _stat_fields(pid)
    if fields is None or fields[0] in _DEAD_STATES:
        return None
    return f"{_BOOT_ID.read_text().strip()}/{fields[19]}"


def _stat_fields(pid: int) -> list[str] | None:
    """Split /proc/<pid>/stat after the program's name, which may hold blanks and brackets."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def _start_time_of_ps(pid: int) -> str | None:
    answer = _ps("-p", str(pid), "-o", "state=,lstart=").strip()
    state, _, started = answer.partition(" ")
    return None if not answer or state[0] in _DEAD_STATES else started.strip()


def _all_parents() -> Iterator[tuple[int, int]]:
    if _BOOT_ID.exists():
        for entry in _PROC.iterdir():
            if entry.name.isdigit() and (fields := _stat_fields(int(entry.name))):
                yield int(entry.name), int(fields[1])
        return
    for line in _ps("-A", "-o", "pid=,ppid=").splitlines():
        child, parent = line.split()
        yield int(child), int(parent)


def _ps(*options: str) -> str:
    command = ["ps", *options]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"}
    ).stdout
