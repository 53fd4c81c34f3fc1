"""Gates: one decision for what was reviewed, a rejection that withdraws, a clock that ends."""

from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.intent import Address
from ackbox.outbox.model import Actor, GateDecision, Refusal
from ackbox.outbox.outcome import Unknown
from ackbox.outbox.people import Said
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.gate_store import (
    Gate,
    decide_gate,
    gates_due,
    read_gate,
    time_out_gate,
)

from ..support.databases import Databases
from ..support.seed import Seeded, seeded_outbox
from ..support.sessions import Background


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


def code(answer: Any) -> str:
    """Return a refusal's code."""
    assert isinstance(answer, Refusal), answer
    return answer.code


def due(seeded: Seeded) -> tuple[tuple[int, str], ...]:
    """Return the gates whose clock has run out."""
    return seeded.run(lambda c: gates_due(c, seeded.statements, 10))


def test_an_approval_pokes_and_the_pass_releases(seeded: Seeded) -> None:
    """Approving moves nothing by itself; the pass comes to the row at once."""
    seq = seeded.put("a", held_for="policy")
    seeded.advance(1000)
    assert seeded.hold_step(seq) == (None, "gate")
    assert seeded.holds.find_held(10) == ()
    gate = seeded.decide(seq, GateDecision.APPROVED)
    assert isinstance(gate, Gate)
    assert (gate.decision, gate.actor, gate.state) == ("approved", "ops", "held")
    assert seeded.holds.find_held(10) == (seq,)
    assert seeded.hold_step(seq) == ("release", "release")
    assert "gate_approved" in seeded.events(seq)


def test_a_rejection_withdraws_in_the_same_transaction(seeded: Seeded) -> None:
    """Nothing of it was sent: cancelled, with the reason on record."""
    seq = seeded.put("a", held_for="policy")
    gate = seeded.decide(seq, GateDecision.REJECTED)
    assert isinstance(gate, Gate)
    assert (gate.decision, gate.state) == ("rejected", "cancelled")
    (event,) = seeded.sql("SELECT reason FROM {schema}.event WHERE name = 'withdraw.cancel'")
    assert event["reason"] == "gate_rejected"
    assert seeded.hold_step(seq) == (None, "moved_on")


def test_a_gate_is_decided_once(seeded: Seeded) -> None:
    """The second decision hits nothing and says whose the first one was."""
    seq = seeded.put("a", held_for="policy")
    seeded.decide(seq, GateDecision.APPROVED)
    answer = seeded.decide(seq, GateDecision.REJECTED)
    assert (code(answer), answer.detail) == ("gate_decided", "approved by ops")
    assert seeded.state(seq) == "held"


def test_other_arguments_are_not_approved_by_a_review(seeded: Seeded) -> None:
    """The reviewer's fingerprint is part of the compare-and-set."""
    seq = seeded.put("a", held_for="policy", x=1)
    assert code(seeded.decide(seq, GateDecision.APPROVED, "0" * 64)) == "gate_changed"
    assert seeded.hold_step(seq) == (None, "gate")


def test_an_approval_is_void_for_a_superseded_row(seeded: Seeded) -> None:
    """The next generation has a gate of its own."""
    seq = seeded.put("a", held_for="policy", x=1)
    second = seeded.supersede("a", x=2)
    assert code(seeded.decide(seq, GateDecision.APPROVED)) == "not_held"
    assert seeded.hold_step(second) == (None, "gate")


def test_a_row_without_a_gate_has_nothing_to_decide(seeded: Seeded) -> None:
    """The refusal has a code of its own."""
    seq = seeded.put("a")
    assert seeded.run(lambda c: read_gate(c, seeded.statements, seq)) is None


def test_two_reviewers_at_once_decide_once(seeded: Seeded) -> None:
    """The second one waits for the row, and then meets a decided gate."""
    seq = seeded.put("a", held_for="policy")
    patient = Database(seeded.url, lock_timeout_seconds=15)
    fingerprint = seeded.sql("SELECT fingerprint FROM {schema}.gate")[0]["fingerprint"]

    def decide(connection: Any, decision: GateDecision) -> Any:
        return decide_gate(
            connection, seeded.statements, seeded.reader, seq=seq, decision=decision,
            actor=Actor.PERSON, actor_name=decision.value, reason="seen", fingerprint=fingerprint,
        )  # fmt: skip

    with patient.engine.begin() as one:
        first = decide(one, GateDecision.REJECTED)
        other = Background(patient, lambda c: decide(c, GateDecision.APPROVED))
        other.wait_for_lock()
    assert isinstance(first, Gate)
    assert code(other.result()) == "gate_decided"
    assert seeded.state(seq) == "cancelled"
    patient.dispose()


# -- the clock -------------------------------------------------------------------------------------


def gated_behind_an_open_send(seeded: Seeded) -> tuple[Any, int]:
    """Return an open attempt of generation 0, and generation 1 with a gate of its own."""
    first = seeded.put("a", held_for="policy", x=1)
    seeded.decide(first, GateDecision.APPROVED)
    seeded.hold_step(first)
    claim = seeded.send("a")
    return claim, seeded.supersede("a", x=2)


def test_the_clock_starts_when_nothing_but_the_gate_is_left(seeded: Seeded) -> None:
    """Hole 31: a gate that opened while g0 was unknown does not expire during that wait."""
    claim, second = gated_behind_an_open_send(seeded)
    seeded.record(claim, Unknown("lost"))
    assert seeded.hold_step(second) == (None, "generation_unsettled")
    seeded.advance(DEFAULTS.gate_limit_seconds + 10)
    assert seeded.hold_step(second) == (None, "generation_unsettled")
    assert due(seeded) == ()
    seeded.people.not_landed(Said(claim.seq, "ops", "nothing there", claim.fence))
    assert seeded.hold_step(second) == (None, "gate")
    assert due(seeded) == ()
    seeded.advance(DEFAULTS.gate_limit_seconds + 10)
    assert [seq for seq, _ in due(seeded)] == [second]


def test_a_gate_that_nobody_decides_ends_as_cancelled(seeded: Seeded) -> None:
    """Promise 6: within a bounded time the row is final."""
    seq = seeded.put("a", held_for="policy")
    seeded.hold_step(seq)
    seeded.advance(DEFAULTS.gate_limit_seconds + 1)
    ((found, fingerprint),) = due(seeded)
    assert found == seq
    answer = seeded.run(
        lambda c: time_out_gate(c, seeded.statements, seeded.reader, seq, fingerprint)
    )
    assert isinstance(answer, Gate)
    assert (answer.decision, answer.reason) == ("rejected", "gate_timed_out")
    assert seeded.state(seq) == "cancelled"
    assert due(seeded) == ()


def test_an_approval_that_came_first_outlives_the_clock(seeded: Seeded) -> None:
    """The reaper's list is from before; its decision meets a decided gate."""
    seq = seeded.put("a", held_for="policy")
    seeded.hold_step(seq)
    seeded.advance(DEFAULTS.gate_limit_seconds + 1)
    ((_, fingerprint),) = due(seeded)
    seeded.decide(seq, GateDecision.APPROVED)
    answer = seeded.run(
        lambda c: time_out_gate(c, seeded.statements, seeded.reader, seq, fingerprint)
    )
    assert code(answer) == "gate_decided"
    assert seeded.hold_step(seq) == ("release", "release")


def test_gates_of_rows_that_were_called_off_stand_in_nobodys_way(seeded: Seeded) -> None:
    """An open gate whose row is cancelled is not due: it would hide the ones behind it for ever."""
    seqs = [seeded.put(name, held_for="policy") for name in ("a", "b", "c")]
    for seq in seqs:
        seeded.hold_step(seq)
    seeded.run(lambda c: seeded.planner.cancel(c, Address("default", "a")))
    seeded.supersede("b", x=2)
    seeded.advance(DEFAULTS.gate_limit_seconds + 1)
    assert [seeded.state(seq) for seq in seqs] == ["cancelled", "cancelled", "held"]
    assert [seq for seq, _ in due(seeded)] == seqs[2:]
