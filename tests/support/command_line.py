"""The command line in this process, with the logging that it sets up put back afterwards."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog
from click.testing import CliRunner

from ackbox.app.cli.group import root


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Parse the one document on stdout."""
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Runs commands under one environment; what escapes them fails the test."""

    environ: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str | bytes | None = None) -> Ended:
        """Run `ackbox ARGUMENTS`."""
        with _logging_kept():
            result = CliRunner().invoke(root, arguments, env=self.environ, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ended(result.exit_code, result.stdout, result.stderr)


def bare_line(monkeypatch: pytest.MonkeyPatch, folder: Path, **environ: str) -> CommandLine:
    """Return a command line that sees these settings only."""
    for name in list(os.environ):
        if name.startswith("ACKBOX_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)
    return CommandLine({"ACKBOX_ACTOR": "ops@example.org", **environ})


def error_of(ended: Ended) -> tuple[str, str, str]:
    """Return the three parts on stderr."""
    what, effect, step = ended.err.splitlines()
    assert step.startswith("Try: ")
    return what, effect, step


@contextmanager
def _logging_kept() -> Iterator[None]:
    logger = logging.getLogger()
    handlers, level, raises = logger.handlers[:], logger.level, logging.raiseExceptions
    try:
        yield
    finally:
        logger.handlers[:] = handlers
        logger.setLevel(level)
        logging.raiseExceptions = raises
        structlog.reset_defaults()
