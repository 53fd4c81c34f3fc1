"""The command `ackbox demo`."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeVar

import click

from ..cli.command import command
from ..cli.exits import ExitCode
from ..cli.options import given_settings, json_option, settings_options
from ..settings import load_settings
from . import progress
from .report import remarks, table, title, way_on
from .run import Request, Told, run_demo
from .schedule import most_kills

F = TypeVar("F", bound=Callable[..., Any])
STOPPED_EARLY = (
    "  Stopped. Every process of the demo has ended, and the rows of this run stay as they are in a"
    " schema that no other run looks at."
)
_EXAMPLE = "ackbox demo --steps 60 --workers 3 --kills 15 --seed 1"


def _number(flag: str, default: int, least: int, most: int | None, text: str) -> Callable[[F], F]:
    kind = click.IntRange(least, most)
    return click.option(flag, default=default, show_default=True, type=kind, help=text)


@command("demo", example=_EXAMPLE)
@_number("--steps", 60, 6, 2000, "Steps of the plan.")
@_number("--workers", 3, 1, 32, "Worker processes at a time.")
@_number("--kills", 15, 0, None, "SIGKILLs of workers, each at a named point.")
@_number("--seed", 1, 0, None, "Draws what goes wrong, and where.")
@json_option
@settings_options("database_url", "redis_url", "data_dir")
def demo_command(
    steps: int, workers: int, kills: int, seed: int, as_json: bool, **params: Any
) -> None:
    """Watch one plan survive SIGKILLs, beside plain RQ with Retry.

    Real PostgreSQL, Redis, RQ workers and HTTP, in a schema of its own that is kept. Exits with 1
    if ackbox doubled or lost anything.
    """
    if kills > most_kills(steps):
        raise click.UsageError(
            f"{steps} steps have room for {most_kills(steps)} kills: ask for fewer, or more --steps"
        )
    settings = load_settings(given_settings(params), params.get("config_file"))
    request = Request(steps, workers, kills, seed)
    try:
        told = run_demo(
            settings,
            request,
            partial(_display, quiet=as_json),
            lambda services: None if as_json else click.echo(f"  {title(services, seed)}"),
        )
    except KeyboardInterrupt:
        click.echo(STOPPED_EARLY, err=True)
        raise SystemExit(ExitCode.CHECK_FAILED) from None
    _tell(told, as_json)
    if not told.figures.is_good:
        raise SystemExit(ExitCode.CHECK_FAILED)


def _display(name: str, *, quiet: bool) -> AbstractContextManager[progress.Display]:
    return progress.display(name, quiet=quiet)


def _tell(told: Told, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(told.figures.as_dict()))
    else:
        for line in table(told.figures):
            click.echo(line)
        for line in way_on(told.show_hint):
            click.echo(line)
    for remark in remarks(told.figures):
        click.echo(f"  {remark}", err=True)
    if not told.figures.is_good:
        click.echo(f"  What each process said: {told.folder}", err=True)
