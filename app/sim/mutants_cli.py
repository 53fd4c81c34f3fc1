"""`ackbox sim mutants`: planted bugs, and guards left out, each to be caught by a named rule.

May import `sim` and the command line's own modules.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import click

from ...sim.guards_tried import run_guards
from ...sim.mutants import run_mutants
from ..cli.command import command
from ..cli.exits import ExitCode


@command("mutants", example="ackbox sim mutants")
@click.option("--guards", is_flag=True, help="Leave out each guard of the protocol instead.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def mutants(guards: bool, as_json: bool) -> None:
    """Plant every bug in turn; exit 1 where no rule breaks."""
    gc.disable()
    document = _guards() if guards else _bugs()
    if as_json:
        click.echo(json.dumps(document))
    else:
        _print(document)
    if document.get("survivors"):
        sys.exit(int(ExitCode.CHECK_FAILED))


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{name:60}\r", nl=False, err=True)


def _bugs() -> dict[str, Any]:
    verdicts = run_mutants(progress=_progress)
    return {
        "planted": len(verdicts),
        "caught": sum(one.caught for one in verdicts),
        "survivors": [one.name for one in verdicts if not one.caught],
        "mutants": [one.as_dict() for one in verdicts],
    }


def _guards() -> dict[str, Any]:
    tried = run_guards(progress=_progress)
    return {
        "guards": len(tried),
        "caught": sum(one.caught for one in tried),
        "unneeded": [
            {"guard": one.name, "reason": one.reason, "searched": list(one.searched)}
            for one in tried
            if one.unneeded
        ],
        "survivors": [one.name for one in tried if not (one.caught or one.unneeded)],
        "tried": [one.as_dict() for one in tried],
    }


def _print(document: dict[str, Any]) -> None:
    for one in document.get("mutants", document.get("tried", ())):
        word = "caught" if one["caught"] else ("not shown" if one.get("reason") else "SURVIVED")
        click.echo(f"{word:9} {one['name']}: {one['rule'] or one['reason']}")
    total = document.get("planted", document.get("guards"))
    click.echo(f"{document['caught']} of {total} were caught")
