"""Turns errors into three lines on stderr and an exit code: what, may an effect exist, what next.

Decides what counts as a user's mistake, a refusal or a broken environment. Anything else is a bug
and goes on up. With `--json` the same parts stand on stdout, so that there is always one document.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import click

from ...outbox.errors import (
    NO_EFFECT,
    NOTHING_CHANGED,
    AckboxError,
    ConfigError,
    InvalidIntent,
    Refused,
    StoreUnavailable,
)
from ..loading import loading_error
from .again import again
from .exits import ExitCode


class Told(click.ClickException):
    """An error as the command line shows it."""

    def __init__(self, error: AckboxError, *, as_json: bool = False) -> None:
        super().__init__(error.what)
        self.error = error
        self.as_json = as_json

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        """The code that the process ends with."""
        return int(_exit_code(self.error))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the three parts on stderr, and as JSON on stdout where that was asked for."""
        if self.as_json:
            click.echo(json.dumps({"error": self.error.as_dict()}, indent=2))
        kind = "refused" if isinstance(self.error, Refused) else "error"
        click.echo(f"{kind}: {self.error.code} — {_sentence(self.error.what)}", file=file, err=True)
        click.echo(_sentence(self.error.effect_may_exist), file=file, err=True)
        click.echo(f"Try: {again(self.error.next_step)}", file=file, err=True)


class _Interrupted(AckboxError):
    """Ctrl-C came before the command had ended."""

    def __init__(self) -> None:
        super().__init__(
            "stopped before the end; a change is stored whole or not at all",
            effect_may_exist="What is stored goes on: an effect may exist where workers run.",
            next_step="ackbox ls, or the same command again",
            code="interrupted",
        )


class UsageMistake(AckboxError):
    """What was typed is no legal command; nothing was looked at."""

    default_code = "usage"
    default_effect = "Nothing was changed."


class _NotConfirmed(AckboxError):
    """A person was asked whether they are sure, and did not say yes."""

    default_code = "not_confirmed"
    default_effect = "Nothing was changed."


@contextmanager
def usage_told(*, command: str, as_json: bool) -> Iterator[None]:
    """Show a usage mistake in the three parts of every other error; `command` has the help."""
    try:
        yield
    except click.UsageError as error:
        what = error.format_message().strip().rstrip(".")
        mistake = UsageMistake(" ".join(what.split()), next_step=f"{command} --help")
        raise Told(mistake, as_json=as_json) from None


@contextmanager
def errors_told(*, as_json: bool) -> Iterator[None]:
    """Show what is raised inside as the command line shows errors; bugs pass."""
    try:
        yield
    except KeyboardInterrupt:
        raise Told(_Interrupted(), as_json=as_json) from None
    except click.Abort:
        not_confirmed = _NotConfirmed("it was not confirmed", next_step="ackbox show, then again")
        raise Told(not_confirmed, as_json=as_json) from None
    except Exception as error:
        told = _translated(error)
        if isinstance(told, ConfigError) and told.effect_may_exist == NO_EFFECT:
            # A command that could not look does not know about effects.
            told.effect_may_exist = NOTHING_CHANGED
        if told is not None:
            raise Told(told, as_json=as_json) from error
        raise


@contextmanager
def next_steps(
    by_code: Mapping[str, str], names: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Name commands instead of the planner's own calls in what is refused inside.

    `names` gives the short names of whole ids.
    """
    try:
        yield
    except Refused as error:
        error.next_step = by_code.get(error.code, error.next_step)
        for whole, short in (names or {}).items():
            error.what = error.what.replace(whole, short)
        raise


def _translated(error: Exception) -> AckboxError | None:
    if isinstance(error, AckboxError):
        return error
    if isinstance(error, OSError) and error.errno not in (None, errno.EPIPE):
        return ConfigError(
            f"the system said: {error.strerror}"
            + (f" ({error.filename})" if error.filename else ""),
            next_step="ackbox doctor",
        )
    return _of_database(error) or loading_error(error)


def _of_database(error: Exception) -> AckboxError | None:
    # Not imported here: where it was never imported, nothing of it can have been raised.
    exceptions = sys.modules.get("sqlalchemy.exc")
    if exceptions is None or not isinstance(error, exceptions.DBAPIError):
        return None
    diagnosis = getattr(error.orig, "diag", None)
    said = getattr(diagnosis, "message_primary", None) or type(error.orig).__name__
    if getattr(error.orig, "sqlstate", None) in ("42P01", "3F000"):
        return ConfigError(f"the database said: {said}", next_step="ackbox migrate")
    return StoreUnavailable(f"the database said: {said}", next_step="ackbox doctor")


def _exit_code(error: AckboxError) -> ExitCode:
    if isinstance(error, _Interrupted | _NotConfirmed):
        return ExitCode.INTERRUPTED
    if isinstance(error, InvalidIntent | UsageMistake):
        return ExitCode.USAGE
    if isinstance(error, Refused):
        return ExitCode.REFUSED
    return ExitCode.ENVIRONMENT


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
