"""`ackbox show`: everything on record about one intent."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from .command import command
from .naming import Named, find
from .opening import Opened, opened
from .options import STORE, json_option, namespace_option, settings_options
from .output import print_json

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ...outbox.shell.history import IntentHistory
    from ...outbox.told import Told


@command("show", example="ackbox show r7:mail-customer\nackbox show 4f1c --json", quiet=True)
@click.argument("name", metavar="ID")
@namespace_option
@json_option
@settings_options(*STORE)
@click.pass_context
def show(ctx: click.Context, /, name: str, as_json: bool, namespace: str, **_: Any) -> None:
    """Show every transition of an intent: when, who, fence, what was proven, what is possible.

    ID is the exact id, run:step, or the beginning of an id. Neither arguments nor results are
    shown.
    """
    with opened(ctx.params) as outbox:
        named = find(outbox, name, namespace=namespace)
        history, told, now = read_history(outbox, named)
    if as_json:
        shown = told.as_dict() if told else None
        if shown is not None:
            shown.pop("result")
        print_json({"told": shown, **history.as_dict()})
        return
    from .story import story

    for line in story(history, told, now):
        click.echo(line)


def read_history(outbox: Opened, named: Named) -> tuple[IntentHistory, Told | None, datetime]:
    """Read an intent's history, what is told of it, and the store's time, in one transaction."""
    from ...outbox.shell.history import history
    from ...outbox.shell.planner_store import PlannerStore
    from ...outbox.telling import tell

    key = (named.namespace, named.intent_id)
    store = PlannerStore(outbox.statements, outbox.limits)

    def read(connection: Connection) -> tuple[IntentHistory, Told | None, datetime]:
        found = history(connection, outbox.statements, named.intent_id, named.namespace)
        assert found is not None, "the name was found, and rows are never deleted before"
        step, now = store.steps(connection, [key]).get(key, ([], datetime.now(UTC)))
        telling = tell(step, named.generation, now)
        return found, telling.told if telling else None, now

    return outbox.run(read)
