"""Which commands there are, what each is for, and where it stands. Imports click alone.

The table is the list of commands: help, the reference page and the tests read it. A command's
module is imported when it is called for.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass

import click

from .command import NamingGroup

_SELF = __package__
SUMMARY = "An outbox for the tool calls of agents: an unknown outcome is a state, never a retry."
_EXAMPLE = """  $ ackbox demo                       see it work, with worker kills
  $ ackbox up --tools my_tools        run everything in the foreground
  $ ackbox unknowns                   what nobody knows, and whose turn it is
  $ ackbox doctor                     is my set-up safe?"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command stands (`module:attribute` from this package), and its line of help."""

    place: str
    summary: str
    section: str


_RUN, _ASK, _SAY, _CHECK = "Run", "Put and ask", "Decide", "Set up and check"
COMMANDS: dict[str, Place] = {
    "up": Place(".running:up", "Run everything, or some roles, in the foreground.", _RUN),
    "worker": Place(".running:worker", "Run a pool of worker processes.", _RUN),
    "relay": Place(".running:relay", "Run the role that rings workers.", _RUN),
    "reaper": Place(".running:reaper", "Run the role that fires expiries.", _RUN),
    "reconciler": Place(".running:reconciler", "Run the role that settles unknowns.", _RUN),
    "consumer": Place(".running:consumer", "Run the role that binds results to the plan.", _RUN),
    "demo": Place("..demo.cli:demo_command", "See kills, and one effect per step.", _RUN),
    "put": Place(".putting:put", "Store one intent: one effect at a tool.", _ASK),
    "wait": Place(".asking:wait", "Wait until a step is settled or in front of a person.", _ASK),
    "ls": Place(".listing:ls", "List intents, newest first.", _ASK),
    "show": Place(".showing:show", "Show everything on record about one intent.", _ASK),
    "unknowns": Place(".listing:unknowns", "List what nobody knows and what waits for you.", _ASK),
    "resolve": Place(".resolving:resolve", "Say what became of an unknown effect.", _SAY),
    "release": Place(".deciding:release", "Let a held intent go.", _SAY),
    "close-divergence": Place(
        ".deciding:close_divergence", "Say what is true where facts contradict.", _SAY
    ),
    "cancel": Place(".deciding:cancel", "Call a step off.", _SAY),
    "migrate": Place(".checking:migrate", "Create or upgrade the schema.", _CHECK),
    "doctor": Place(".checking:doctor", "Check the protections of this set-up.", _CHECK),
    "config": Place(".checking:config", "Show the settings in force and their sources.", _CHECK),
    "completion": Place(".completing:completion", "Print a shell's completion script.", _CHECK),
    "sim": Place("..sim.cli:sim_group", "Run the protocol in a virtual world.", _CHECK),
    "bench": Place("...bench.cli:bench_group", "Measure against raw SQL.", _CHECK),
}


class LazyGroup(NamingGroup):
    """Loads a command's module at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, by section."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None where there is none of that name."""
        found = COMMANDS.get(cmd_name)
        return None if found is None else load(found.place, cmd_name)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples first, then usage and the commands by section."""
        formatter.write(f"\n{_EXAMPLE}\n\n")
        super().format_help(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table's own lines: nothing is imported for them."""
        for section in dict.fromkeys(one.section for one in COMMANDS.values()):
            rows = [(n, one.summary) for n, one in COMMANDS.items() if one.section == section]
            with formatter.section(section):
                formatter.write_dl(rows)


def load(place: str, name: str) -> click.Command:
    """Return the command that stands at a place."""
    module, _, attribute = place.partition(":")
    try:
        found: click.Command = getattr(importlib.import_module(module, _SELF), attribute)
    except ModuleNotFoundError as error:
        if error.name != importlib.util.resolve_name(module, _SELF):
            raise
        raise click.ClickException(f"this installation has no `ackbox {name}`") from None
    return found


@click.group(cls=LazyGroup, help=SUMMARY, context_settings={"max_content_width": 100})
@click.version_option(package_name="ackbox", message="%(package)s %(version)s")
def root() -> None:
    """Hold the commands together."""
