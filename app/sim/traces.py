"""`ackbox sim run`, `show`, `record` and `shrink`: traces from files or by their shipped names.

May import `sim` and the command line's own modules.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from ...sim.seeded import KINDS, SeededRun, seeded_plan, seeded_spec
from ...sim.shipped import shipped_names, shipped_text
from ...sim.show import mermaid, timeline
from ...sim.show_html import html as draw
from ...sim.show_scene import scene_of
from ...sim.shrink import shrink as shrink_trace
from ...sim.trace import Trace, TraceError, read_trace
from ...sim.trace_run import Outcome, run_trace
from ..cli.command import command
from ..cli.exits import ExitCode

Result = TypeVar("Result")
_COLLECT_AFTER = 100_000
"""Worlds make many small objects and next to no cycles: looking for those seldom saves a third."""


def stop(text: str, code: ExitCode) -> NoReturn:
    """End the command with a sentence and an exit code."""
    click.echo(text, err=True)
    sys.exit(int(code))


def read_named(place: str) -> Trace:
    """Read a trace by path or shipped name; ends the command where that is not possible."""
    path = Path(place)
    try:
        text = path.read_text(encoding="utf-8") if path.suffix == ".json" else shipped_text(place)
    except (OSError, UnicodeDecodeError):
        stop(f"{place}: there is no such trace; `ackbox sim run --list` names the shipped ones",
              ExitCode.USAGE)  # fmt: skip
    try:
        return read_trace(text)
    except TraceError as error:
        stop(f"{place}, {error}", ExitCode.USAGE)


def run_named(place: str, trace: Trace) -> Outcome:
    """Run a trace; ends the command where an event of it cannot happen."""
    return named(place, run_trace, trace)


def named(place: str, run: Callable[[Trace], Result], trace: Trace) -> Result:
    """Return what a run of a trace comes to; ends the command where an event cannot happen."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        return run(trace)
    except TraceError as error:
        stop(f"{place}, {error}", ExitCode.USAGE)


@command("run", example="ackbox sim run essay_good --json")
@click.argument("traces", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Run every shipped trace.")
@click.option("--list", "listed", is_flag=True, help="Name the shipped traces.")
@click.option("--json", "as_json", is_flag=True, help="Print the counters that a trace expects.")
@click.option("--full", is_flag=True, help="With --json: states, told words and broken rules too.")
def run(traces: tuple[str, ...], every: bool, listed: bool, as_json: bool, full: bool) -> None:
    """Run traces and compare their ends with what they expect; exit 1 where one differs."""
    if listed:
        click.echo("\n".join(shipped_names()))
        return
    places = tuple(shipped_names()) if every else traces
    if not places:
        raise click.UsageError("name a trace, or say --all")
    outcomes = []
    for place in places:
        trace = read_named(place)
        outcomes.append((trace, run_named(place, trace)))
    if as_json:
        shown = [_document(trace, outcome, full) for trace, outcome in outcomes]
        click.echo(json.dumps(shown[0] if len(shown) == 1 else shown))
    else:
        _print_lines([outcome for _, outcome in outcomes])
    if not all(outcome.passed for _, outcome in outcomes):
        sys.exit(int(ExitCode.CHECK_FAILED))


def _document(trace: Trace, outcome: Outcome, full: bool) -> dict[str, Any]:
    if full:
        return outcome.as_dict()
    return {name: outcome.counters[name] for name in trace.expected.counters}


def _print_lines(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        effects, rules = outcome.counters["external_commits"], ", ".join(outcome.rules_broken)
        word = "ok" if outcome.passed else "DIFFERS"
        broken = f", breaks {rules} as expected" if rules and outcome.passed else ""
        click.echo(f"{word:8} {outcome.name}: {effects} effects{broken}")
        for complaint in outcome.complaints:
            click.echo(f"         {complaint}")
    passed = sum(outcome.passed for outcome in outcomes)
    click.echo(f"{passed} of {len(outcomes)} traces are as expected")


@command("show", example="ackbox sim show essay_bad")
@click.argument("trace")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print a Mermaid sequence diagram.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write a page with the sequence and the count of effects.")  # fmt: skip
def show(trace: str, as_mermaid: bool, html: Path | None) -> None:
    """Show what happens in a trace."""
    if html is not None:
        _write(html, draw(named(trace, scene_of, read_named(trace))))
        return
    outcome = run_named(trace, read_named(trace))
    click.echo(mermaid(outcome) if as_mermaid else timeline(outcome), nl=False)


def _write(place: Path, text: str) -> None:
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        stop(f"{place}: {error.strerror}", ExitCode.USAGE)


@command("record", example="ackbox sim record --seed 7 --tool probed --out seven.json")
@click.option("--seed", default=1, show_default=True, type=int)
@click.option("--tool", "kind", default="keyed", show_default=True, type=click.Choice(list(KINDS)))
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1, 16))
@click.option("--steps", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it to a file.")
def record(seed: int, kind: str, workers: int, steps: int, out: Path | None) -> None:
    """Run a world by a seed, faults included, and write it down as a trace that pins its end."""
    gc.set_threshold(_COLLECT_AFTER)
    seeded = SeededRun(seeded_spec(kind, workers), seed, seeded_plan(seed, steps))
    outcome = seeded.run()
    about = f"Recorded from seed {seed}: {steps} steps, {workers} workers, a {kind} tool."
    text = seeded.trace(outcome, about).text()
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


@command("shrink", example="ackbox sim shrink essay_mint_flipped")
@click.argument("trace")
@click.option("--rule", help="The rule that has to stay broken; the first one by default.")
def shrink(trace: str, rule: str | None) -> None:
    """Print the smallest trace found that still breaks a rule."""
    gc.set_threshold(_COLLECT_AFTER)
    try:
        click.echo(shrink_trace(read_named(trace), rule).text(), nl=False)
    except TraceError as error:
        stop(f"{trace}: {error.text}", ExitCode.CHECK_FAILED)
