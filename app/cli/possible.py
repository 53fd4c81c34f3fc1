"""What a person may still do about a row: what the outbox itself would not refuse now, or soon.

Decides by asking the very rules that judge a statement, so that nothing is offered in vain. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...outbox import people
from ...outbox.compensate import NOT_QUIET, compensation_request, refusal_to_undo
from ...outbox.model import Row, State, World
from ...outbox.people import Said, Wish
from ...outbox.transitions import EDGE

_RISKED = ("clear.person", "release.person")
"""Statements that a flag lets pass although the effect could then happen twice."""
_UNDOABLE = (State.COMMITTED, State.INDETERMINATE)


@dataclass(frozen=True, slots=True)
class Subject:
    """A row with all that is known of it: its name, and by what its effect could be undone."""

    row: Row
    world: World
    name: str
    compensates: int | None
    handle: str | None
    has_tools: bool = False
    """Whether a command finds the tool's own code without being told where."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A command that would be taken, at once or in so many seconds."""

    command: str
    in_seconds: float = 0.0


def offers(subject: Subject, divergence: int | None) -> list[Offer]:
    """Return the commands that would not be refused; `divergence` is the number to quote."""
    row = subject.row
    if row.diverged_at is not None:
        return [Offer(command) for command in _on_divergence(subject, divergence)]
    if row.undo is not None:
        return []
    return [*_said(subject), *_called_off(subject), *_undone(subject)]


def _on_divergence(subject: Subject, divergence: int | None) -> Iterator[str]:
    quoted = "N" if divergence is None else str(divergence)
    close = f"ackbox close-divergence {subject.name} {quoted}"
    yield from (f"{close} --stands --reason TEXT", f"{close} --undone --reason TEXT")
    if subject.row.state is State.HELD:
        yield f"ackbox release {subject.name} --divergence {quoted} --reason TEXT"


def _said(subject: Subject) -> Iterator[Offer]:
    """Yield the statements; with the flag that takes on a risk where nothing else is in the way."""
    for command, wish in _statements(subject):
        offer = _judged(subject, command, wish)
        if offer is None and wish.move.edge in _RISKED:
            risked = Wish(replace(wish.move, may_duplicate=True), wish.outcome)
            offer = _judged(subject, f"{command} --may-duplicate", risked)
        if offer is not None:
            yield replace(offer, command=f"{offer.command} --reason TEXT")


def _statements(subject: Subject) -> Iterator[tuple[str, Wish]]:
    row, name = subject.row, subject.name
    said = Said(row.seq, "a person", "any", row.fence)
    release = people.release(row, said, may_duplicate=False, divergence=None)
    yield f"ackbox release {name}", release
    yield f"ackbox resolve {name} --landed REF", people.landed(row, said, "REF")
    yield f"ackbox resolve {name} --not-landed", people.not_landed(row, said)
    yield (
        f"ackbox resolve {name} --not-landed --requeue",
        people.not_landed(row, said, requeue=True),
    )
    yield f"ackbox resolve {name} --undone", people.undone(row, said)


def _judged(subject: Subject, command: str, wish: Wish) -> Offer | None:
    """Return the offer of a statement, for later where only a send that may arrive forbids it."""
    row, world = subject.row, subject.world
    denied = people.denial(row, wish, world, subject.name)
    if denied is None:
        return Offer(command)
    if denied.code != NOT_QUIET or row.quiet_at is None:
        return None
    then = replace(world, now=row.quiet_at)
    if people.denial(row, wish, then, subject.name) is not None:
        return None
    return Offer(command, (row.quiet_at - world.now).total_seconds())


def _called_off(subject: Subject) -> Iterator[Offer]:
    row = subject.row
    if row.state in EDGE["withdraw.cancel"].sources and row.live and subject.compensates is None:
        yield Offer(f"ackbox cancel {subject.name}")


def _undone(subject: Subject) -> Iterator[Offer]:
    row, declared = subject.row, subject.world.contract
    if declared is None or not declared.compensates or row.state not in _UNDOABLE:
        return
    if row.adopted_from is not None or subject.compensates is not None:
        return
    request = compensation_request("any", 1, "any", {}, ensure_absent=declared.ensure_absent)
    where = "" if subject.has_tools else " --tools MODULE"
    command = f"ackbox resolve {subject.name} --compensate{where} --reason TEXT"
    quiet_at = max(row.quiet_at or subject.world.now, subject.world.now)
    then = replace(subject.world, now=quiet_at)
    if refusal_to_undo(row, then, request, subject.handle) is None:
        yield Offer(command, (quiet_at - subject.world.now).total_seconds())
