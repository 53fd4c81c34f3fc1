"""`ackbox completion`: the script by which a shell completes commands, options and choices."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .command import command

VARIABLE = "_ACKBOX_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@command(
    "completion",
    example="""ackbox completion bash > ~/.local/share/bash-completion/completions/ackbox
ackbox completion zsh > ~/.zfunc/_ackbox            # a folder of your fpath
ackbox completion fish > ~/.config/fish/completions/ackbox.fish""",
    quiet=True,
)
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the script that makes a shell complete `ackbox`.

    SHELL is bash, zsh or fish. The script asks `ackbox` itself, which then neither looks for a
    database nor starts anything.
    """
    found = get_completion_class(shell)
    assert found is not None, "click completes these shells"
    click.echo(found(ctx.find_root().command, {}, "ackbox", VARIABLE).source())
