"""The command `ackbox demo`."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import click

from ..cli.command import command
from ..cli.exits import ExitCode
from ..cli.options import given_settings, json_option, settings_options
from ..settings import load_settings
from . import progress
from .report import remarks, table, title, way_on
from .run import Request, Told, run_demo
from .schedule import most_kills

STOPPED_EARLY = (
    "  Stopped. Every process of the demo has ended, and the rows of this run stay as they are in a"
    " schema that no other run looks at."
)
_EXAMPLE = "ackbox demo --steps 60 --workers 3 --kills 15 --seed 1"


@command("demo", example=_EXAMPLE)
@click.option("--steps", default=60, show_default=True, type=click.IntRange(6, 2000))
@click.option("--workers", default=3, show_default=True, type=click.IntRange(1, 32))
@click.option("--kills", default=15, show_default=True, type=click.IntRange(0))
@click.option("--seed", default=1, show_default=True, type=int, help="Draws what goes wrong.")
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
        for line in way_on(told.show_hint, servers_stop=told.servers_stop):
            click.echo(line)
    for remark in remarks(told.figures):
        click.echo(f"  {remark}", err=True)
    if not told.figures.is_good:
        click.echo(f"  What each process said: {told.folder}", err=True)
