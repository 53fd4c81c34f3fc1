"""`ackbox sim explore`: every order of events of a small world, or of a table of them.

May import `sim` and the command line's own modules.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

import click

from ...sim.explore import Explored, Explorer, SmallWorld
from ...sim.explore_offers import Faults
from ...sim.explore_worlds import DEFAULT, DEFAULTS, SMALL, TABLE, TOOLS, mints, world_of_flags
from ...sim.shrink import shrink
from ...sim.trace import TraceError
from ..cli.command import command
from ..cli.exits import ExitCode
from .explore_table import RESULTS, explore_worlds

_SMALL_NUMBER = click.IntRange(0, 9)


@command("explore", example="ackbox sim explore --generations 1 --tool keyed --cuts 1")
@click.option(
    "--tool",
    "kind",
    default="keyless",
    show_default=True,
    type=click.Choice(list(TOOLS)),
    help="What the tool promises.",
)
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 4))
@click.option("--intents", default=1, show_default=True, type=click.IntRange(1, 3))
@click.option(
    "--generations", default=DEFAULTS.generations, show_default=True, type=click.IntRange(1, 4)
)
@click.option("--crashes", default=DEFAULTS.crashes, show_default=True, type=_SMALL_NUMBER)
@click.option(
    "--redeliveries",
    default=DEFAULTS.redeliveries,
    show_default=True,
    type=_SMALL_NUMBER,
    help="Claims beside each row's first.",
)
@click.option(
    "--cuts",
    default=0,
    show_default=True,
    type=_SMALL_NUMBER,
    help="Connections that break before the answer.",
)
@click.option(
    "--losses", default=0, show_default=True, type=_SMALL_NUMBER, help="Requests that never arrive."
)
@click.option("--freezes", default=0, show_default=True, type=_SMALL_NUMBER)
@click.option("--mint", is_flag=True, help="The planner has the bug of a new id on a time-out.")
@click.option(
    "--world", "named", type=click.Choice(list(SMALL)), metavar="NAME", help="A world of the table."
)
@click.option("--all", "every", is_flag=True, help="Explore the default world and the table.")
@click.option(
    "--write",
    is_flag=True,
    help="With --all or --world: keep each line in the results file of this checkout.",
)
@click.option("--anew", is_flag=True, help="With --write: explore what has its line already, too.")
@click.option("--first", is_flag=True, help="Stop at the first violation.")
@click.option("--max-states", type=click.IntRange(1), help="Cut each search at so many states.")
@click.option(
    "--out",
    default="violation.json",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the first violation is written as a trace.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def explore(
    kind: str, workers: int, intents: int, generations: int, crashes: int, redeliveries: int,
    cuts: int, losses: int, freezes: int, mint: bool, named: str | None, every: bool, write: bool,
    anew: bool, first: bool, max_states: int | None, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Explore every order of events and every crash point of a small world; exit 1 where a rule
    breaks, with the shortened way to it as a trace.
    """
    gc.disable()
    if write and not (every or named):
        raise click.UsageError("--write needs --all or --world")
    if every or write:
        worlds = (DEFAULT, *TABLE) if named is None else (SMALL[named],)
        _explore_table(worlds, max_states, write, anew, as_json)
        return
    faults = Faults(redeliveries, crashes, 0, freezes, cuts, losses)
    world = SMALL[named] if named else world_of_flags(kind, workers, intents, generations, faults)
    explorer, found, seconds = _explore(mints(world) if mint else world, max_states, first)
    if as_json:
        click.echo(json.dumps({**found.as_dict(), "seconds": round(seconds, 2)}))
    else:
        _print(found, seconds)
    if found.broken:
        _write_trace(explorer, found, out)
        sys.exit(int(ExitCode.CHECK_FAILED))


def _explore(
    world: SmallWorld, max_states: int | None, first: bool = False
) -> tuple[Explorer, Explored, float]:
    shown = sys.stderr.isatty()

    def progress(states: int, waiting: int) -> None:
        bar = "#" * round(30 * (1 - waiting / (states + 1)))
        click.echo(f"\r[{bar:30}] {states} states, {waiting} to be looked at ", nl=False, err=True)

    begun = time.monotonic()
    explorer = Explorer(world, progress=progress if shown else None)
    found = explorer.run(max_states=max_states, first=first)
    if shown:
        click.echo("\r" + " " * 78 + "\r", nl=False, err=True)
    return explorer, found, time.monotonic() - begun


def _print(found: Explored, seconds: float) -> None:
    click.echo(f"{found.world.name}: {found.world.about}")
    click.echo(f"  {found.states} distinct states, {found.transitions} transitions")
    if found.complete:
        click.echo(f"  {found.schedules} schedules with {found.ends} different ends")
    else:
        click.echo("  cut before its end: what was not reached was not checked")
    for broken in found.broken:
        click.echo(f"  BROKEN {broken.violation.rule}: {broken.violation.text}")
    word = "no rule broke" if not found.violations else f"rules broke {found.violations} times"
    click.echo(f"  {word}; {seconds:.1f} s")


def _write_trace(explorer: Explorer, found: Explored, out: Path) -> None:
    trace = explorer.trace(found.broken[0])
    try:
        trace = shrink(trace, found.broken[0].violation.rule)
    except TraceError as error:
        click.echo(f"the way to it could not be shortened: {error.text}", err=True)
    out.write_text(trace.text(), encoding="utf-8")
    click.echo(f"the shortest way found stands in {out}; try: ackbox sim show {out}", err=True)


def _explore_table(
    worlds: tuple[SmallWorld, ...], max_states: int | None, write: bool, anew: bool, as_json: bool
) -> None:
    if write and not RESULTS.parent.is_dir():
        raise click.UsageError("--write needs the root of a checkout")

    def explore_one(world: SmallWorld) -> Explored:
        _, found, seconds = _explore(world, max_states)
        if not as_json:
            _print(found, seconds)
        return found

    document = explore_worlds(worlds, explore_one, write=write, anew=anew)
    if as_json:
        click.echo(json.dumps(document, indent=1))
    if document["violations"]:
        sys.exit(int(ExitCode.CHECK_FAILED))
