"""What every command has in common: help that opens with an example, settings apart, told errors.

May import click and the modules beside it that import nothing heavy.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

import click

from .faults import errors_told, usage_told


class SettingOption(click.Option):
    """A flag that sets one setting, the same one as ACKBOX_<NAME> and the file's key."""


class AckboxCommand(click.Command):
    """A command. `example` is what its help shows first."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options and tell a mistake in them."""
        with usage_told(command=ctx.command_path, as_json="--json" in args):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and tell what it raises."""
        as_json = bool(ctx.params.get("as_json"))
        with errors_told(as_json=as_json), usage_told(command=ctx.command_path, as_json=as_json):
            return super().invoke(ctx)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then what click writes."""
        _write_example(formatter, self.example)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, and under a heading of their own the settings."""
        own: list[tuple[str, str]] = []
        settings: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                (settings if isinstance(param, SettingOption) else own).append(record)
        for title, records in (("Options", own), (SETTINGS_TITLE, settings)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class NamingGroup(click.Group):
    """Commands under one name, which names the nearest where one is misspelt."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f", did you mean {near[0]}" if near else ""
            with usage_told(command=ctx.command_path, as_json="--json" in args):
                raise click.UsageError(f"there is no command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


class ExampleGroup(NamingGroup):
    """Commands under one name; `example` is what its help shows first."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example, then what click writes."""
        _write_example(formatter, self.example)
        super().format_help(ctx, formatter)


def _write_example(formatter: click.HelpFormatter, example: str) -> None:
    lines = "".join(f"  $ {line}\n" for line in example.splitlines())
    formatter.write(f"\n{lines}\n")


class QuietCommand(AckboxCommand):
    """A command that only asks and runs nothing that logs: it waits for no import of the logging.

    A test holds each of them to that.
    """


SETTINGS_TITLE = "Settings (also ACKBOX_NAME in the environment, name in ackbox.toml)"


def command(
    name: str, *, example: str, quiet: bool = False
) -> Callable[[Callable[..., Any]], AckboxCommand]:
    """Return a decorator that makes a function a command; its docstring is the help."""
    kind = QuietCommand if quiet else AckboxCommand

    def decorate(function: Callable[..., Any]) -> AckboxCommand:
        described = inspect.cleandoc(function.__doc__ or "")
        return click.command(name, cls=kind, example=example, help=described)(function)

    return decorate
