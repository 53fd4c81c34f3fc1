"""Two runs of one command print the same bytes, whatever the process hashes strings to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

COMMANDS: dict[str, list[str]] = {
    "run": ["run", "--all", "--json", "--full"],
    "record": ["record", "--seed", "7", "--tool", "probed"],
    "explore": ["explore", "--generations", "1", "--cuts", "1", "--json"],
    "mutants": ["mutants", "--json"],
    "guards": ["mutants", "--guards", "--json"],
}
"""The chaos suite is not here: its committed results are those of another process, and each run of
it is compared with them byte for byte."""


def started(flags: list[str], hash_seed: int) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-m", "ackbox", "sim", *flags]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def printed(process: subprocess.Popen[str]) -> str:
    """Return what a command has printed; fails where it did not end well."""
    text, _ = process.communicate()
    assert process.returncode == 0
    return text


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", COMMANDS)
def test_two_processes_print_the_same_bytes(name: str) -> None:
    """The same seed and the same world give the same JSON; only `seconds` may differ."""
    processes = [started(COMMANDS[name], hash_seed) for hash_seed in (1, 2)]
    first, second = (printed(process) for process in processes)
    if name == "explore":
        first, second = (_without_seconds(text) for text in (first, second))
    assert first == second
    assert json.loads(first)


def _without_seconds(text: str) -> str:
    document = json.loads(text)
    assert document.pop("seconds") > 0
    return json.dumps(document)
