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

    from ...outbox.model import Row, World
    from ...outbox.shell.history import IntentHistory
    from .story import Seen


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
        seen = outbox.run(lambda c: read_history(c, outbox, named))
    if as_json:
        shown = seen.told.as_dict() if seen.told else None
        if shown is not None:
            shown.pop("result")
        print_json({"told": shown, **seen.history.as_dict()})
        return
    from .story import story

    for line in story(seen):
        click.echo(line)


def read_history(connection: Connection, outbox: Opened, named: Named) -> Seen:
    """Read an intent's history, what is told of it and what may be done, in one transaction."""
    from ...outbox.shell.history import history
    from ...outbox.shell.planner_store import PlannerStore
    from ...outbox.telling import tell
    from .story import Seen

    key = (named.namespace, named.intent_id)
    found = history(connection, outbox.statements, named.intent_id, named.namespace)
    assert found is not None, "the name was found, and rows are never deleted before"
    store = PlannerStore(outbox.statements, outbox.limits)
    step, now = store.steps(connection, [key]).get(key, ([], datetime.now(UTC)))
    telling = tell(step, named.generation, now)
    rows = _rows(connection, outbox, found)
    told = telling.told if telling else None
    return Seen(found, told, now, rows, bool(outbox.settings.tools))


def _rows(
    connection: Connection, outbox: Opened, found: IntentHistory
) -> dict[int, tuple[Row, World]]:
    """Return the state rows as the rules see them; those of compensations among them."""
    from ...outbox.shell.rows import RowReader

    reader = RowReader(outbox.statements, outbox.limits)
    looked = (reader.look_at_step(connection, one.seq) for one in found.generations)
    return {one.row.seq: (one.row, one.world) for step in looked for one in step}
