"""`ackbox sim`: which commands there are and where they stand. Imports click and the loader alone.

A command of another module is added by a line in `COMMANDS`.
"""

from __future__ import annotations

import importlib

import click

from ..cli.command import ExampleGroup

_SELF = __package__
EXAMPLE = "ackbox sim run essay_good --json"
COMMANDS: dict[str, tuple[str, str]] = {
    "run": (".traces:run", "Run traces and compare their ends with what they expect."),
    "show": (".traces:show", "Show what happens in a trace: a timeline, a diagram or a page."),
    "record": (".traces:record", "Run a world by a seed and write it down as a trace."),
    "shrink": (".traces:shrink", "Make a trace that breaks a rule as small as it gets."),
    "replay": (".replay_cli:replay", "Replay traces on Postgres, or on real workers and HTTP."),
    "explore": (".explore_cli:explore", "Explore every order of events of a small world."),
    "mutants": (".mutants_cli:mutants", "Plant bugs, or leave out guards, and see them caught."),
    "chaos": (".chaos_cli:chaos", "Run the chaos suite and the headline workload."),
}


class SimGroup(ExampleGroup):
    """Loads a command's module at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        found: click.Command = getattr(importlib.import_module(module, _SELF), attribute)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table's own lines: nothing is imported for them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group("sim", cls=SimGroup, example=EXAMPLE)
def sim_group() -> None:
    """Run the shipped protocol in a virtual world, under every fault."""
