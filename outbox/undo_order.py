"""In which order several effects are undone, and the pass that asks for the next one.

The latest effect comes first, and what was built on a step comes before that step, whenever it was
settled. One at a time: the next is asked for when the one before it is undone, and whatever is not
known or did not work stops all that come after it. Level-triggered: each pass decides from the rows
as they stand, so that a pass that is repeated, or was cut short, asks for nothing twice. Pure; may
import `model`, `compensate` and `commands`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from .commands import PlanCompensation, Ring
from .compensate import NOT_QUIET, CompensationRequest, OrderedCompensation
from .model import CALLED_OFF_STATES, WITHDRAWABLE_STATES, Refusal, State

UNDO_CYCLE = "undo_cycle"
_NOT_SETTLED = datetime.max.replace(tzinfo=UTC)


class UndoWord(StrEnum):
    """How far the undoing of one effect is."""

    UNDONE = "undone"
    """In: its compensation is committed, or a person undid it by hand."""
    NOTHING = "nothing"
    """In: it failed or was called off, so there is nothing to undo."""
    UNSENT = "unsent"
    """In: nothing was sent. It is called off before anything is undone."""
    NEXT = "next"
    """In: everything before it is undone. It is asked for now."""
    OPEN = "open"
    """In: its compensation is under way."""
    WAITING = "waiting"
    """In: its own outcome is not settled, or a send of it may still arrive."""
    STOPPED = "stopped"
    """In: its compensation ended without undoing, or was refused, or is a person's turn."""
    LATER = "later"
    """In: one before it is not undone."""


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """Effects to undo: all generations of the named steps, by intent_id.

    `built_on` holds pairs (step, the step that it was built on). `again`: this is a new request,
    so that what a compensation has failed to undo is asked for once more; a repeated pass says no.
    """

    namespace: str
    steps: tuple[str, ...]
    built_on: tuple[tuple[str, str], ...] = ()
    again: bool = False


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One generation that may own an effect, and the compensation that it had last."""

    seq: int
    intent_id: str
    state: State
    settled_at: datetime | None = None
    adopted: bool = False
    """Another generation owns the effect, and this row moves with it."""
    undo_open: bool = False
    undo_state: State | None = None
    """Of its latest compensation; None where it never had one."""
    parked: bool = False
    """It, or its open compensation, is a person's turn."""


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """How far one effect is, in the order of the undoing. `code` says why where it stopped."""

    seq: int
    intent_id: str
    word: UndoWord
    code: str | None = None


@dataclass(frozen=True, slots=True)
class UndoReport:
    """What one pass found and did. `refusal`: nothing at all could be asked for."""

    entries: tuple[UndoEntry, ...] = ()
    refusal: Refusal | None = None

    @property
    def done(self) -> bool:
        """Whether no effect is left to undo."""
        finished = (UndoWord.UNDONE, UndoWord.NOTHING)
        return self.refusal is None and all(one.word in finished for one in self.entries)


@dataclass(frozen=True, slots=True)
class FindUndoSteps:
    """Reply: tuple[UndoStep, ...], every generation of the named steps."""

    namespace: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallOff:
    """Withdraw a row of which nothing was sent. Reply: bool, whether it still was one."""

    seq: int


@dataclass(frozen=True, slots=True)
class OrderUndo:
    """Insert the intent that undoes a row's effect. Reply: OrderedCompensation or Refusal.

    `plan` is what PlanCompensation was answered with. One that is open is returned as it is.
    """

    seq: int
    plan: CompensationRequest


def undo_order(
    steps: Iterable[UndoStep], built_on: Iterable[tuple[str, str]] = ()
) -> tuple[UndoStep, ...] | Refusal:
    """Return the steps in the order in which they are undone; adopters are left out.

    What is not settled yet counts as the latest. Steps that were built on each other in a circle
    are refused: no order would be right.
    """
    left = {step.seq: step for step in steps if not step.adopted}
    pairs = set(built_on)
    order: list[UndoStep] = []
    while left:
        names = {step.intent_id for step in left.values()}
        needed = {below for above, below in pairs if above in names}
        free = [step for step in left.values() if step.intent_id not in needed]
        if not free:
            circle = ", ".join(sorted(names & needed))
            return Refusal(UNDO_CYCLE, f"built on each other: {circle}")
        latest = max(free, key=_settled)
        order.append(left.pop(latest.seq))
    return tuple(order)


def _settled(step: UndoStep) -> tuple[datetime, int]:
    return step.settled_at or _NOT_SETTLED, step.seq


def undo_entries(order: Iterable[UndoStep], *, again: bool = False) -> tuple[UndoEntry, ...]:
    """Return how far each effect is; at most one is NEXT. This alone is the dry run of a pass."""
    entries: list[UndoEntry] = []
    stopped = False
    for step in order:
        word, code = _stands(step, again)
        if stopped and word not in (UndoWord.UNDONE, UndoWord.NOTHING, UndoWord.UNSENT):
            word, code = UndoWord.LATER, None
        stopped = stopped or word not in (UndoWord.UNDONE, UndoWord.NOTHING)
        entries.append(UndoEntry(step.seq, step.intent_id, word, code))
    return tuple(entries)


def _stands(step: UndoStep, again: bool) -> tuple[UndoWord, str | None]:
    if step.state in CALLED_OFF_STATES:
        undone = step.state is State.COMPENSATED
        return (UndoWord.UNDONE if undone else UndoWord.NOTHING), None
    if step.state in WITHDRAWABLE_STATES:
        return UndoWord.UNSENT, None
    if step.undo_open:
        return (UndoWord.STOPPED, "parked") if step.parked else (UndoWord.OPEN, None)
    if step.state is State.AWAITING_ACK:
        return UndoWord.WAITING, step.state.value
    if step.undo_state in CALLED_OFF_STATES and not again:
        return UndoWord.STOPPED, "compensation_failed"
    return UndoWord.NEXT, None


def undo_pass(request: UndoRequest, token_limit: int) -> Generator[Any, Any, UndoReport]:
    """Call off what was not sent, then ask for the one effect whose turn it is."""
    report = yield from _look(request)
    unsent = [one.seq for one in report.entries if one.word is UndoWord.UNSENT]
    for seq in unsent:
        yield CallOff(seq)
    if unsent:
        # One of them may have been sent meanwhile; then its outcome comes before everything else.
        report = yield from _look(request)
    for entry in report.entries:
        if entry.word is UndoWord.NEXT:
            return _with(report, (yield from _ask(entry, token_limit)))
    return report


def _look(request: UndoRequest) -> Generator[Any, Any, UndoReport]:
    steps: tuple[UndoStep, ...] = yield FindUndoSteps(request.namespace, request.steps)
    order = undo_order(steps, request.built_on)
    if isinstance(order, Refusal):
        return UndoReport(refusal=order)
    return UndoReport(undo_entries(order, again=request.again))


def _ask(entry: UndoEntry, token_limit: int) -> Generator[Any, Any, UndoEntry]:
    answer: CompensationRequest | OrderedCompensation | Refusal
    answer = plan = yield PlanCompensation(entry.seq)
    if isinstance(plan, CompensationRequest):
        answer = yield OrderUndo(entry.seq, plan)
    if isinstance(answer, Refusal):
        word = UndoWord.WAITING if answer.code == NOT_QUIET else UndoWord.STOPPED
        return UndoEntry(entry.seq, entry.intent_id, word, answer.code)
    assert isinstance(plan, CompensationRequest), "only a plan is ordered"
    yield Ring(plan.content.lane, token_limit)
    return UndoEntry(entry.seq, entry.intent_id, UndoWord.OPEN)


def _with(report: UndoReport, entry: UndoEntry) -> UndoReport:
    entries = [entry if one.seq == entry.seq else one for one in report.entries]
    return UndoReport(tuple(entries))
