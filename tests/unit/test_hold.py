"""The decision on a held row, and the pass that asks for it."""

from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ackbox.outbox.commands import (
    FindHeld,
    FindUndone,
    FinishUndo,
    HoldAnswer,
    HoldStep,
    OrderCompensation,
    PlanCompensation,
    Ring,
    RingResults,
)
from ackbox.outbox.contract import ToolContract
from ackbox.outbox.hold import HoldDecision, HoldReport, decide, hold_pass
from ackbox.outbox.model import GateDecision, Row, State, World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=60)
UNDOABLE = ToolContract("t", compensates=True)


def held(generation: int = 1, content: str = "b", **said: Any) -> Row:
    """Return the live held row."""
    return Row(
        seq=generation, generation=generation, state=State.HELD, fingerprint=content,
        content=content, **said,
    )  # fmt: skip


def earlier(state: State, generation: int = 0, content: str = "a", **said: Any) -> Row:
    """Return an earlier generation, superseded."""
    return Row(
        seq=generation, generation=generation, state=state, live=False, wanted=False,
        fingerprint=content, content=content, **said,
    )  # fmt: skip


def look(
    row: Row,
    *before: Row,
    gate: GateDecision | None = None,
    contract: ToolContract | None = UNDOABLE,
    ordered: tuple[int, ...] = (),
) -> HoldDecision:
    """Decide on a row behind earlier ones."""
    world = World(NOW, gate=gate, step=(*before, row))
    return decide(row, world, {one.seq: contract for one in before}, ordered)


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.COMPENSATED])
def test_release_behind_what_left_no_effect(state: State) -> None:
    """Each of the states without a standing effect lets the next generation go."""
    decision = look(held(), earlier(state))
    assert decision.move is not None
    assert decision.move.edge == "release"


@pytest.mark.parametrize(
    "state",
    [State.HELD, State.QUEUED, State.EXECUTING, State.AWAITING_ACK, State.INDETERMINATE],
)
def test_stay_behind_what_is_open(state: State) -> None:
    """Whatever may still take effect holds the next generation, and is named."""
    decision = look(held(), earlier(state))
    assert (decision.reason, decision.generation) == ("generation_unsettled", 0)
    assert not decision.needs_person


def test_adopt_the_same_content_only() -> None:
    """The caller's arguments and the stored ones both count."""
    assert look(held(content="a"), earlier(State.COMMITTED)).reason == "adopt"
    stored = replace(held(content="a"), content="a with another default")
    assert look(stored, earlier(State.COMMITTED)).move is None


def test_adopt_comes_before_release_and_names_the_owner() -> None:
    """An adopter of the same owner is in nobody's way."""
    owner = earlier(State.COMMITTED)
    adopter = earlier(State.COMMITTED, 1, adopted_from=0)
    decision = look(held(2, "a"), owner, adopter)
    assert decision.move is not None
    assert (decision.move.edge, decision.move.adopted_from) == ("adopt", 0)


def test_nothing_is_adopted_during_its_undo() -> None:
    """Hole 7a."""
    decision = look(held(content="a"), earlier(State.COMMITTED, undo=9))
    assert (decision.move, decision.reason) == (None, "compensation_open")


def test_a_divergence_comes_first_and_needs_a_person() -> None:
    """Neither adopt nor release while it is open."""
    row = held(content="a", diverged_at=NOW)
    for before in (earlier(State.COMMITTED), earlier(State.FAILED)):
        decision = look(row, before)
        assert (decision.reason, decision.needs_person) == ("divergence", True)


def test_the_gate_clock_starts_when_only_the_gate_is_left() -> None:
    """Hole 31: not while a generation is open; also with a compensation still to come."""
    gate = GateDecision.OPEN
    assert look(held(), earlier(State.FAILED), gate=gate).starts_gate_clock
    assert look(held(), earlier(State.COMMITTED), gate=gate).starts_gate_clock
    waits = look(held(), earlier(State.INDETERMINATE), gate=gate)
    assert (waits.reason, waits.starts_gate_clock) == ("generation_unsettled", False)


def test_an_approved_gate_releases() -> None:
    """And an open or rejected one does not."""
    assert look(held(0), gate=GateDecision.APPROVED).reason == "release"
    assert look(held(0), gate=GateDecision.OPEN).reason == "gate"
    assert look(held(0), gate=GateDecision.REJECTED).reason == "gate"


def test_the_effect_in_the_way_is_undone_after_the_approval() -> None:
    """Hole 31: the owner, not its adopter; only when nothing else holds the row."""
    owner = earlier(State.COMMITTED)
    adopter = earlier(State.COMMITTED, 1, adopted_from=0)
    assert look(held(2), owner, adopter).owner == 0
    assert look(held(2), owner, adopter, gate=GateDecision.OPEN).owner is None
    assert look(held(2), owner, earlier(State.INDETERMINATE, 1)).owner is None


def test_the_latest_effect_is_undone_first() -> None:
    """Two effects, after a person's release: backwards, and the same one is kept for adoption."""
    first, second = earlier(State.COMMITTED), earlier(State.COMMITTED, 1, "c")
    assert look(held(2), first, second).owner == 1
    assert look(held(2, "a"), first, second).owner == 1


@pytest.mark.parametrize(
    ("before", "contract", "ordered", "reason"),
    [
        (earlier(State.COMMITTED), ToolContract("t"), (), "person"),
        (earlier(State.COMMITTED), None, (), "person"),
        (earlier(State.COMMITTED), UNDOABLE, (0,), "compensation_failed"),
    ],
    ids=["no compensation", "never claimed", "ordered before"],
)
def test_what_only_a_person_can_move(
    before: Row, contract: ToolContract | None, ordered: tuple[int, ...], reason: str
) -> None:
    """Hole 22, 21."""
    decision = look(held(), before, contract=contract, ordered=ordered)
    assert (decision.reason, decision.needs_person) == (reason, True)


def test_two_effects_of_the_same_call_need_a_person() -> None:
    """Adopting one would hide the other."""
    decision = look(held(2, "a"), earlier(State.COMMITTED), earlier(State.COMMITTED, 1))
    assert (decision.reason, decision.needs_person) == ("person", True)


def test_an_effect_with_a_send_on_its_way_is_not_undone_yet() -> None:
    """Hole 6."""
    decision = look(held(), earlier(State.COMMITTED, quiet_at=LATER))
    assert (decision.owner, decision.reason) == (None, "not_quiet")


def test_a_row_past_its_deadline_waits_for_the_reaper() -> None:
    """Not wanted: neither adopt nor release nor undo."""
    decision = look(held(content="a", deadline=NOW), earlier(State.COMMITTED))
    assert (decision.move, decision.reason) == (None, "deadline")


@pytest.mark.parametrize("state", [State.QUEUED, State.EXECUTING])
def test_a_live_row_with_a_divergence_is_held(state: State) -> None:
    """And one without is left alone."""
    row = replace(held(), state=state)
    assert look(row).reason == "moved_on"
    decision = look(replace(row, diverged_at=NOW))
    assert decision.move is not None
    assert decision.move.edge == "hold"


def test_a_row_that_moved_on_is_left_alone() -> None:
    """Another pass was here first."""
    assert look(replace(held(), state=State.CANCELLED)) == HoldDecision("moved_on")


# -- the pass --------------------------------------------------------------------------------------


def drive(steps: Generator[Any, Any, HoldReport], replies: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Answer a pass by the names of its commands; returns its report and what it asked."""
    asked = [next(steps)]
    while True:
        reply = replies.get(type(asked[-1]).__name__)
        try:
            asked.append(steps.send(reply(asked[-1]) if callable(reply) else reply))
        except StopIteration as stop:
            return stop.value, asked


def test_a_pass_finishes_undos_first_and_rings_what_it_moved() -> None:
    """Released lanes get one token each; settled rows wake the result consumer."""
    answers = {
        1: HoldAnswer("release", "release", "mail"),
        2: HoldAnswer("release", "release", "mail"),
        3: HoldAnswer("adopt", "adopt", "http"),
        4: HoldAnswer(None, "gate", "http"),
    }
    report, asked = drive(
        hold_pass(10, 5),
        {
            "FindUndone": (7,),
            "FinishUndo": HoldAnswer("compensate", "compensate", ""),
            "FindHeld": (1, 2, 3, 4),
            "HoldStep": lambda command: answers[command.seq],
        },
    )
    assert asked[:3] == [FindUndone(10), FinishUndo(7), FindHeld(10)]
    assert asked[3:7] == [HoldStep(seq) for seq in (1, 2, 3, 4)]
    assert asked[7:] == [Ring("mail", 5), RingResults()]
    assert report == HoldReport(looked_at=4, moved=3, ordered=0, undone=1)


def test_a_pass_asks_the_adapter_before_it_orders() -> None:
    """The plan is made outside of any transaction."""
    report, asked = drive(
        hold_pass(10, 5),
        {
            "FindUndone": (),
            "FindHeld": (2,),
            "HoldStep": HoldAnswer(None, "compensation_open", "http", owner=1),
            "PlanCompensation": "the plan",
            "OrderCompensation": HoldAnswer("order", "compensation_open", "undo"),
        },
    )
    assert asked[3:] == [PlanCompensation(1), OrderCompensation(2, 1, "the plan"), Ring("undo", 5)]
    assert (report.moved, report.ordered) == (0, 1)


def test_an_idle_pass_rings_nobody() -> None:
    """No row, no token."""
    report, asked = drive(hold_pass(10, 5), {"FindUndone": (), "FindHeld": ()})
    assert asked == [FindUndone(10), FindHeld(10)]
    assert report == HoldReport()
