"""`ackbox bench`: what the bus reaches here, beside what Postgres allows in the same run."""

from __future__ import annotations

import json

import click

from ..app.cli.command import ExampleGroup, command
from ..app.environment import started_services
from ..app.settings import load_settings


@click.group("bench", cls=ExampleGroup, example="ackbox bench throughput --json")
def bench_group() -> None:
    """Measure this machine."""


@command("throughput", example="ackbox bench throughput --intents 20000 --workers 2")
@click.option("--intents", default=10_000, show_default=True, type=click.IntRange(200))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option("--batch", default=64, show_default=True, type=click.IntRange(1, 1000))
@click.option("--in-flight-max", default=200, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def throughput(intents: int, workers: int, batch: int, in_flight_max: int, as_json: bool) -> None:
    """Put, claim, mark, call a no-op tool, settle and bind; fsync on."""
    from .throughput import Load, measure

    with started_services(load_settings()) as (settings, _):
        figures = measure(settings, Load(intents, workers, batch, in_flight_max)).as_dict()
    if as_json:
        click.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        click.echo(f"{name:20} {value:>12,}")


@command("sim", example="ackbox bench sim --json")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def simulator(seeds: int, rounds: int, as_json: bool) -> None:
    """Run seeded virtual worlds on one core and count scheduler steps."""
    from .simulator import measure_simulator

    figures = measure_simulator(seeds, rounds).as_dict()
    if as_json:
        click.echo(json.dumps(figures))
        return
    for name, value in figures.items():
        click.echo(f"{name:20} {value:>12,}")


for _command in (throughput, simulator):
    bench_group.add_command(_command)
