"""Writes the reference page of the command line from the commands themselves.

`python -m ackbox.app.cli.reference` prints it; `--write PATH` writes it, `--check PATH` exits 1
where the page is not up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from .exits import ExitCode
from .group import COMMANDS, SUMMARY, load

WIDTH = 100
_EXITS = {
    ExitCode.DONE: "done; of a step: committed",
    ExitCode.CHECK_FAILED: "a check found something, or a process that should run on has failed",
    ExitCode.USAGE: "the command, an id or the arguments are not legal; nothing was stored",
    ExitCode.IN_FLIGHT: "in flight, or awaiting an approval",
    ExitCode.UNKNOWN: "unknown: nobody knows whether it took effect",
    ExitCode.FAILED: "failed: it provably did nothing",
    ExitCode.REFUSED: "refused; nothing was changed",
    ExitCode.ENVIRONMENT: "a setting, a server or the installation is not as it must be",
    ExitCode.CALLED_OFF: "cancelled, superseded or compensated",
    ExitCode.INTERRUPTED: "Ctrl-C ended the command before it had an answer",
}
_ELSEWHERE = ("..demo", "...bench")
"""Packages whose commands document their own options: here they have a line."""


def page() -> str:
    """Return the whole page as Markdown."""
    return "\n".join([*_head(), *_commands()])


def _head() -> Iterator[str]:
    yield from ("# Command line", "", SUMMARY, "")
    yield "This page is generated from the commands: `python -m ackbox.app.cli.reference`."
    yield from ("", "## Exit codes", "", "| code | meaning |", "|---|---|")
    for code, meaning in _EXITS.items():
        yield f"| {code.value} | {meaning} |"
    yield from ("", "## Naming an intent", "")
    yield "The exact id, `run:step`, or the beginning of an id, in this order."
    yield "`tenant/` in front names a namespace, `~g1` behind it a generation."
    yield "A command that changes something takes no beginnings."
    yield ""


def _commands() -> Iterator[str]:
    for section in dict.fromkeys(one.section for one in COMMANDS.values()):
        yield from (f"## {section}", "")
        for name, place in COMMANDS.items():
            if place.section == section:
                yield from _command(name)


def _command(name: str) -> Iterator[str]:
    place = COMMANDS[name]
    yield from (f"### ackbox {name}", "", place.summary, "")
    if not place.place.startswith(_ELSEWHERE):
        found = load(place.place, name)
        context = click.Context(found, info_name=f"ackbox {name}", terminal_width=WIDTH)
        yield from ("```text", found.get_help(context).strip("\n"), "```", "")


def main(arguments: list[str]) -> int:
    """Print, write or check the page."""
    if arguments[:1] == ["--write"]:
        Path(arguments[1]).write_text(page(), encoding="utf-8")
        return 0
    if arguments[:1] == ["--check"]:
        return int(Path(arguments[1]).read_text(encoding="utf-8") != page())
    sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
