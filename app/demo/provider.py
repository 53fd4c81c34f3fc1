"""The tools' side: the fake provider in a process of its own, which counts effects by itself.

It outlives every killed worker, and ends with the demo: its pipe closes whatever happens to us.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import urlsplit

from ...outbox.errors import ConfigError
from ...tool_adapters.fake_server.faults import Fault

_COMMAND = (sys.executable, "-m", "ackbox.tool_adapters.fake_server")
_STOP_SECONDS = 5.0
_ASK_SECONDS = 10.0


class ProviderProcess:
    """A running fake provider; a context manager that ends it."""

    def __init__(self, log: IO[bytes]) -> None:
        """Start it. Raises ConfigError where it does not come up."""
        self._process = subprocess.Popen(
            [*_COMMAND, "--print-port", "--until-stdin-ends"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            process_group=0,  # Ctrl-C reaches the demo alone
        )  # fmt: skip
        try:
            self.url: str = self._read_url()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, hard if it does not follow."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def answer_late(self, endpoint: str, wire_key: str, seconds: float) -> None:
        """Keep the answer to the first request with this key back, after its effect."""
        rule = {
            "fault": Fault.DELAY_AFTER_EFFECT.value, "endpoint": endpoint, "wire_key": wire_key,
            "seconds": seconds,
        }  # fmt: skip
        self._ask("POST", "/_faults", rule)

    def effects(self) -> Mapping[str, int]:
        """Return the effects counted so far, by wire key."""
        counted: Mapping[str, int] = self._ask("GET", "/_ledger")["effects"]
        return counted

    def _read_url(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ConfigError(
                "the fake provider did not start", next_step="read provider.log of this run"
            )
        return str(json.loads(line)["url"])

    def _ask(self, method: str, path: str, document: Any = None) -> Any:
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            str(place.hostname), place.port, timeout=_ASK_SECONDS
        )
        with closing(connection):
            body = None if document is None else json.dumps(document)
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())


def by_step(effects: Mapping[str, int], separators: Iterable[str]) -> Counter[str]:
    """Sum counts by what stands before the first separator of their keys."""
    found: Counter[str] = Counter()
    for key, number in effects.items():
        for separator in separators:
            key = key.partition(separator)[0]
        found[key] += number
    return found


def open_log(folder: Path, name: str) -> IO[bytes]:
    """Open a log file of the run."""
    return (folder / f"{name}.log").open("ab")
