"""What a command imports: one that only asks waits for nothing that it does not need."""

import os
import subprocess
import sys

import pytest

from ackbox.app.cli.command import QuietCommand
from ackbox.app.cli.group import COMMANDS, load

UNNEEDED = {
    "structlog", "rich", "redis", "rq", "alembic", "httpx2", "pydantic_settings",
}  # fmt: skip
"""Slow to import, and no part of an answer that is not drawn on a terminal."""
ARGUMENTS = {"show": ("x",), "migrate": ("--check",), "completion": ("bash",)}
QUIET = [n for n, one in COMMANDS.items() if isinstance(load(one.place, n), QuietCommand)]
IMPORT_SECONDS = 0.15
BARE = "import time; print(time.process_time())"
PACKAGE = (
    "import sys, threading, time, ackbox; print(time.process_time());"
    " assert threading.active_count() == 1;"
    " print(*{name.partition('.')[0] for name in sys.modules})"
)


def test_the_quiet_commands_are_those_that_ask() -> None:
    """The list below is not empty by accident."""
    assert {"ls", "show", "unknowns", "migrate", "config"} <= set(QUIET)


@pytest.mark.parametrize("name", QUIET)
def test_a_quiet_command_imports_what_it_needs_and_no_logging(name: str, database_url: str) -> None:
    """Without the logging imported, nothing in it can have logged unformatted."""
    script = (
        "import sys\nfrom ackbox.app.cli.group import root\n"
        "code = 0\ntry:\n    root(sys.argv[1:], prog_name='ackbox')\n"
        "except SystemExit as ended:\n    code = ended.code\n"
        "print('imported', *sys.modules)\nsys.exit(code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, name, *ARGUMENTS.get(name, ())],
        capture_output=True, text=True, check=False,
        env={**os.environ, "ACKBOX_DATABASE_URL": database_url},
    )  # fmt: skip
    assert ended.returncode in (0, 6), ended.stderr
    imported = ended.stdout.splitlines()[-1].split()
    assert imported[0] == "imported"
    assert not UNNEEDED.intersection(imported)


def test_importing_the_package_is_quick_and_starts_nothing() -> None:
    """Processor time beyond that of Python itself, the best of several: load does not count."""

    def run(script: str) -> list[str]:
        command = [sys.executable, "-c", script]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    package = [run(PACKAGE) for _ in range(4)]
    seconds = min(float(one[0]) for one in package) - min(float(run(BARE)[0]) for _ in range(4))
    assert seconds < IMPORT_SECONDS
    assert not {"sqlalchemy", "psycopg", "redis", "pydantic", "asyncio"}.intersection(package[0])
