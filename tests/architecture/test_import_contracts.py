"""The import contracts hold on the tree, and each of them fails when a violation is planted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

LINTER = Path(sys.executable).with_name("lint-imports")


def lint(checkout: Path) -> tuple[int, str]:
    """Check the contracts of a checkout; return the exit code and what was printed."""
    # The environment's own (editable) ackbox must not be the one that is read.
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "COLUMNS": "250"}
    done = subprocess.run(
        [str(LINTER), "--no-logo", "--no-cache"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def plant(checkout: Path, path: str, line: str) -> None:
    """Add a module with one import to the copy, creating its package where it is missing."""
    module = checkout / path
    module.parent.mkdir(exist_ok=True)
    (module.parent / "__init__.py").touch()
    module.write_text(f"{line}\n")


def plant_targets(checkout: Path) -> None:
    """Give every package and every shell an empty module, to be imported where it may not be."""
    for package in ("outbox", "tool_adapters", "workers", "planner", "sim", "app", "bench"):
        plant(checkout, f"{package}/target.py", "")
    for package in ("outbox", "sim"):
        plant(checkout, f"{package}/shell/target.py", "")


def broken_contracts(output: str) -> set[str]:
    """Return the names of the contracts that the linter reports as broken."""
    return {
        found[1].strip()
        for line in output.splitlines()
        if (found := re.match(r"(.+?) ?BROKEN( \(\d+ ignored imports?\))?$", line.rstrip()))
    }


def test_tree_keeps_every_contract(repository_root: Path) -> None:
    """The three contracts hold on the sources as they stand."""
    code, output = lint(repository_root)
    assert code == 0, output
    assert "Contracts: 3 kept, 0 broken." in output


DIRECTION = "sim -> (planner | workers) -> tool_adapters -> outbox, with app and bench on top"
SIMULATED = "what sim runs reaches no driver, no socket, no clock and no thread"
SHELLS = "only shells, app, bench and tests import shells"
FORBIDDEN = [
    "psycopg",
    "sqlalchemy",
    "redis",
    "rq",
    "httpx2",
    "smtplib",
    "time",
    "socket",
    "threading",
    "asyncio",
    "subprocess",
]


@pytest.mark.parametrize(
    ("path", "line", "contract"),
    [
        ("outbox/planted.py", "from ..tool_adapters import target", DIRECTION),
        ("tool_adapters/planted.py", "from ..workers import target", DIRECTION),
        ("workers/planted.py", "from ..planner import target", DIRECTION),
        ("planner/planted.py", "from ..workers import target", DIRECTION),
        ("workers/planted.py", "from ..sim import target", DIRECTION),
        ("sim/planted.py", "from ..app import target", DIRECTION),
        ("outbox/shell/planted.py", "from ...bench import target", DIRECTION),
        ("outbox/planted.py", "from .shell import target", SHELLS),
        ("workers/planted.py", "from ..outbox.shell import target", SHELLS),
        ("sim/planted.py", "from .shell import target", SHELLS),
        *(("sim/planted.py", f"import {name}", SIMULATED) for name in FORBIDDEN),
    ],
)
def test_planted_import_breaks_its_contract(
    copied_checkout: Path, path: str, line: str, contract: str
) -> None:
    """One forbidden import turns exactly the contract red that forbids it."""
    plant_targets(copied_checkout)
    plant(copied_checkout, path, line)
    code, output = lint(copied_checkout)
    assert code == 1, output
    assert broken_contracts(output) == {contract}, output


def test_sim_may_not_reach_a_clock_through_a_lower_package(copied_checkout: Path) -> None:
    """The simulator's contract follows imports through the packages below it."""
    plant(copied_checkout, "outbox/planted.py", "import time")
    plant(copied_checkout, "sim/planted.py", "from ..outbox import planted")
    code, output = lint(copied_checkout)
    assert code == 1, output
    assert broken_contracts(output) == {SIMULATED}, output


def test_sims_shell_may_act(copied_checkout: Path) -> None:
    """The simulator's own shell, and a shell on a shell, may open sockets and read clocks."""
    plant_targets(copied_checkout)
    plant(copied_checkout, "sim/shell/planted_server.py", "import socket, time")
    plant(copied_checkout, "sim/shell/planted.py", "from ...outbox.shell import target")
    code, output = lint(copied_checkout)
    assert code == 0, output


def test_a_package_outside_the_layers_is_refused(copied_checkout: Path) -> None:
    """A new package must be given a place in the direction before it passes."""
    plant(copied_checkout, "src/ackbox/stray/planted.py", "import json")
    code, output = lint(copied_checkout)
    assert code == 1, output
    assert broken_contracts(output) == {DIRECTION}, output
