"""`ackbox wait`: how a step ends, as a word and an exit code."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from .again import again
from .command import command
from .exits import ExitCode, exit_code_of
from .naming import Named, find, shortened
from .opening import Opened, opened
from .options import STORE, json_option, namespace_option, settings_options
from .output import print_json

if TYPE_CHECKING:
    from ...outbox.intent import Intent
    from ...outbox.told import Told

PROGRESS_SECONDS = 2.0


@command(
    "wait",
    example="""ackbox wait r1:open-ticket --timeout 60
ackbox wait r1:open-ticket --timeout 0 --json      # how it stands now""",
)
@click.argument("name", metavar="ID")
@click.option(
    "--timeout", "timeout_seconds", type=click.FloatRange(min=0), default=30.0, show_default=True,
    metavar="SECONDS", help="How long to wait; no end of it changes anything.",
)  # fmt: skip
@click.option(
    "--until", type=click.Choice(["told", "bound"]), default="told", show_default=True,
    help="Wait until the outcome is told, or until it is bound to the plan.",
)  # fmt: skip
@namespace_option
@json_option
@settings_options(*STORE)
@click.pass_context
def wait(
    ctx: click.Context, /, name: str, timeout_seconds: float, until: Any, as_json: bool,
    namespace: str, **_: Any,
) -> None:  # fmt: skip
    """Wait until a step is settled, or in front of a person, or the time is over.

    Exit code: 0 committed, 3 in flight or awaiting approval, 4 unknown, 5 failed, 8 cancelled,
    superseded or compensated.
    """
    with opened(ctx.params) as outbox:
        named = find(outbox, name, namespace=namespace)
        try:
            told = _wait(outbox, named, timeout_seconds, until)
        except KeyboardInterrupt:
            stopped = "stopped waiting; the step goes on as it is. Try: ackbox wait"
            click.echo(f"\n{again(stopped)} {named.shown}", err=True)
            ctx.exit(ExitCode.IN_FLIGHT)
    print_told(told, named.shown, as_json=as_json)
    ctx.exit(exit_code_of(told.word))


def print_told(told: Told, shown: str, *, as_json: bool) -> None:
    """Print a told outcome; for people without its result."""
    if as_json:
        print_json(told.as_dict())
        return
    ref = getattr(told, "ref", None)
    parts = [shown, told.word, f"reference {ref}" if ref else "", told.reason]
    click.echo(" · ".join(part for part in parts if part))
    for other in told.also_happened:
        click.echo(f"  generation {other.generation} took effect too ({other.ref or 'no ref'})")
    next_step = shortened(told.next_step, told.intent_id, shown)
    if next_step.startswith("ackbox resolve"):
        # Which of the statements would be taken, and from when on, is listed there.
        next_step = f"ackbox show {shown}"
    if next_step:
        click.echo(f"  next: {again(next_step)}")


def _wait(outbox: Opened, named: Named, timeout_seconds: float, until: Any) -> Told:
    with outbox.planner(named.namespace) as planner:
        address: Intent | str = named.intent_id
        if named.generation is not None:
            address = _intent_of(outbox, named)
        now = planner.get(address)
        if timeout_seconds == 0 and now is not None:
            return now
        quick, started = min(timeout_seconds, PROGRESS_SECONDS), time.monotonic()
        told = planner.wait(address, timeout_seconds=quick, until=until)
        took = time.monotonic() - started
        if took < quick or took >= timeout_seconds:
            return told
        if sys.stderr.isatty():
            click.echo(f"{named.shown}: {told.reason or told.word} ...", err=True)
        return planner.wait(address, timeout_seconds=timeout_seconds - took, until=until)


def _intent_of(outbox: Opened, named: Named) -> Intent:
    """Return the named generation: only so may a planner be asked for one."""
    from ...outbox.intent import Address
    from ...outbox.shell.planner_store import PlannerStore, intent_of

    store = PlannerStore(outbox.statements, outbox.limits)
    address = Address(named.namespace, named.intent_id, named.generation)
    row = outbox.run(lambda c: store.generation(c, address, named.generation or 0))
    assert row is not None, "the name was found, and generations are never deleted before"
    return intent_of(row, created=False)
