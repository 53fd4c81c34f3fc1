"""The command line: `ackbox`, also as `python -m ackbox`.

Each command stands in a module of its own that is imported when it is asked for, and what is slow
to import comes only when it runs: `ackbox --help` has to be quick. This module imports next to
nothing, for that reason.
"""

from __future__ import annotations

import sys
from types import TracebackType


def main() -> None:
    """Run the command line and exit with one of the codes in `exits`."""
    from .group import root

    sys.excepthook = _tell_bug
    root(prog_name="ackbox")


def _tell_bug(
    error_type: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Log what nobody expected by class and place: its message may quote arguments."""
    from ..logging import configure_logging, log_uncaught_exceptions

    configure_logging()
    log_uncaught_exceptions()
    sys.excepthook(error_type, error, traceback)
