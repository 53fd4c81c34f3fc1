"""Compensations that the outbox orders by itself, and divergences of compensations."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.commands import OrderCompensation, PlanCompensation
from ackbox.outbox.compensate import CompensationRequest
from ackbox.outbox.hold import hold_pass
from ackbox.outbox.intent import Address
from ackbox.outbox.model import Actor, GateDecision, Refusal
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Stated, Verdict
from ackbox.outbox.shell.compensation_store import undo_target

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, PROBED, Seeded, seeded_outbox
from ..support.undoing import ENSURE, PLAN, code, old_commit, ordered, run_undo


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


# -- ordered by the outbox -------------------------------------------------------------------------


def walk(seeded: Seeded, plan: CompensationRequest | Refusal = PLAN) -> list[str]:
    """Run one hold pass on the store; returns what it rang."""
    rung: list[str] = []
    store = seeded.holds
    handlers: dict[str, Any] = {
        "FindUndone": lambda c: store.find_undone(c.limit),
        "FinishUndo": lambda c: store.finish_undo(c.seq),
        "FindHeld": lambda c: store.find_held(c.limit),
        "HoldStep": lambda c: store.hold_step(c.seq),
        "PlanCompensation": lambda c: plan,
        "OrderCompensation": lambda c: store.order(c.seq, c.owner, c.plan),
        "Ring": lambda c: rung.append(c.lane),
        "RingResults": lambda c: rung.append("results"),
    }
    steps = hold_pass(10, 10)
    command = next(steps)
    while True:
        reply = handlers[type(command).__name__](command)
        try:
            command = steps.send(reply)
        except StopIteration:
            return rung


def blocked(seeded: Seeded, held_for: str | None = None) -> tuple[int, int]:
    """Return a committed first generation and a held one that wants something else."""
    first = seeded.put("a", KEYED, held_for=held_for, x=1)
    if held_for:
        seeded.decide(first, GateDecision.APPROVED)
        seeded.hold_step(first)
    seeded.record(seeded.send("a"), Applied("ref-1"))
    return first, seeded.supersede("a", tool=KEYED, x=2)


def test_a_hold_pass_undoes_what_stands_in_the_way_and_releases(seeded: Seeded) -> None:
    """Generation 1 wants other arguments: generation 0 is undone first, then 1 is queued."""
    first, second = blocked(seeded)
    assert walk(seeded) == ["undo"]
    assert seeded.state(second) == "held"
    run_undo(seeded)
    assert walk(seeded) == ["a", "results"]
    assert (seeded.state(first), seeded.state(second)) == ("compensated", "queued")


def test_the_outbox_undoes_by_itself_at_most_once(seeded: Seeded) -> None:
    """After a failed compensation a person is called, and no second one is ordered."""
    _, second = blocked(seeded)
    walk(seeded)
    run_undo(seeded, NotApplied("gone"))
    walk(seeded)
    assert seeded.row(second)["parked_at"] is not None
    rows = seeded.sql("SELECT generation FROM {schema}.intent WHERE compensates IS NOT NULL")
    assert [row["generation"] for row in rows] == [0]


def test_the_outbox_undoes_only_after_the_approval(seeded: Seeded) -> None:
    """Hole 31: a rejection must not have cost the first effect; the gate's clock runs meanwhile."""
    first, second = blocked(seeded, held_for="policy")
    assert walk(seeded) == []
    assert seeded.row(first)["undo"] is None
    (gate,) = seeded.sql("SELECT clock_started_at FROM {schema}.gate WHERE seq = :seq", seq=second)
    assert gate["clock_started_at"] is not None
    seeded.decide(second, GateDecision.APPROVED)
    assert walk(seeded) == ["undo"]


def test_what_cannot_be_planned_parks_the_row(seeded: Seeded) -> None:
    """No handle: nothing but a person moves it. An unknown tool: another process may know it."""
    _, second = blocked(seeded)
    walk(seeded, Refusal("tool_unknown"))
    assert seeded.row(second)["parked_at"] is None
    seeded.advance(400)
    walk(seeded, Refusal("no_handle"))
    assert seeded.row(second)["parked_at"] is not None


def test_an_order_is_decided_anew_under_the_lock(seeded: Seeded) -> None:
    """The plan was made without a lock: what changed meanwhile counts."""
    first, second = blocked(seeded)
    answer = seeded.holds.hold_step(second)
    assert answer.owner == first
    seeded.run(lambda c: _cancel(seeded, c))
    done = seeded.holds.order(second, first, PLAN)
    assert done.edge is None
    assert seeded.row(first)["undo"] is None


def _cancel(seeded: Seeded, connection: Any) -> Any:
    return seeded.planner.cancel(connection, Address("default", "a"))


# -- divergence of a compensation ------------------------------------------------------------------


def wrongly_failed_undo(seeded: Seeded) -> tuple[int, int, int]:
    """Return target, successor with the same args, and an undo that ran although it is failed."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    claim = seeded.send("undo")
    seeded.record(claim, Unknown("lost"))
    seeded.advance(200)
    seeded.people.not_landed(Said(claim.seq, "ops", "seen nothing", claim.fence))
    seeded.holds.finish_undo(seq)
    second = seeded.supersede("a")
    seeded.record(claim, Applied("undone"))
    return seq, second, claim.seq


def test_the_late_answer_of_a_failed_undo_marks_its_target_and_the_next_generation(
    seeded: Seeded,
) -> None:
    """Hole F: otherwise g1 adopts an effect that is gone."""
    seq, second, undo = wrongly_failed_undo(seeded)
    for row in (seq, second, undo):
        assert seeded.row(row)["diverged_at"] is not None
    assert seeded.hold_step(second) == (None, "divergence")


def test_such_a_divergence_is_not_closed_before_the_target_is_settled(seeded: Seeded) -> None:
    """Hole F, by a person: closing it first would let g1 adopt the undone effect."""
    seq, second, undo = wrongly_failed_undo(seeded)
    said = Said(seq, "ops", "the refund is there")
    number = seeded.divergence(undo)
    denied = seeded.people.close_divergence(said, number, Verdict.STANDS)
    assert code(denied) == "resolve_first"
    row = seeded.row(seq)
    undone = seeded.people.undone(replace(said, fence=row["fence"]))
    assert isinstance(undone, Stated)
    assert isinstance(seeded.people.close_divergence(said, number, Verdict.STANDS), Stated)
    assert seeded.hold_step(second) == ("release", "release")


def test_an_undo_target_names_the_owner(seeded: Seeded) -> None:
    """The adapter plans for the effect, not for who adopted it."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1", result={"id": 7}))
    seeded.hold_step(second)
    target = seeded.run(lambda c: undo_target(c, seeded.statements, second))
    assert target is not None
    assert (target.seq, target.tool, target.target.result) == (first.seq, "keyed", {"id": 7})


def test_an_applied_for_a_row_whose_undo_found_nothing_diverges(seeded: Seeded) -> None:
    """The undo proved absence, the effect came after all: a person is called."""
    claim = seeded.unknown("a", PROBED)
    seeded.order(claim.seq, ENSURE)
    run_undo(seeded, Applied(None))
    seeded.holds.finish_undo(claim.seq)
    assert seeded.state(claim.seq) == "compensated"
    seeded.record(claim, Applied("ref-1"))
    assert seeded.state(claim.seq) == "compensated"
    assert seeded.row(claim.seq)["diverged_at"] is not None


def test_an_order_by_actor_is_on_record(seeded: Seeded) -> None:
    """Who asked, for what, and on which target stands in both histories."""
    seq = old_commit(seeded, tool=KEYED)
    answer = ordered(seeded.order(seq, PLAN, actor=Actor.PERSON, actor_name="ops", reason="wrong"))
    rows = seeded.sql(
        "SELECT name, actor, actor_name, reason FROM {schema}.event"
        " WHERE seq IN (:seq, :undo) AND actor_name = 'ops' ORDER BY seq", seq=seq, undo=answer.seq
    )  # fmt: skip
    assert [(row["name"], row["actor"], row["reason"]) for row in rows] == [
        ("undo_ordered", "person", "wrong"),
        ("put", "person", "wrong"),
    ]


def test_commands_of_the_pass_carry_no_arguments_in_their_repr() -> None:
    """A plan holds arguments: its repr, which logs may show, does not."""
    shown = repr(OrderCompensation(1, 2, PLAN)) + repr(PLAN) + repr(PlanCompensation(1))
    assert "ref-1" not in shown


def test_distrust_of_a_key_does_not_block_an_undo(seeded: Seeded) -> None:
    """The ladder goes on with ensure-absent where the key is no help any more."""
    claim = seeded.awaiting("a", PROBED)
    seeded.record(claim, Unknown("no echo", answer=Answer.COMPLETE))
    seeded.advance(200)
    ordered(seeded.order(claim.seq, ENSURE))


def test_a_keyless_tool_is_undone_where_it_declares_how(seeded: Seeded) -> None:
    """What the outbox orders by itself is a matter of the declaration, a request is not."""
    seq = old_commit(seeded, tool=KEYLESS)
    ordered(seeded.order(seq, PLAN))
