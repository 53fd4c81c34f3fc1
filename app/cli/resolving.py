"""`ackbox resolve`: a person says what became of an effect, or has it undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ...outbox.errors import Refused
from ...outbox.model import Actor, Refusal
from ...outbox.people import Denied, Said, Stated
from .again import again
from .command import command
from .opening import Opened, opened
from .options import (
    STORE,
    actor_option,
    fence_option,
    json_option,
    namespace_option,
    reason_option,
    settings_options,
)
from .output import print_json
from .speaking import Subject, answer, people_store, said_by, subject_of, wake

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ...outbox.compensate import CompensationRequest, OrderedCompensation

_KINDS = ("landed", "not_landed", "undone", "compensate")


@command(
    "resolve",
    example="""ackbox resolve r7:mail-customer --landed "<id-in-mailbox>" --reason "seen there"
ackbox resolve r7:mail-customer --not-landed --requeue --reason "not in the outbox" --fence 2""",
)
@click.argument("name", metavar="ID")
@click.option("--landed", metavar="REF", help="It landed; REF is where it can be seen.")
@click.option("--not-landed", is_flag=True, help="It did not land: it is failed.")
@click.option("--requeue", is_flag=True, help="With --not-landed: send it once more instead.")
@click.option(
    "--may-duplicate", is_flag=True,
    help="With --requeue: although the tool may not recognise the key, so it could happen twice.",
)  # fmt: skip
@click.option(
    "--drop-handle", is_flag=True,
    help="With --requeue --may-duplicate: forget what an earlier attempt prepared (a draft).",
)  # fmt: skip
@click.option("--undone", is_flag=True, help="It was undone by hand.")
@click.option("--compensate", is_flag=True, help="Have the tool's own compensation undo it.")
@reason_option
@fence_option
@actor_option
@namespace_option
@json_option
@settings_options(*STORE, "tools")
@click.pass_context
def resolve(ctx: click.Context, /, name: str, namespace: str, as_json: bool, **given: Any) -> None:
    """Say what became of an effect that nobody knows about. It is kept on record.

    The statement quotes the fence that you saw; if the row has moved on since, it is refused and
    nothing is changed. While a send may still arrive it is refused as well (not_quiet).
    """
    kind = _kind(given)
    with opened(ctx.params) as outbox:
        subject = subject_of(outbox, name, namespace)
        said = said_by(subject, given, _statement(kind, given))
        if kind == "compensate":
            _print_order(outbox, subject, said, _order(outbox, subject, said), as_json)
            return
        answer(outbox, subject, said, _state(outbox, kind, said, given), as_json=as_json)


def _kind(given: Mapping[str, Any]) -> str:
    chosen = [kind for kind in _KINDS if given[kind] not in (None, False)]
    if len(chosen) != 1:
        raise click.UsageError("say one of --landed REF, --not-landed, --undone, --compensate")
    if chosen[0] != "not_landed" and given["requeue"]:
        raise click.UsageError("--requeue goes with --not-landed")
    if not given["requeue"] and (given["may_duplicate"] or given["drop_handle"]):
        raise click.UsageError("--may-duplicate and --drop-handle go with --requeue")
    return chosen[0]


def _statement(kind: str, given: Mapping[str, Any]) -> str:
    return {
        "landed": f"it landed as {given['landed']}",
        "not_landed": "it did not land" + ("; send it again" if given["requeue"] else ""),
        "undone": "it was undone by hand",
        "compensate": "undo it with the tool's compensation",
    }[kind]


def _state(outbox: Opened, kind: str, said: Said, given: Mapping[str, Any]) -> Stated | Denied:
    people = people_store(outbox)
    if kind == "landed":
        return people.landed(said, given["landed"])
    if kind == "undone":
        return people.undone(said)
    risks = {name: given[name] for name in ("requeue", "may_duplicate", "drop_handle")}
    return people.not_landed(said, **risks)


def _order(outbox: Opened, subject: Subject, said: Said) -> OrderedCompensation:
    """Order the compensation in the transaction that compares the fence. Raises Refused."""
    from ...outbox.shell.compensation_store import order_compensation
    from ...outbox.shell.rows import RowReader

    plan = _plan(outbox, subject)
    reader = RowReader(outbox.statements, outbox.limits)

    def order(connection: Connection) -> OrderedCompensation | Refusal:
        reader.lock_step(connection, said.seq)
        locked = reader.lock_step(connection, said.seq)
        row = next(one.row for one in locked if one.row.seq == said.seq)
        if row.fence != said.fence:
            detail = f"the row has moved on since you looked; its fence is {row.fence} now"
            return Refusal("stale_fence", detail)
        return order_compensation(
            connection, outbox.statements, reader, seq=said.seq, plan=plan,
            actor=Actor.PERSON, actor_name=said.actor_name, reason=said.reason,
        )  # fmt: skip

    ordered = outbox.run(order)
    if isinstance(ordered, Refusal):
        raise _refused(subject, ordered)
    return ordered


def _plan(outbox: Opened, subject: Subject) -> CompensationRequest:
    from ...outbox.shell.compensation_store import undo_target
    from ...tool_adapters.compensating import plan_compensation
    from ..parts import load_registry

    registry = load_registry(outbox.settings, outbox.limits)
    found = outbox.run(lambda c: undo_target(c, outbox.statements, subject.row.seq))
    assert found is not None, "the row was just read"
    plan = plan_compensation(registry, found.tool, found.version, found.target)
    if isinstance(plan, Refusal):
        raise _refused(subject, plan)
    return plan


def _refused(subject: Subject, refusal: Refusal) -> Refused:
    next_step = f"ackbox show {subject.shown}"
    if refusal.code == "tool_unknown":
        next_step = f"ackbox resolve {subject.shown} --compensate --tools MODULE --reason TEXT"
    return Refused(refusal.code, next_step, what=refusal.detail or None)


def _print_order(
    outbox: Opened, subject: Subject, said: Said, ordered: OrderedCompensation, as_json: bool
) -> None:
    wake(outbox, subject.row.lane)
    if as_json:
        print_json({
            "target": ordered.target, "seq": ordered.seq, "namespace": subject.row.namespace,
            "intent_id": ordered.intent_id, "generation": ordered.generation,
            "created": ordered.created, "withdrawn": ordered.withdrawn,
        })  # fmt: skip
    elif ordered.withdrawn:
        click.echo(f"cancelled: nothing had been sent · recorded for {said.actor_name}")
    else:
        click.echo(f"the compensation is on its way · recorded for {said.actor_name}")
        click.echo(again(f"ask for it: ackbox wait {ordered.intent_id}"))
