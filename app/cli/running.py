"""The commands that run on: `up`, `worker` and each background role alone.

Decides that a named database is never migrated silently, and that what cannot work is refused
before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ...outbox.errors import ConfigError, Refused
from .command import AckboxCommand, command
from .opening import importable_here, require_schema
from .options import ROLES, SETTINGS, given_settings, settings_options

if TYPE_CHECKING:
    from ..embedded import EmbeddedServices
    from ..settings import Settings
    from ..supervisor import StopSignals

_REDIS_SECONDS = 2.0
_NO_WORKER = (
    "no tools are named, so that no worker is started; with tools: ackbox up --tools MODULE"
)
_NOT_OF_PLANS = tuple(name for name in SETTINGS if name != "plan")


def _complete_roles(_: click.Context, __: click.Parameter, given: str) -> list[str]:
    """Complete the last name of a list with commas."""
    front, comma, last = given.rpartition(",")
    taken = front.split(",")
    return [f"{front}{comma}{one}" for one in ROLES if one.startswith(last) and one not in taken]


@command("up", example="ackbox up --tools my_tools\nackbox up --roles relay,reaper,reconciler")
@click.option(
    "--roles", metavar="NAMES", default=",".join(ROLES), show_default=True,
    help="Which roles to run here, with commas.", shell_complete=_complete_roles,
)  # fmt: skip
@click.option("--processes", type=click.IntRange(1, 256), help="Worker processes.")
@settings_options(*SETTINGS)
@click.pass_context
def up(ctx: click.Context, /, roles: str, processes: int | None, **_: Any) -> None:
    """Run everything in the foreground; Ctrl-C ends it in good order.

    Without a database URL, PostgreSQL and Valkey are started in the data directory and migrated.
    A named database has to be migrated by `ackbox migrate`. Exit code 1 where a part has died.
    """
    chosen = _chosen_roles(roles)
    with _stop_signals() as signals:
        settings = _settings(ctx.params, processes)
        every = roles == ",".join(ROLES)
        # Whatever is wrong with modules is told before any server is started.
        has_tools = _loads_before_servers(settings)
        if has_tools is False and not every:
            _without_worker(chosen, every)
        with _services(settings) as (ready, services):
            if has_tools is None:
                has_tools = _loads(ready)
            served = chosen if has_tools else _without_worker(chosen, every)
            code = _supervise(ready, served, signals, services)
    ctx.exit(code)


@command("worker", example="ackbox worker --tools my_tools --processes 4 --lanes default,mails")
@click.option("--processes", type=click.IntRange(1, 256), help="Worker processes.")
@settings_options(*_NOT_OF_PLANS)
@click.pass_context
def worker(ctx: click.Context, /, processes: int | None, **_: Any) -> None:
    """Run a pool of worker processes, which claim, send and settle.

    A process that dies is replaced; exit code 1 where they cannot be kept alive. SIGTERM: nothing
    more is claimed, what is on the wire is waited for.
    """
    with _stop_signals() as signals:
        settings = _settings(ctx.params, processes)
        if not _loads(settings):
            raise _no_tools()
        settings = _running(settings)
        code = _supervise(settings, ["worker"], signals)
    ctx.exit(code)


def _role(name: str, does: str) -> AckboxCommand:
    """Return the command that runs one background role."""

    @settings_options(*SETTINGS)
    @click.pass_context
    def run(ctx: click.Context, /, **_: Any) -> None:
        with _stop_signals() as signals:
            settings = _running(_settings(ctx.params, None))
            code = _supervise(settings, [name], signals)
        ctx.exit(code)

    run.__doc__ = f"{does}\n\nAny number may run anywhere. Exit code 1 where it has died."
    made: AckboxCommand = command(name, example=_EXAMPLES[name])(run)
    return made


_EXAMPLES = {
    "relay": "ackbox relay",
    "reaper": "ackbox reaper",
    "reconciler": "ackbox reconciler --tools my_tools",
    "consumer": "ackbox consumer --plan my_app.plan:plan",
}
relay = _role("relay", "Ring workers for rows that are ready: after notifications, and by a poll.")
reaper = _role("reaper", "Fire what expires: leases of dead workers, deadlines, approvals.")
reconciler = _role("reconciler", "Settle unknowns by probe and resend, and move held intents.")
consumer = _role("consumer", "Bind results to the plan and run its callbacks.")


def _chosen_roles(text: str) -> list[str]:
    chosen = [role.strip() for role in text.split(",") if role.strip()]
    unknown = [role for role in chosen if role not in ROLES]
    if unknown or not chosen:
        raise click.UsageError(f"--roles takes names of: {', '.join(ROLES)}")
    return chosen


def _settings(params: Mapping[str, Any], processes: int | None) -> Settings:
    """Read the settings of a command that runs on, and log as they say."""
    from ..logging import configure_logging, log_uncaught_exceptions
    from ..settings import load_settings

    flags = given_settings(params)
    if processes is not None:
        flags["worker_processes"] = processes
    settings = load_settings(flags, params.get("config_file"))
    configure_logging(settings.log_level, settings.log_format)
    log_uncaught_exceptions()
    importable_here()
    return settings


def _running(settings: Settings) -> Settings:
    """Return the settings on servers that run, checked; a role alone starts none."""
    from ..environment import running_services

    ready = running_services(settings)
    _require_fit(ready)
    return ready


@contextmanager
def _services(settings: Settings) -> Iterator[tuple[Settings, EmbeddedServices | None]]:
    """Start what no setting names, migrated; check what is named."""
    from ..environment import started_services

    with started_services(settings) as (ready, services):
        if services is not None and ready.direct_url is not None:
            _say(services.describe())
            if services.notice:
                _say(services.notice)
            _migrate(ready.direct_url.reveal(), ready)
        _require_fit(ready)
        yield ready, services


def _migrate(url: str, settings: Settings) -> None:
    """Bring our own database to this version; beside older processes as far as they can follow."""
    from ...outbox.shell.migrate import upgrade

    try:
        upgrade(url, schema=settings.schema_name, outbox=settings.outbox)
    except Refused as refused:
        upgrade(url, schema=settings.schema_name, outbox=settings.outbox, expand_only=True)
        _say(f"{refused.what}; it waits until they have ended. Look: ackbox doctor")


def _require_fit(settings: Settings) -> None:
    from ...outbox.shell.pooler import LOOK_CONNECTIONS, refuse_undeclared
    from ..stores import checked_limits, own_database

    limits = checked_limits(settings)
    database = own_database(settings, "ackbox start", LOOK_CONNECTIONS)
    try:
        require_schema(settings, limits, database)
        refuse_undeclared(database)
    finally:
        database.dispose()


def _supervise(
    settings: Settings,
    roles: list[str],
    signals: StopSignals,
    services: EmbeddedServices | None = None,
) -> int:
    from ..supervisor import Supervisor

    if "worker" in roles and settings.redis_url is None:
        raise ConfigError(
            "workers need Redis and none is configured",
            next_step="set ACKBOX_REDIS_URL, or leave the workers out: ackbox up --roles ...",
        )
    _say(_announcement(settings, roles))
    if notice := _redis_notice(settings, roles):
        _say(notice)
    supervisor = Supervisor(settings, roles, signals=signals, say=_say, services=services)
    code = supervisor.run()
    _say(_leaving(settings))
    return code


def _redis_notice(settings: Settings, roles: list[str]) -> str | None:
    """Return what to say where Redis does not answer: nothing is refused for that."""
    if settings.redis_url is None or not {"worker", "relay"}.intersection(roles):
        return None
    from redis.exceptions import RedisError

    from ...outbox.shell.redis_bus import bus_client

    client = bus_client(settings.redis_url.reveal(), _REDIS_SECONDS)
    try:
        client.ping()
    except (RedisError, OSError) as error:
        return (
            f"Redis does not answer ({type(error).__name__}); {settings.redis_url}: until it does, "
            "workers look into the database every few seconds. Nothing is lost. Try: ackbox doctor"
        )
    finally:
        client.close()
    return None


def _announcement(settings: Settings, roles: list[str]) -> str:
    parts = [role for role in ROLES if role in roles and role != "worker"]
    if "worker" in roles:
        parts.append(f"worker × {settings.worker_processes}")
    where = f"outbox {settings.outbox}, schema {settings.schema_name}, {settings.database_url}"
    return f"ackbox runs {', '.join(parts)} · {where}"


def _leaving(settings: Settings) -> str:
    """Say what state things are in; without the database, that they are as they were."""
    from sqlalchemy.exc import SQLAlchemyError

    from ...outbox.errors import AckboxError
    from ...outbox.shell.statements import Statements
    from ..stores import checked_limits, own_database

    statement, limits = Statements(settings.schema_name, checked_limits(settings)).named(
        "open_counts"
    )
    database = own_database(settings, "ackbox stop")
    try:
        row = database.run(
            lambda c: c.execute(statement, {**limits, "row_limit": 10_000}).mappings().one(),
            attempts=1,
        )
    except (AckboxError, SQLAlchemyError):
        return "stopped. Everything stays as it is stored; nothing is lost"
    finally:
        database.dispose()
    return (
        f"stopped. {row['queued']} queued, {row['held']} held, {row['open_attempts']} with an open "
        f"attempt, {row['unknown']} unknown, {row['parked']} waiting for a person; "
        "nothing is lost, any ackbox up goes on with it"
    )


def _loads_before_servers(settings: Settings) -> bool | None:
    """Load what the settings name; None where a module wants the database that is not up yet.

    A planner made at the top of a module attaches to the servers that this very command starts.
    """
    from ...planner.shell.connecting import NO_DATABASE

    try:
        return _loads(settings)
    except ConfigError as error:
        if error.code != NO_DATABASE or settings.database_url is not None:
            raise
        return None


def _without_worker(chosen: list[str], every: bool) -> list[str]:
    """Return the roles that can run without a tool. Raises ConfigError for a worker by name."""
    if "worker" not in chosen:
        return chosen
    if not every:
        raise _no_tools()
    _say(_NO_WORKER)
    return [role for role in chosen if role != "worker"]


def _loads(settings: Settings) -> bool:
    """Load what the settings name; return whether there is any tool. Raises ConfigError."""
    from ..consumer_process import load_plan
    from ..parts import load_registry
    from ..stores import checked_limits

    load_plan(settings.plan)
    return bool(load_registry(settings, checked_limits(settings)).contracts())


def _no_tools() -> ConfigError:
    return ConfigError(
        "a worker needs tools and none are named",
        next_step="ackbox worker --tools MODULE (or set ACKBOX_TOOLS)",
    )


@contextmanager
def _stop_signals() -> Iterator[StopSignals]:
    from ..supervisor import StopSignals

    with StopSignals().taken() as signals:
        yield signals


def _say(line: str) -> None:
    click.echo(line, err=True)
