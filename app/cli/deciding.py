"""`ackbox release`, `close-divergence` and `cancel`: what only a person may let go or call off."""

from __future__ import annotations

from typing import Any

import click

from ...outbox.people import Verdict
from .asking import print_told
from .command import command
from .exits import ExitCode, exit_code_of
from .faults import next_steps
from .naming import find
from .opening import opened
from .options import (
    STORE,
    actor_option,
    fence_option,
    json_option,
    namespace_option,
    reason_option,
    settings_options,
)
from .speaking import answer, people_store, said_by, subject_of


@command(
    "release",
    example="""ackbox release r7:refund --reason "checked at the bank" --may-duplicate
ackbox release r7:refund --reason "the second mail is wanted" --divergence 812""",
)
@click.argument("name", metavar="ID")
@click.option(
    "--may-duplicate", is_flag=True,
    help="Although an earlier generation took effect: it then happens a second time.",
)  # fmt: skip
@click.option(
    "--divergence", type=click.IntRange(min=1), metavar="N",
    help="The divergence that you saw in `ackbox show`; it ends with the release.",
)  # fmt: skip
@reason_option
@fence_option
@actor_option
@namespace_option
@json_option
@settings_options(*STORE)
@click.pass_context
def release(
    ctx: click.Context, /, name: str, namespace: str, as_json: bool, may_duplicate: bool,
    divergence: int | None, **given: Any,
) -> None:  # fmt: skip
    """Let a held intent go although something stands in its way. It is kept on record."""
    with opened(ctx.params) as outbox:
        subject = subject_of(outbox, name, namespace)
        said = said_by(subject, given, "release it", needs_fence=divergence is None)
        stated = people_store(outbox).release(
            said, may_duplicate=may_duplicate, divergence=divergence
        )
        answer(outbox, subject, said, stated, as_json=as_json)


@command(
    "close-divergence",
    example='ackbox close-divergence r7:refund 812 --stands --reason "the refund is right"',
)
@click.argument("name", metavar="ID")
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@click.option("--stands", is_flag=True, help="The effect exists and may stay.")
@click.option("--undone", is_flag=True, help="The effect was undone by hand.")
@reason_option
@actor_option
@namespace_option
@json_option
@settings_options(*STORE)
@click.pass_context
def close_divergence(
    ctx: click.Context, /, name: str, number: int, stands: bool, undone: bool, namespace: str,
    as_json: bool, **given: Any,
) -> None:  # fmt: skip
    """Say what is true where an effect contradicts what was settled. No state is moved.

    N is the divergence that you saw in `ackbox show`.
    """
    if stands == undone:
        raise click.UsageError("say one of --stands, --undone")
    verdict = Verdict.STANDS if stands else Verdict.UNDONE
    with opened(ctx.params) as outbox:
        subject = subject_of(outbox, name, namespace)
        said = said_by(subject, given, f"the effect {verdict.value}", needs_fence=False)
        closed = people_store(outbox).close_divergence(said, number, verdict)
        answer(outbox, subject, said, closed, as_json=as_json)


@command("cancel", example="ackbox cancel r7:mail-customer")
@click.argument("name", metavar="ID")
@namespace_option
@json_option
@settings_options(*STORE)
@click.pass_context
def cancel(ctx: click.Context, /, name: str, namespace: str, as_json: bool, **_: Any) -> None:
    """Call a step off. What was sent already may still take effect, and is told.

    Exit code: 0 cancelled, 3 recorded (a send is open), 6 refused (it took effect).
    """
    with opened(ctx.params) as outbox:
        named = find(outbox, name, namespace=namespace, exact=True)
        steps = {"use_compensate": f"ackbox resolve {named.shown} --compensate --reason TEXT"}
        names = {named.intent_id: named.shown}
        with outbox.planner(named.namespace) as planner, next_steps(steps, names):
            told = planner.cancel(named.intent_id)
    print_told(told, named.shown, as_json=as_json)
    ctx.exit(ExitCode.DONE if told.word == "cancelled" else exit_code_of(told.word))
