"""The exit codes: one meaning each, the same for every command. Imports the standard library."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script may rely on."""

    DONE = 0
    """Done; of a step: committed."""
    CHECK_FAILED = 1
    """A check found something, or a process that should run on has failed."""
    USAGE = 2
    """The command, an id or the arguments are not legal; nothing was stored."""
    IN_FLIGHT = 3
    """The step is under way or waits for an approval."""
    UNKNOWN = 4
    """Nobody knows whether the step took effect."""
    FAILED = 5
    """The step provably did nothing."""
    REFUSED = 6
    """The protocol said no; nothing was changed."""
    ENVIRONMENT = 7
    """A setting, a server or the installation is not as it must be."""
    CALLED_OFF = 8
    """The step was cancelled, superseded or compensated."""
    INTERRUPTED = 130
    """Ctrl-C ended the command before it had an answer."""


_OF_WORD = {
    "committed": ExitCode.DONE,
    "in_flight": ExitCode.IN_FLIGHT,
    "awaiting_approval": ExitCode.IN_FLIGHT,
    "cancel_recorded": ExitCode.IN_FLIGHT,
    "unknown": ExitCode.UNKNOWN,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.CALLED_OFF,
    "superseded": ExitCode.CALLED_OFF,
    "compensated": ExitCode.CALLED_OFF,
}


def exit_code_of(word: str) -> ExitCode:
    """Return the exit code of a told outcome."""
    return _OF_WORD[word]
