"""Several undos: latest first, dependants before what they stand on, and a stop is a stop."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.commands import PlanCompensation, Ring
from ackbox.outbox.compensate import (
    NO_HANDLE,
    NOT_QUIET,
    OrderedCompensation,
    compensation_request,
)
from ackbox.outbox.model import Refusal, State
from ackbox.outbox.undo_order import (
    UNDO_CYCLE,
    CallOff,
    FindUndoSteps,
    OrderUndo,
    UndoReport,
    UndoRequest,
    UndoStep,
    UndoWord,
    undo_entries,
    undo_order,
    undo_pass,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
PLAN = compensation_request("undo", 1, "lane", {})


def step(
    seq: int, state: State = State.COMMITTED, settled: int | None = 0, **said: Any
) -> UndoStep:
    """Return a step named s<seq>, settled so many seconds after the beginning."""
    at = None if settled is None else NOW + timedelta(seconds=settled)
    return UndoStep(seq, f"s{seq}", state, at, **said)


def ordered(steps: Iterable[UndoStep], built_on: Iterable[tuple[str, str]] = ()) -> list[int]:
    """Return the seqs in the order of the undoing."""
    order = undo_order(steps, built_on)
    assert not isinstance(order, Refusal)
    return [one.seq for one in order]


def words(*steps: UndoStep, again: bool = False) -> list[str]:
    """Return the word of each of these steps, which stand in the order of the undoing."""
    return [entry.word.value for entry in undo_entries(steps, again=again)]


def test_the_latest_effect_is_undone_first() -> None:
    """By when it was settled, not by when it was asked for."""
    assert ordered([step(1, settled=30), step(2, settled=10), step(3, settled=20)]) == [1, 3, 2]


def test_what_is_not_settled_counts_as_the_latest() -> None:
    """Whatever comes of it comes after the others."""
    steps = [step(1, State.AWAITING_ACK, None), step(2, settled=99)]
    assert ordered(steps) == [1, 2]


def test_what_was_built_on_a_step_comes_before_it() -> None:
    """Although the step below was settled later: its proof came late."""
    steps = [step(1, settled=90), step(2, settled=10), step(3, settled=20)]
    assert ordered(steps, [("s2", "s1")]) == [3, 2, 1]


def test_a_circle_is_refused() -> None:
    """No order would be right, so nothing is undone."""
    refusal = undo_order([step(1), step(2), step(3)], [("s1", "s2"), ("s2", "s1")])
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.detail) == (UNDO_CYCLE, "built on each other: s1, s2")


def test_an_adopter_moves_with_the_owner_of_the_effect() -> None:
    """One effect is undone once."""
    assert ordered([step(1), step(2, settled=5, adopted=True)]) == [1]


@pytest.mark.parametrize(
    ("first", "word", "second"),
    [
        (step(2, State.COMPENSATED), "undone", "next"),
        (step(2, State.FAILED), "nothing", "next"),
        (step(2, State.CANCELLED), "nothing", "next"),
        (step(2), "next", "later"),
        (step(2, undo_open=True, undo_state=State.QUEUED), "open", "later"),
        (step(2, undo_open=True, undo_state=State.INDETERMINATE), "open", "later"),
        (step(2, undo_open=True, parked=True), "stopped", "later"),
        (step(2, undo_state=State.FAILED), "stopped", "later"),
        (step(2, undo_state=State.CANCELLED), "stopped", "later"),
        (step(2, State.AWAITING_ACK, None), "waiting", "later"),
        (step(2, State.INDETERMINATE, None), "next", "later"),
        (step(2, State.QUEUED, None), "unsent", "later"),
        (step(2, State.HELD, None), "unsent", "later"),
        (step(2, State.EXECUTING, None), "unsent", "later"),
    ],
)
def test_one_that_is_not_undone_stops_the_later_ones(
    first: UndoStep, word: str, second: str
) -> None:
    """The next one has its turn only where nothing is left of the one before it."""
    assert words(first, step(1)) == [word, second]


def test_a_failed_undo_is_asked_for_again_by_a_new_request_only() -> None:
    """A repeated pass would hammer the tool otherwise."""
    failed = step(2, undo_state=State.FAILED)
    assert words(failed, again=True) == ["next"]
    assert undo_entries([failed])[0].code == "compensation_failed"


def test_everything_unsent_is_called_off_whatever_stands_before_it() -> None:
    """It has no effect to wait for."""
    assert words(step(3, undo_state=State.FAILED), step(2, State.QUEUED, None)) == [
        "stopped", "unsent",
    ]  # fmt: skip


# -- the pass ------------------------------------------------------------------------------------


class Rows:
    """A few steps that answer the pass, and a log of what it asked for."""

    def __init__(self, steps: Iterable[UndoStep], refusals: dict[int, str] | None = None) -> None:
        self.steps = {one.seq: one for one in steps}
        self.refusals = refusals or {}
        self.asked: list[int] = []
        self.called_off: list[int] = []
        self.rung: list[str] = []

    def change(self, seq: int, **fields: Any) -> None:
        """Let something become of a step."""
        self.steps[seq] = replace(self.steps[seq], **fields)

    def answer(self, command: Any) -> Any:
        """Answer one command."""
        match command:
            case FindUndoSteps():
                return tuple(self.steps.values())
            case CallOff(seq=seq):
                self.called_off.append(seq)
                self.change(seq, state=State.CANCELLED)
                return True
            case PlanCompensation(owner=seq):
                code = self.refusals.get(seq, "")
                return Refusal(code) if code == NO_HANDLE else PLAN
            case OrderUndo(seq=seq):
                return self._order(seq)
            case Ring(lane=lane):
                self.rung.append(lane)
                return True

    def _order(self, seq: int) -> OrderedCompensation | Refusal:
        if seq in self.refusals:
            return Refusal(self.refusals[seq])
        assert not self.steps[seq].undo_open, "asked for twice"
        self.asked.append(seq)
        self.change(seq, undo_open=True, undo_state=State.QUEUED)
        return OrderedCompensation(seq, 100 + seq, "undo", 0, created=True)


def run(rows: Rows, stop_after: int | None = None, **said: Any) -> UndoReport | None:
    """Run one pass; None where it was cut short after so many answers."""
    request = UndoRequest("default", tuple(s.intent_id for s in rows.steps.values()), **said)
    steps = undo_pass(request, 10)
    reply: Any = None
    answers = 0
    while True:
        try:
            command = steps.send(reply)
        except StopIteration as end:
            report: UndoReport = end.value
            return report
        reply = rows.answer(command)
        answers += 1
        if answers == stop_after:
            return None


def entries(report: UndoReport | None) -> list[tuple[int, str, str | None]]:
    """Return what a report says."""
    assert report is not None
    return [(one.seq, one.word.value, one.code) for one in report.entries]


def test_one_is_asked_for_at_a_time() -> None:
    """And a repeated pass asks for nothing more while it is open."""
    rows = Rows([step(1, settled=1), step(2, settled=2)])
    first, again = run(rows), run(rows)
    assert entries(first) == entries(again) == [(2, "open", None), (1, "later", None)]
    assert (rows.asked, rows.rung) == ([2], ["lane"])


def test_unsent_steps_are_called_off_before_anything_is_undone() -> None:
    """The rows are looked at again, since one may have been sent meanwhile."""
    rows = Rows([step(1), step(2, State.QUEUED, None)])
    assert entries(run(rows)) == [(2, "nothing", None), (1, "open", None)]
    assert (rows.called_off, rows.asked) == ([2], [1])


def test_one_that_was_sent_meanwhile_is_waited_for() -> None:
    """Calling off lost against the mark."""
    rows = Rows([step(1), step(2, State.EXECUTING, None)])
    plain = rows.answer

    def answer(command: Any) -> Any:
        if isinstance(command, CallOff):
            rows.change(2, state=State.AWAITING_ACK)
            return False
        return plain(command)

    rows.answer = answer  # type: ignore[method-assign]
    assert entries(run(rows)) == [(2, "waiting", "awaiting_ack"), (1, "later", None)]
    assert rows.asked == []


@pytest.mark.parametrize(
    ("code", "word"), [(NOT_QUIET, "waiting"), (NO_HANDLE, "stopped"), ("guard_failed", "stopped")]
)
def test_a_refusal_stops_the_later_ones(code: str, word: str) -> None:
    """A row that is not quiet yet is asked for again by the next pass."""
    rows = Rows([step(1, settled=1), step(2, settled=2)], {2: code})
    assert entries(run(rows)) == [(2, word, code), (1, "later", None)]
    assert rows.asked == []


def test_a_circle_asks_for_nothing() -> None:
    """Not even for what stands outside of it."""
    rows = Rows([step(1), step(2), step(3)])
    report = run(rows, built_on=(("s1", "s2"), ("s2", "s1")))
    assert report is not None
    assert (report.refusal is not None, report.done, rows.asked) == (True, False, [])


plans = st.lists(st.integers(0, 5), min_size=1, max_size=6)


@given(plans, st.data())
def test_however_often_it_is_cut_short_each_is_undone_once_and_in_order(
    settled: list[int], data: st.DataObject
) -> None:
    """Passes that die anywhere, undos that end between them: one order, nothing twice."""
    steps = [step(seq, settled=at) for seq, at in enumerate(settled, start=1)]
    pairs = [
        (f"s{above}", f"s{below}")
        for above in range(2, len(steps) + 1)
        for below in data.draw(st.lists(st.integers(1, above - 1), max_size=2))
    ]
    rows = Rows(steps)
    for _ in range(60):
        report = run(rows, data.draw(st.none() | st.integers(1, 4)), built_on=tuple(pairs))
        if report is not None and report.done:
            break
        for seq, one in rows.steps.items():
            if one.undo_open and data.draw(st.booleans()):
                rows.change(seq, undo_open=False, state=State.COMPENSATED)
    order = rows.asked
    assert len(set(order)) == len(order)
    for above, below in pairs:
        if int(below[1:]) in order:
            assert order.index(int(above[1:])) < order.index(int(below[1:]))
    assert order == ordered(steps, pairs)[: len(order)]


@given(plans, st.integers(1, 6))
def test_nothing_after_a_failed_one_is_asked_for(settled: list[int], failing: int) -> None:
    """Whatever the order, those that come later stay as they are."""
    rows = Rows([step(seq, settled=at) for seq, at in enumerate(settled, start=1)])
    order = ordered(rows.steps.values())
    for _ in range(3 * len(settled)):
        run(rows)
        for seq, one in rows.steps.items():
            if one.undo_open:
                ended = State.FAILED if seq == failing else State.COMPENSATED
                undone = one.state if seq == failing else State.COMPENSATED
                rows.change(seq, undo_open=False, undo_state=ended, state=undone)
    until = order.index(failing) + 1 if failing in order else len(order)
    assert rows.asked == order[:until]
    last = run(rows)
    assert last is not None
    assert last.done is (failing not in order)
    assert UndoWord.NEXT not in {one.word for one in last.entries}
