"""`ackbox sim chaos`: run the chaos suite, print its figures, write or check the committed ones.

May import `sim` and the command line's own modules.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ...sim.chaos.chart import chart
from ...sim.chaos.page import CHART, page
from ...sim.chaos.suite import as_text, document
from ..cli.command import command
from ..cli.exits import ExitCode

RESULTS = Path("sim/results/latest.json")
PAGE = Path("docs/RESULTS.md")
PICTURE = PAGE.parent / CHART
_COLLECT_AFTER = 100_000
_SHOWN = ("attempts", "effects", "duplicates", "resolved", "parked", "failed")


@command("chaos", example="ackbox sim chaos")
@click.option("--json", "as_json", is_flag=True, help="Print the whole results document.")
@click.option("--fuzz-seeds", default=200, show_default=True, type=click.IntRange(0, 1_000_000))
@click.option("--write", is_flag=True, help="Write this checkout's results, page and chart.")
@click.option("--check", is_flag=True, help="Exit 1 where those differ from this run.")
def chaos(as_json: bool, fuzz_seeds: int, write: bool, check: bool) -> None:
    """Run scenarios, goldens, the headline workload and a fuzz; exit 1 where a rule breaks."""
    gc.set_threshold(_COLLECT_AFTER)
    if (write or check) and not RESULTS.parent.is_dir():
        raise click.UsageError("--write and --check need the root of a checkout")
    results = document(range(1, fuzz_seeds + 1))
    texts = {RESULTS: as_text(results), PAGE: page(results), PICTURE: chart(results)}
    if as_json:
        click.echo(texts[RESULTS], nl=False)
    else:
        _print(results)
    if write:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
    if results["violations"] or (check and _differs(texts)):
        sys.exit(int(ExitCode.CHECK_FAILED))


def _differs(texts: Mapping[Path, str]) -> bool:
    stale = [p for p, text in texts.items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        click.echo(f"{path} differs from this run; `ackbox sim chaos --write` writes it", err=True)
    return bool(stale)


def _print(results: Mapping[str, Any]) -> None:
    click.echo(f"{'':18}" + "".join(f"{name:>11}" for name in _SHOWN))
    for arm, one in results["headline"].items():
        click.echo(f"{arm:18}" + "".join(f"{one[name]:11}" for name in _SHOWN))
    scenarios, goldens, fuzz = results["scenarios"], results["goldens"], results["fuzz"]
    click.echo(f"{len(scenarios)} scenarios: {sum(one['violations'] for one in scenarios)} broken")
    click.echo(f"{goldens['passed']} of {goldens['total']} goldens as pinned")
    click.echo(f"{fuzz['seeds']} fuzzed mixtures: {fuzz['violations']} broken")
    for text in _broken(results):
        click.echo(f"  BROKEN {text}")


def _broken(results: Mapping[str, Any]) -> list[str]:
    found = list(results["headline_broken"])
    for one in (*results["scenarios"], *results["goldens"]["cases"]):
        name = one.get("name") or f"golden {one['golden']}"
        found += [f"{name}, {one['tool']}: {text}" for text in one["broken"]]
    found += [f"fuzz: {one}" for one in results["fuzz"]["failing"]]
    return found
