"""`ackbox sim replay`: traces on the in-memory outbox, on Postgres, or on the whole stack.

May import `sim` with its shell, the embedded servers and the command line's own modules.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import click

from ...outbox.errors import ConfigError
from ...sim.shell.postgres_replay import Replayed, own_store, replay_on_postgres
from ...sim.shipped import shipped_names
from ...sim.trace import Trace, TraceError
from ..cli.command import command
from ..cli.exits import ExitCode
from ..environment import started_services
from ..logging import configure_logging
from ..settings import Settings, load_settings
from ..urls import SecretUrl
from .traces import read_named, run_named, stop

Replay = Callable[[Trace], Replayed]
PLACES = ("memory", "postgres", "stack")


@command("replay", example="ackbox sim replay essay_good --on postgres")
@click.argument("traces", nargs=-1)
@click.option("--on", "place", required=True, type=click.Choice(PLACES), help="What to replay on.")
@click.option("--all", "every", is_flag=True, help="Replay every shipped trace.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as one JSON object.")
def replay(traces: tuple[str, ...], place: str, every: bool, as_json: bool) -> None:
    """Replay traces and compare their ends with what they expect; exit 1 where one differs.

    `postgres` compares every reply and row with the run in memory. `stack` runs real workers, HTTP
    and SIGKILL, and compares effects and ends; what has no counterpart there is not counted.
    """
    names = tuple(shipped_names()) if every else traces
    if not names:
        raise click.UsageError("name a trace, or say --all")
    chosen = [read_named(name) for name in names]
    with _replayer(place) as run:
        done = [_shown(_one(run, trace), quiet=as_json) for trace in chosen]
    _end(done, as_json=as_json)


def _one(run: Replay, trace: Trace) -> Replayed:
    try:
        return run(trace)
    except TraceError as error:
        stop(f"{trace.name}, {error}", ExitCode.USAGE)


@contextmanager
def _replayer(place: str) -> Iterator[Replay]:
    if place == "memory":
        yield _on_memory
        return
    # What the roles have to say about faults that were asked for is no news.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, ExitStack() as stack:
        stack.callback(configure_logging)
        configure_logging("info", "json", nowhere)
        settings, _ = stack.enter_context(started_services(load_settings()))
        if place == "stack" and settings.redis_url is None:
            raise ConfigError("the stack needs Redis beside the database",
                              next_step="set ACKBOX_REDIS_URL")  # fmt: skip
        way = _on_postgres if place == "postgres" else _on_stack
        yield stack.enter_context(way(settings))


def _on_memory(trace: Trace) -> Replayed:
    return Replayed(trace.name, run_named(trace.name, trace).complaints)


@contextmanager
def _on_postgres(settings: Settings) -> Iterator[Replay]:
    with own_store(_revealed(settings.database_url), _revealed(settings.direct_url)) as store:
        yield lambda trace: replay_on_postgres(trace, store)


@contextmanager
def _on_stack(settings: Settings) -> Iterator[Replay]:
    from .replay_stack import stack_replayer

    with stack_replayer(settings) as run:
        yield run


def _revealed(url: SecretUrl | None) -> str:
    assert url is not None, "services have been started"
    return url.reveal()


def _shown(replayed: Replayed, *, quiet: bool) -> Replayed:
    if quiet:
        return replayed
    if replayed.not_mapped is not None:
        click.echo(f"stack: not mapped: {replayed.name}: {replayed.not_mapped}")
    else:
        click.echo(f"{'ok' if replayed.passed else 'DIFFERS':8} {replayed.name}")
    for complaint in replayed.complaints:
        click.echo(f"         {complaint}")
    return replayed


def _end(done: Sequence[Replayed], *, as_json: bool) -> None:
    tried = [one for one in done if one.not_mapped is None]
    passed = sum(one.passed for one in tried)
    if as_json:
        click.echo(json.dumps({
            "traces": len(done),
            "passed": passed,
            "replies": sum(one.replies for one in done),
            "failures": {one.name: list(one.complaints) for one in tried if one.complaints},
            "not_mapped": {one.name: one.not_mapped for one in done if one.not_mapped},
        }))  # fmt: skip
    else:
        click.echo(f"{passed} of {len(tried)} replayed traces are as expected")
    if passed < len(tried):
        sys.exit(int(ExitCode.CHECK_FAILED))
