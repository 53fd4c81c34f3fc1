"""The options that several commands share, under one name each. May import click.

The settings' flags stand here as a list, since reading them off the settings would import what is
slow; a test compares the two.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from .command import SettingOption

F = TypeVar("F", bound=Callable[..., Any])
ACTOR_VARIABLE = "ACKBOX_ACTOR"

SETTINGS: dict[str, str] = {
    "database_url": "PostgreSQL; unset: the embedded server of --data-dir.",
    "database_direct_url": "PostgreSQL past any pooler, for LISTEN and migrations.",
    "database_pooler": "transaction: the database URL leads to a pooler of that mode.",
    "redis_url": "Redis or Valkey; unset: the embedded server.",
    "data_dir": "Folder of the embedded servers.",
    "schema": "The outbox's schema in the database.",
    "outbox": "Name of the outbox.",
    "lanes": "Lanes that a worker serves, with commas.",
    "tools": "Modules with tools, module or module:attribute, with commas.",
    "plan": "The plan whose callbacks a consumer runs: module:attribute.",
    "worker_processes": "Worker processes in the pool.",
    "in_flight_max": "Open attempts per lane and process.",
    "poll_seconds": "Longest wait where a ring was lost.",
    "limits": "Limits that differ from their defaults: name=value,name=value.",
    "log_level": "debug, info, warning or error.",
    "log_format": "json, console or auto.",
}
"""Every setting with the help of its flag."""

ROLES = ("relay", "reaper", "reconciler", "consumer", "worker")
"""The roles of an outbox, as `up --roles` and heartbeat rows name them."""

STORE = ("database_url", "database_pooler", "redis_url", "data_dir", "schema", "outbox")
"""What a command needs that only asks the database."""


def settings_options(*names: str) -> Callable[[F], F]:
    """Add the flags of some settings, and --config."""

    def decorate(function: F) -> F:
        config = _option("--config", "config_file", help="Settings file (ackbox.toml).",
                         type=click.Path(path_type=Path, dir_okay=False))  # fmt: skip
        function = config(function)
        for name in reversed(names):
            flag = f"--{name.replace('_', '-')}"
            function = _option(flag, f"setting_{name}", help=SETTINGS[name])(function)
        return function

    return decorate


def given_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that flags gave, by their names."""
    found = {
        name.removeprefix("setting_"): value
        for name, value in params.items()
        if name.startswith("setting_")
    }
    return {name: value for name, value in found.items() if value is not None}


def _option(*declaration: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*declaration, cls=SettingOption, metavar="TEXT", **attributes)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON with stable keys.")
namespace_option = click.option(
    "--namespace", default="default", show_default=True, metavar="NAME", help="The tenant."
)
reason_option = click.option(
    "--reason", required=True, metavar="TEXT", help="Why; it is kept on record."
)
fence_option = click.option(
    "--fence", type=click.IntRange(min=0), metavar="N",
    help="The fence that you saw in `ackbox show`; needed where no terminal can ask.",
)  # fmt: skip
actor_option = click.option(
    "--actor", metavar="NAME", help=f"Who you are; else {ACTOR_VARIABLE}, else the login."
)


def actor_name(given: str | None) -> str:
    """Return who is speaking: the flag, the environment or the login."""
    name = given or os.environ.get(ACTOR_VARIABLE)
    if name and name.strip():
        return name.strip()
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        missing = f"nobody is logged in: say who you are with --actor or {ACTOR_VARIABLE}"
        raise click.UsageError(missing) from None
