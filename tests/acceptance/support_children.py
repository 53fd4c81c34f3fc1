"""The processes of an acceptance test as the test holds them: children, nursery, fake provider."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..support.waiting import DEADLINE_SECONDS, wait_until

PROGRAM = Path(__file__).with_name("support_process.py")


class Child:
    """One process of a test."""

    def __init__(self, nursery: "Nursery", pid: int, log: Path) -> None:
        self.pid = pid
        self._nursery = nursery
        self._log = log

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.code is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        self.wait()

    @property
    def code(self) -> int | None:
        """The exit code, negative for a signal; None while the process lives."""
        return self._nursery.codes.get(self.pid)

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Wait for the end; returns the exit code."""
        wait_until(lambda: self.code is not None, seconds, f"process {self.pid} ends")
        code = self.code
        assert code is not None
        return code

    def end(self) -> int:
        """SIGTERM, and wait for the end."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def output(self) -> str:
        """Return what the process has printed."""
        return self._log.read_text(errors="replace")


class Nursery:
    """Starts processes by forking one that has imported everything and opened nothing."""

    def __init__(self, prefix: Sequence[str] = (), **environ: str) -> None:
        """Start the nursery, under another command if one is given."""
        self.codes: dict[int, int] = {}
        self._process = subprocess.Popen(
            [*prefix, sys.executable, str(PROGRAM), "nursery"], env={**os.environ, **environ},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self._started: list[int] = []
        self._told = threading.Condition()
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, command: Sequence[str], log: Path, environ: dict[str, str]) -> Child:
        """Start a process whose output goes to a file."""
        request = {"command": list(command), "log": str(log), "environ": environ}
        assert self._process.stdin is not None
        with self._lock, self._told:
            before = len(self._started)
            self._process.stdin.write(json.dumps(request) + "\n")
            if not self._told.wait_for(lambda: len(self._started) > before, DEADLINE_SECONDS):
                raise RuntimeError("the nursery does not answer")
            return Child(self, self._started[-1], log)

    def close(self) -> None:
        """End the nursery and every child that is left."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_SECONDS)
        self._reader.join(DEADLINE_SECONDS)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._told:
                if "started" in answer:
                    self._started.append(answer["started"])
                else:
                    self.codes[answer["ended"]] = answer["code"]
                self._told.notify_all()


class Provider:
    """The fake provider in a process of its own."""

    def __init__(self) -> None:
        module = "ackbox.tool_adapters.fake_server"
        options = ["--port", "0", "--print-port", "--until-stdin-ends"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.url: str = json.loads(self._process.stdout.readline())["url"]

    def ask(self, path: str, document: Any = None) -> Any:
        """Ask a control path; with a document, change something."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data)
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return json.load(answer)

    def fault(self, name: str, wire_key: str | None = None, **rule: Any) -> None:
        """Plan a fault for the next request with that key."""
        self.ask("/_faults", {"fault": name, "wire_key": wire_key, **rule})

    def effects(self) -> dict[str, int]:
        """Return the effects so far by wire key."""
        return dict(self.ask("/_ledger")["effects"])

    def close(self) -> None:
        """End the provider."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(DEADLINE_SECONDS)
        self._process.stdout.close()
