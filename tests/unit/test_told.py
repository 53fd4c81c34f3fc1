"""What is told of a step, over all combinations of two generations."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from ackbox.outbox.model import CALLED_OFF_STATES, SETTLED_STATES, GateDecision, Row, State
from ackbox.outbox.telling import Generation, Telling, tell
from ackbox.outbox.told import (
    RESULT_DIGEST,
    AwaitingApproval,
    Cancelled,
    CancelRecorded,
    Committed,
    CommittedNoResult,
    Compensated,
    Failed,
    InFlight,
    Superseded,
    Told,
    UnknownOutcome,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOTHING_HAPPENED = (Failed, Cancelled, Superseded)
KINDS = (
    InFlight, AwaitingApproval, Committed, CommittedNoResult, Failed, UnknownOutcome, Cancelled,
    Compensated, Superseded, CancelRecorded,
)  # fmt: skip


def generation(state: State, number: int = 0, **said: Any) -> Generation:
    """Return one generation; keyword arguments go to the row or to the generation."""
    of_row = {name: said.pop(name) for name in list(said) if name in Row.__dataclass_fields__}
    row = Row(seq=number + 1, generation=number, state=state, **of_row)
    if state is State.COMMITTED:
        said.setdefault("ref", f"T-{number}")
    return Generation(row, "default", "i", "tickets.create", **said)


def told(*step: Generation, of: int | None = None) -> Telling:
    """Tell the live generation, or the given one."""
    telling = tell(step, of, NOW)
    assert telling is not None
    return telling


def two(old: State, new: State, **said: Any) -> tuple[Generation, Generation]:
    """Return a superseded generation 0 and a live generation 1."""
    return generation(old, live=False, wanted=False), generation(new, 1, **said)


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_nothing_is_told_as_not_happened_while_it_might_have(old: State, new: State) -> None:
    """failed, cancelled and superseded need every earlier generation to be called off."""
    first, second = two(old, new)
    of_new = told(first, second).told
    if old not in CALLED_OFF_STATES:
        assert not isinstance(of_new, NOTHING_HAPPENED)
    third = told(first, replace(second, row=replace(second.row, live=False)),
                 generation(State.QUEUED, 2), of=1).told  # fmt: skip
    if old not in CALLED_OFF_STATES:
        assert not isinstance(third, NOTHING_HAPPENED)


@pytest.mark.parametrize(("old", "new"), list(product(State, State)))
def test_a_committed_earlier_generation_is_told_beside(old: State, new: State) -> None:
    """Its reference stands in `also_happened`, whatever the live one is told as."""
    also = told(*two(old, new)).told.also_happened
    assert [other.ref for other in also] == (["T-0"] if old is State.COMMITTED else [])


@pytest.mark.parametrize("state", list(State))
def test_a_divergence_makes_the_step_unknown(state: State) -> None:
    """On whichever generation it stands, and nothing is waited for but a person."""
    first, second = two(State.FAILED, state)
    for step in (
        (replace(first, row=replace(first.row, diverged_at=NOW)), second),
        (first, replace(second, row=replace(second.row, diverged_at=NOW))),
    ):
        telling = told(*step)
        assert isinstance(telling.told, UnknownOutcome)
        assert (telling.told.reason, telling.finished) == ("divergence", True)


@pytest.mark.parametrize("state", list(State))
def test_waiting_ends_where_nothing_more_comes_by_itself(state: State) -> None:
    """Settled rows are told for good; open ones are not, unless they are parked."""
    assert told(generation(state)).finished == (state in SETTLED_STATES)
    if state in (State.HELD, State.INDETERMINATE):
        assert told(generation(state, parked_at=NOW)).finished


def test_an_open_undo_is_in_flight() -> None:
    """A committed row that is being compensated is neither committed nor compensated yet."""
    telling = told(generation(State.COMMITTED, undo=9))
    assert isinstance(telling.told, InFlight)
    assert (telling.told.reason, telling.finished) == ("compensating", False)
    unknown = told(generation(State.INDETERMINATE, undo=9)).told
    assert isinstance(unknown, UnknownOutcome)


def test_an_adopted_effect_is_one_effect() -> None:
    """The adopter tells the owner's reference, and not as something else that happened."""
    owner = generation(State.COMMITTED, live=False, document={"result": 7}, outcome="applied")
    adopter = generation(State.COMMITTED, 1, adopted_from=1, ref=None)
    telling = told(owner, adopter).told
    assert isinstance(telling, Committed)
    assert (telling.ref, telling.result, telling.also_happened) == ("T-0", 7, ())
    undoing = replace(owner, row=replace(owner.row, undo=9))
    assert told(undoing, adopter).told.word == "in_flight"


def test_two_effects_are_both_told() -> None:
    """A person released the second over the first: the first one stands beside it."""
    telling = told(*two(State.COMMITTED, State.COMMITTED)).told
    assert isinstance(telling, Committed)
    assert [(o.generation, o.ref, o.wire_key) for o in telling.also_happened] == [(0, "T-0", "i")]


def test_a_superseded_generation_tells_its_own_effect() -> None:
    """Whoever still holds the old intent learns that it happened, and what took its place."""
    telling = told(*two(State.COMMITTED, State.HELD), of=0).told
    assert isinstance(telling, Superseded)
    assert telling.superseded_by == 1
    assert [other.ref for other in telling.also_happened] == ["T-0"]
    for state, word in ((State.AWAITING_ACK, "in_flight"), (State.INDETERMINATE, "unknown")):
        assert told(*two(state, State.HELD), of=0).told.word == word


def test_gates() -> None:
    """Only an open gate is a person's approval that is waited for."""
    first, second = two(State.AWAITING_ACK, State.HELD, gate=GateDecision.OPEN)
    assert isinstance(told(first, second).told, AwaitingApproval)
    approved = replace(second, gate=GateDecision.APPROVED)
    assert told(first, approved).told.reason == "waits until generation 0 is settled"
    rejected = generation(State.HELD, gate=GateDecision.REJECTED)
    assert isinstance(told(rejected).told, InFlight)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"unserved": True}, "no live worker has tickets.create"),
        ({"paused": True, "unserved": True}, "tickets.create is paused"),
        ({"ready_at": NOW + timedelta(hours=1)}, "may start at 2026-01-01T01:00:00+00:00"),
        ({"deadline": NOW}, "its deadline has passed; being withdrawn"),
        ({"wanted": False}, "the cancel is recorded; one send is open"),
        ({}, "waits for a worker"),
    ],
)
def test_in_flight_says_why(said: dict[str, Any], reason: str) -> None:
    """The most telling cause comes first."""
    assert told(generation(State.QUEUED, **said)).told.reason == reason


def test_results() -> None:
    """A result that was not kept does not make the effect doubtful; accepted is said."""
    kept = generation(State.COMMITTED, document={"result": {"id": 1}}, outcome="accepted")
    telling = told(kept).told
    assert isinstance(telling, Committed)
    assert (telling.result, telling.accepted) == ({"id": 1}, True)
    lost = told(generation(State.COMMITTED, document={RESULT_DIGEST: "d"})).told
    assert isinstance(lost, CommittedNoResult)
    assert (lost.word, lost.digest) == ("committed", "d")
    assert "7" not in repr(told(generation(State.COMMITTED, document={"result": 7})).told)


def test_nothing_to_tell() -> None:
    """No step, or no such generation."""
    assert tell([], None, NOW) is None
    assert tell([generation(State.QUEUED)], 3, NOW) is None


def examples() -> list[Told]:
    """Return one of each kind."""
    common: dict[str, Any] = {"intent_id": "i", "generation": 1}
    own: dict[Any, dict[str, Any]] = {Superseded: {"superseded_by": 2}, Committed: {"result": 1}}
    return [kind(**common, **own.get(kind, {})) for kind in KINDS]


@pytest.mark.parametrize("one", examples(), ids=lambda one: type(one).__name__)
def test_every_kind_has_one_form(one: Told) -> None:
    """The same keys for all of them, and a sentence for a model in which nothing secret stands."""
    assert one.as_dict().keys() == examples()[0].as_dict().keys()
    assert one.as_dict()["word"] == one.word
    assert one.wire_key == "i~g1"
    assert one.for_model().endswith(".")
    if one.word not in ("failed", "cancelled", "compensated", "superseded"):
        assert "again" in one.for_model() or "nothing more" in one.for_model()


def test_an_unknown_repeats_the_last_word_of_its_attempt() -> None:
    """With a person or not; shortened, and left out where no attempt said anything."""
    unknown = generation(State.INDETERMINATE, last_word="read timeout" + "." * 500)
    reason = told(unknown).told.reason
    assert reason.startswith("being reconciled; last: read timeout")
    assert len(reason) < 300
    parked = generation(State.INDETERMINATE, parked_at=NOW, last_word="read timeout")
    assert told(parked).told.reason == "a person must decide; last: read timeout"
    assert told(generation(State.INDETERMINATE)).told.reason == "being reconciled"
