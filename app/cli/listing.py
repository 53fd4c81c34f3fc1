"""`ackbox ls` and `ackbox unknowns`: many intents at a glance, one page at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .again import again
from .command import command
from .naming import display_name
from .opening import Opened, opened
from .options import STORE, json_option, settings_options
from .output import age, print_json, print_table

if TYPE_CHECKING:
    from ...outbox.shell.history import IntentRow, UnknownRow

_STATES = (
    "held", "queued", "executing", "awaiting_ack", "indeterminate", "committed", "failed",
    "cancelled", "compensated",
)  # fmt: skip
_any_namespace = click.option("--namespace", metavar="NAME", help="Only this tenant's.")
_limit = click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Rows at most."
)


@command("ls", example="ackbox ls --state indeterminate\nackbox ls --run-id r7 --json", quiet=True)
@click.option("--state", type=click.Choice(_STATES), help="Only in this state.")
@click.option("--tool", metavar="NAME", help="Only of this tool.")
@click.option("--lane", metavar="NAME", help="Only in this lane.")
@click.option("--run-id", metavar="TEXT", help="Only of this run.")
@click.option("--step", metavar="TEXT", help="Only of this step.")
@click.option("--prefix", metavar="TEXT", help="Only ids that begin so.")
@click.option("--parked", "only_parked", is_flag=True, help="Only what waits for a person.")
@click.option("--count", is_flag=True, help="Count by state instead; reads every row.")
@click.option("--before", type=click.IntRange(min=1), metavar="SEQ", help="The next page.")
@_limit
@_any_namespace
@json_option
@settings_options(*STORE)
@click.pass_context
def ls(
    ctx: click.Context, /, count: bool, before: int | None, limit: int, as_json: bool,
    **given: Any,
) -> None:  # fmt: skip
    """List intents, newest first, one page at a time."""
    with opened(ctx.params) as outbox:
        if count:
            _print_counts(outbox, as_json)
            return
        rows = _page(outbox, given, before, limit)
    following = rows[-1].seq if len(rows) == limit else None
    if as_json:
        print_json({"intents": [row.as_dict() for row in rows], "next_before": following})
        return
    _print_intents(rows)
    if following is not None:
        click.echo(again(f"more: ackbox ls --before {following} (with the same filters)"))


def _page(outbox: Opened, given: dict[str, Any], before: int | None, limit: int) -> list[IntentRow]:
    from ...outbox.model import State
    from ...outbox.shell.history import IntentFilter, list_intents

    names = ("namespace", "tool", "lane", "run_id", "step", "prefix", "only_parked")
    state = State(given["state"]) if given["state"] else None
    wanted = IntentFilter(state=state, **{name: given[name] for name in names})
    return outbox.run(
        lambda c: list_intents(c, outbox.statements, wanted, before_seq=before, limit=limit)
    )


def _print_intents(rows: Sequence[IntentRow]) -> None:
    if not rows:
        click.echo("nothing matches")
        return
    titles = ("AGE", "INTENT", "TOOL", "STATE", "SENDS", "NOTE")
    table = [
        (
            age(row.age_seconds),
            display_name(row.namespace, row.intent_id, row.run_id, row.step, row.generation),
            row.tool,
            row.state.value,
            f"{row.sends}×",
            _note(row),
        )
        for row in rows
    ]
    print_table(titles, table, give=(1, 2))


def _note(row: IntentRow) -> str:
    notes = [
        "diverged" if row.diverged else "",
        "yours" if row.parked else "",
        "" if row.live else "superseded",
    ]
    return ", ".join(note for note in notes if note)


def _print_counts(outbox: Opened, as_json: bool) -> None:
    from ...outbox.shell.history import counts

    found = outbox.run(lambda c: counts(c, outbox.statements))
    if as_json:
        print_json({"states": [one.as_dict() for one in found]})
        return
    titles = ("STATE", "NUMBER", "PARKED", "DIVERGED")
    rows = [(c.state.value, str(c.number), str(c.parked), str(c.diverged)) for c in found]
    print_table(titles, rows)


@command("unknowns", example="ackbox unknowns\nackbox unknowns --json", quiet=True)
@_limit
@_any_namespace
@json_option
@settings_options(*STORE)
@click.pass_context
def unknowns(
    ctx: click.Context, /, limit: int, namespace: str | None, as_json: bool, **_: Any
) -> None:
    """List what nobody knows, and what waits for a person: oldest first.

    NEXT says what happens by itself, or what only you can say (`yours`).
    """
    from ...outbox.shell.history import unknowns as read

    with opened(ctx.params) as outbox:
        rows = outbox.run(lambda c: read(c, outbox.statements, namespace=namespace, limit=limit))
    if as_json:
        print_json({"unknowns": [row.as_dict() for row in rows]})
        return
    _print_unknowns(rows)
    if len(rows) == limit:
        click.echo(again("there may be more: ackbox unknowns --limit 1000"))


def _print_unknowns(rows: Sequence[UnknownRow]) -> None:
    if not rows:
        click.echo("nothing is unknown, and nothing waits for a person")
        return
    titles = ("AGE", "INTENT", "TOOL", "SENT", "LAST WORD", "WINDOW", "NEXT")
    table = [
        (
            age(row.age_seconds),
            display_name(row.namespace, row.intent_id, row.run_id, row.step, row.generation),
            row.tool,
            f"{row.sends}×",
            row.last_word,
            _window(row.window_left_seconds),
            _next(row),
        )
        for row in rows
    ]
    print_table(titles, table, give=(4, 6, 2, 1))
    first = next((row for row, line in zip(rows, table, strict=True) if "yours" in line[6]), None)
    if first is not None:
        shown = table[rows.index(first)][1]
        click.echo(again(f"look first: ackbox show {shown}"))


def _next(row: UnknownRow) -> str:
    """Return whose turn it is; what may be said is many words, and `ackbox show` lists it."""
    from ...outbox.shell.history import PARKED

    if row.next != PARKED:
        return row.next
    later = math.ceil(row.quiet_in_seconds)
    return f"yours in {later} s: ackbox show" if later else "yours: ackbox show"


def _window(seconds: float | None) -> str:
    return "–" if seconds is None else f"{age(seconds)} left"
