"""Puts the flags of this command into the commands that it suggests, so that they can be pasted.

Decides which flags say where the outbox is. A URL may hold a password and is never repeated: its
place holder stands there. May import click.
"""

from __future__ import annotations

import re
import shlex

import click
from click.core import ParameterSource

_REPEATED = ("database_pooler", "schema", "outbox", "data_dir")
_SECRET = ("database_url", "database_direct_url", "redis_url")
_SUGGESTED = re.compile(
    r"\backbox (?:cancel|close-divergence|doctor|ls|migrate|put|release|resolve|show|unknowns|wait)"
    r"(?![\w-])(?! --help)"
)


def again(text: str) -> str:
    """Return a text with this command's own flags in each command that it suggests."""
    flags = _flags()
    return _SUGGESTED.sub(lambda match: match[0] + flags, text) if flags else text


def _flags() -> str:
    """Return what the command line said about where the outbox is, with a space before each."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ""
    given = {
        name: context.params[name]
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    parts = [
        f" --{name.replace('_', '-')} {shlex.quote(str(given[f'setting_{name}']))}"
        for name in _REPEATED
        if f"setting_{name}" in given
    ]
    parts += [f" --{name.replace('_', '-')} URL" for name in _SECRET if f"setting_{name}" in given]
    if "config_file" in given:
        parts.append(f" --config {shlex.quote(str(given['config_file']))}")
    return "".join(parts)
