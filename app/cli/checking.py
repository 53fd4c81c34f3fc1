"""`ackbox migrate`, `doctor` and `config`: is everything in place, and where did it come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ...outbox.errors import ConfigError
from .again import again
from .command import command
from .exits import ExitCode
from .opening import opened, reached, settings_of
from .options import ROLES, SETTINGS, json_option, settings_options
from .output import WIDTH, print_json, print_uncut

if TYPE_CHECKING:
    from ..doctor import Finding
    from ..settings import Settings

_SCHEMA = ("database_url", "database_direct_url", "database_pooler", "data_dir", "schema", "outbox")
_INDENT = " " * 8


@command(
    "migrate",
    example="""ackbox migrate --plan
ackbox migrate --expand-only        # before the new release, ackbox migrate after it""",
    quiet=True,
)
@click.option("--check", is_flag=True, help="Change nothing; exit 1 unless it is up to date.")
@click.option("--plan", is_flag=True, help="Change nothing; list what would be done.")
@click.option(
    "--expand-only", is_flag=True, help="Leave out what an older process could not go on with."
)
@click.option(
    "--may-break-older", is_flag=True,
    help="Contract although older processes beat: their statements fail from then on.",
)  # fmt: skip
@json_option
@settings_options(*_SCHEMA)
@click.pass_context
def migrate(
    ctx: click.Context, /, check: bool, plan: bool, as_json: bool, expand_only: bool,
    may_break_older: bool, **_: Any,
) -> None:  # fmt: skip
    """Create the schema, or bring it to this version, in one transaction.

    Expanding steps leave older processes working. A contracting step is refused while a process
    beats that could not go on with the result. Any number may run at once. An embedded database
    is migrated by `ackbox up` itself.
    """
    if expand_only and may_break_older:
        raise click.UsageError("--expand-only breaks nobody: leave out --may-break-older.")
    settings = settings_of(ctx.params)
    url = _direct_url(settings)
    if check or plan:
        code = _look(url, settings, expand_only=expand_only, as_json=as_json)
        ctx.exit(code if check else ExitCode.DONE)
    from ...outbox.shell.migrate import upgrade

    with reached(settings):
        now = upgrade(
            url, schema=settings.schema_name, outbox=settings.outbox, expand_only=expand_only,
            may_break_older=may_break_older,
        )  # fmt: skip
    _print_done(url, settings, now, as_json)


def _direct_url(settings: Settings) -> str:
    if settings.direct_url is None:
        raise ConfigError(
            "no database is configured and no running ackbox up was found",
            next_step="set ACKBOX_DATABASE_URL; or ackbox up, which migrates its own database",
        )
    return settings.direct_url.reveal()


def _look(url: str, settings: Settings, *, expand_only: bool, as_json: bool) -> ExitCode:
    """Print what is to be done and whom it waits for; the code says whether there is anything."""
    from ...outbox.shell.migrate import blocking, current, plan

    with reached(settings):
        pending, found = plan(url, settings.schema_name), current(url, settings.schema_name)
        older = blocking(url, settings.schema_name)
    if expand_only:
        kinds = [step.kind for step in pending]
        end = kinds.index("contract") if "contract" in kinds else len(kinds)
        pending = pending[:end] + [step for step in pending[end:] if step.kind == "refresh"]
    if as_json:
        print_json({
            "schema": settings.schema_name, "revision": found,
            "pending": [step.as_dict() for step in pending],
            "waits_for": [one.as_dict() for one in older],
        })  # fmt: skip
    else:
        _print_pending(settings, [str(step) for step in pending], [str(one) for one in older])
    return ExitCode.CHECK_FAILED if pending else ExitCode.DONE


def _print_pending(settings: Settings, pending: list[str], older: list[str]) -> None:
    if not pending:
        click.echo(f"schema {settings.schema_name} is up to date")
        return
    click.echo(f"schema {settings.schema_name}: to do, in order")
    for line in [*pending, *(f"what contracts waits for: {one}" for one in older)]:
        click.echo(f"  {line}")
    click.echo(again("do it: ackbox migrate" + (" --expand-only" if older else "")))


def _print_done(url: str, settings: Settings, now: str, as_json: bool) -> None:
    from ...outbox.shell.migrate import plan

    rest = plan(url, settings.schema_name)
    if as_json:
        pending = [step.as_dict() for step in rest]
        print_json({"schema": settings.schema_name, "revision": now, "pending": pending})
        return
    click.echo(f"schema {settings.schema_name} of outbox {settings.outbox} is at {now}")
    if rest:
        click.echo(again("when every older process has ended: ackbox migrate"))
        for step in rest:
            click.echo(f"  {step}")


@command("doctor", example="ackbox doctor\nackbox doctor --json")
@click.option(
    "--here", "role", type=click.Choice(ROLES),
    help="Only whether a process of this role beats from this host; for health checks.",
)  # fmt: skip
@json_option
@settings_options(*SETTINGS)
@click.pass_context
def doctor(ctx: click.Context, /, role: str | None, as_json: bool, **_: Any) -> None:
    """Check the protections of this set-up, from its live configuration and services.

    Exit code 1 where a line says FAIL; each line says what to type.
    """
    from ..doctor import FAIL, diagnose

    if role is not None:
        _print_here(ctx, role, as_json)
    found: list[Finding] = []
    for finding in diagnose(settings_of(ctx.params)):
        found.append(finding)
        if not as_json:
            _print_finding(finding)
    failed = any(finding.level == FAIL for finding in found)
    if as_json:
        print_json({"ok": not failed, "findings": [finding.as_dict() for finding in found]})
    ctx.exit(ExitCode.CHECK_FAILED if failed else ExitCode.DONE)


def _print_here(ctx: click.Context, role: str, as_json: bool) -> None:
    from ..doctor import beats_here

    with opened(ctx.params) as outbox:
        lives = beats_here(outbox.database, outbox.statements, outbox.limits, role)
    if as_json:
        print_json({"ok": lives, "role": role})
    else:
        click.echo(f"{role} {'beats' if lives else 'does not beat'} from this host")
    ctx.exit(ExitCode.DONE if lives else ExitCode.CHECK_FAILED)


def _print_finding(finding: Finding) -> None:
    from .output import style_of

    level = finding.level.ljust(4)
    told = f"  {click.style(level, **style_of(finding.level))}  {finding.text}"
    if finding.next_step and len(_INDENT + finding.text + finding.next_step) <= WIDTH - 3:
        click.echo(f"{told} — {finding.next_step}")
        return
    click.echo(told)
    if finding.next_step:
        click.echo(f"{_INDENT}{finding.next_step}")


@command("config", example="ackbox config\nackbox config --json", quiet=True)
@json_option
@settings_options(*SETTINGS)
@click.pass_context
def config(ctx: click.Context, /, as_json: bool, **_: Any) -> None:
    """Show the settings in force and where each came from; passwords are left out.

    A flag goes before the environment, that before ackbox.toml, that before the default.
    """
    from ..settings import unknown_variables

    settings = settings_of(ctx.params, attach=False)
    rows = list(_in_force(settings))
    unknown = unknown_variables()
    if as_json:
        shown = {name: {"value": value, "source": source} for name, value, source in rows}
        print_json({"settings": shown, "unknown_variables": [name for name, _ in unknown]})
        return
    print_uncut(("SETTING", "VALUE", "FROM"), [(n, v or "–", s) for n, v, s in rows])
    for name, nearest in unknown:
        hint = f"; did you mean {nearest}" if nearest else ""
        click.echo(f"{name} is no setting and has no effect{hint}", file=sys.stderr)


def _in_force(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Yield what is in force; URLs that nobody gave are those of a running `ackbox up`."""
    from ..environment import running_services

    attached = {name: value for name, value, _ in running_services(settings).in_force()}
    for name, value, source in settings.in_force():
        if value or not attached[name]:
            yield name, value, source
        else:
            yield name, attached[name], "the running ackbox up"
