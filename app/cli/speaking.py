"""What the commands share by which a person states something: which row, asked for, said, answered.

Decides that a statement quotes a fence: the one shown before the question on a terminal, else the
one given with --fence. What may be said is decided under the row's lock, in the outbox.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ...outbox.errors import Refused
from ...outbox.model import State
from ...outbox.people import Denied, Said, Stated
from .faults import UsageMistake
from .naming import Named, display_name, find, shortened
from .opening import Opened
from .options import actor_name
from .output import print_json

if TYPE_CHECKING:
    from ...outbox.shell.history import GenerationRow
    from ...outbox.shell.people_store import PeopleStore


@dataclass(frozen=True, slots=True)
class Subject:
    """The row that a person speaks about, as it was read."""

    named: Named
    row: GenerationRow

    @property
    def shown(self) -> str:
        """The row's name with its generation."""
        row = self.row
        return display_name(row.namespace, row.intent_id, row.run_id, row.step, row.generation)


def subject_of(outbox: Opened, name: str, namespace: str) -> Subject:
    """Return the row that a whole name means: its unknown generation, else the live one."""
    from ...outbox.shell.history import row_to_speak_of

    named = find(outbox, name, namespace=namespace, exact=True)
    row = outbox.run(
        lambda c: row_to_speak_of(
            c, outbox.statements, named.intent_id, named.namespace, named.generation
        )
    )
    assert row is not None, "the name was found, and rows are never deleted before"
    return Subject(named, row)


def said_by(
    subject: Subject, given: Mapping[str, Any], statement: str, *, needs_fence: bool = True
) -> Said:
    """Return who says what, after asking on a terminal; elsewhere --fence is needed."""
    row, fence = subject.row, given.get("fence")
    actor = actor_name(given["actor"])
    if sys.stdin.isatty() and sys.stderr.isatty():
        fence = row.fence if fence is None else fence
        facts = f"{subject.shown}: {row.tool}, {row.state.value}, fence {row.fence}"
        click.echo(f"{facts}, sent {row.sends}×", err=True)
        click.confirm(f"as {actor}: {statement} ({given['reason']}). Sure?", abort=True, err=True)
    elif fence is None and needs_fence:
        raise UsageMistake(
            "no terminal can ask for confirmation: quote the fence that you saw, with --fence N",
            next_step=f"ackbox show {subject.shown}",
        )
    return Said(row.seq, actor, given["reason"], fence)


def people_store(outbox: Opened) -> PeopleStore:
    """Return the store that takes statements."""
    from ...outbox.shell.people_store import PeopleStore

    return PeopleStore(outbox.database, outbox.statements, outbox.limits)


def answer(
    outbox: Opened, subject: Subject, said: Said, given: Stated | Denied, *, as_json: bool
) -> None:
    """Print what became of a statement, and wake whoever has to go on. Raises Refused."""
    if isinstance(given, Denied):
        raise refusal_of(subject, given)
    wake(outbox, subject.row.lane)
    if as_json:
        document = {"namespace": subject.row.namespace, "intent_id": subject.row.intent_id,
                    "generation": subject.row.generation, **given.as_dict()}  # fmt: skip
        print_json(document)
        return
    seen = "" if said.fence is None else f" against fence {said.fence}"
    click.echo(
        f"{given.state.value} · recorded for {said.actor_name}{seen} · {_follows(given.state)}"
    )


def refusal_of(subject: Subject, denied: Denied) -> Refused:
    """Return the refusal as an error whose next step names the intent as people do."""
    row = subject.row
    next_step = shortened(denied.next_step, row.intent_id, subject.shown)
    if next_step == "ackbox show":
        next_step = f"ackbox show {subject.shown}"
    exists = None
    if row.sends > 0 and row.state is not State.FAILED:
        exists = "Nothing was changed; whether the effect exists is as open as before."
    return Refused(
        denied.code, next_step, what=denied.detail or denied.code, effect_may_exist=exists
    )


def wake(outbox: Opened, lane: str) -> None:
    """Ring the lane and the consumer; what is lost costs a poll."""
    from ...outbox.shell.redis_bus import TokenBus

    url = outbox.settings.redis_url
    if url is not None:
        bus = TokenBus(url.reveal(), outbox.settings.outbox)
        bus.ring(lane, 1)
        bus.ring_results()
        bus.close()


def _follows(state: State) -> str:
    if state is State.QUEUED:
        return "a worker takes it next"
    if state in (State.COMMITTED, State.FAILED, State.COMPENSATED):
        return "the plan is told"
    return "the outbox goes on with it"
