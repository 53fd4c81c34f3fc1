"""Compensations: which targets may be undone, what an open one blocks, how it ends."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ackbox.outbox.commands import OrderCompensation, PlanCompensation, Resend
from ackbox.outbox.compensate import (
    CompensationRequest,
    OrderedCompensation,
    compensation_request,
)
from ackbox.outbox.hold import hold_pass
from ackbox.outbox.intent import Address
from ackbox.outbox.model import Actor, GateDecision, Refusal
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Stated, Verdict
from ackbox.outbox.shell.compensation_store import undo_target

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, PROBED, WEAK, Seeded, seeded_outbox

PLAN = compensation_request("undo", 1, "undo", {"of": "ref-1"})
ENSURE = compensation_request("undo", 1, "undo", {"marker": "a"}, ensure_absent=True)


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


def ordered(answer: Any) -> OrderedCompensation:
    """Return an accepted order."""
    assert isinstance(answer, OrderedCompensation), answer
    return answer


def run_undo(seeded: Seeded, outcome: Any = None) -> int:
    """Execute the open compensation; returns its seq."""
    claim = seeded.send("undo")
    seeded.record(claim, outcome or Applied("undone"))
    return claim.seq


def old_commit(seeded: Seeded, name: str = "a", **said: Any) -> int:
    """Return a committed row that nothing is on its way to any more."""
    claim = seeded.committed(name, **said)
    seeded.advance(200)
    return claim.seq


# -- which targets ---------------------------------------------------------------------------------


def test_a_committed_effect_is_undone_by_an_intent_of_its_own(seeded: Seeded) -> None:
    """A compensation has a derived id and goes through the outbox like any effect."""
    seq = old_commit(seeded)
    answer = ordered(seeded.order(seq, PLAN))
    assert (answer.intent_id, answer.generation, answer.created) == ("a~undo0", 0, True)
    assert seeded.row(seq)["undo"] == answer.seq
    claim = seeded.claim("undo")
    assert (claim.wire_key, claim.args) == ("a~undo0", {"of": "ref-1"})
    assert claim.target is not None
    assert (claim.target.ref, claim.target.wire_key) == ("ref-1", "a")


@pytest.mark.parametrize("state", ["held", "queued", "executing"])
def test_what_was_not_sent_is_withdrawn_instead(seeded: Seeded, state: str) -> None:
    """Hole 5: the worker's mark then hits nothing, and no compensation runs against it."""
    seq = seeded.put("a", KEYED, held_for="policy" if state == "held" else None)
    if state == "executing":
        seeded.claim("a")
    assert seeded.state(seq) == state
    answer = ordered(seeded.order(seq, PLAN))
    assert (answer.withdrawn, answer.seq, seeded.state(seq)) == (True, None, "cancelled")


def test_an_open_send_is_not_undone(seeded: Seeded) -> None:
    """Hole 5: nobody knows yet what there is to undo."""
    claim = seeded.awaiting("a", KEYED)
    assert code(seeded.order(claim.seq, PLAN)) == "awaiting_ack"
    assert seeded.sql("SELECT FROM {schema}.intent WHERE compensates IS NOT NULL") == []


def test_each_final_state_has_its_own_refusal(seeded: Seeded) -> None:
    """Nothing is inserted where there is nothing to undo."""
    failed = seeded.awaiting("f", KEYED)
    seeded.record(failed, NotApplied("no"))
    assert code(seeded.order(failed.seq, PLAN)) == "nothing_to_undo"
    cancelled = seeded.put("c")
    seeded.order(cancelled, PLAN)
    assert code(seeded.order(cancelled, PLAN)) == "nothing_to_undo"
    done = old_commit(seeded, "d")
    seeded.order(done, PLAN)
    run_undo(seeded)
    assert code(seeded.order(done, PLAN)) == "already_compensated"


def test_a_committed_row_with_a_send_on_its_way_is_not_undone(seeded: Seeded) -> None:
    """Hole 6: a resend is out when the first send's answer commits the row."""
    claim = seeded.unknown("a", KEYED)
    seeded.unknowns.resend(Resend(claim, "digest"), seeded.owner)
    seeded.record(claim, Applied("ref-1"))
    assert seeded.state(claim.seq) == "committed"
    assert code(seeded.order(claim.seq, PLAN)) == "not_quiet"
    seeded.advance(200)
    ordered(seeded.order(claim.seq, PLAN))


def test_a_recorded_outcome_makes_a_committed_row_quiet_at_once(seeded: Seeded) -> None:
    """The attempt that holds the fence has spoken: there is nothing to wait for."""
    claim = seeded.committed("a")
    ordered(seeded.order(claim.seq, PLAN))


def test_only_a_proof_of_absence_ends_an_unknown(seeded: Seeded) -> None:
    """Hole 13: by exact marker and a strong read, as the target's declaration says."""
    claim = seeded.unknown("a", PROBED)
    assert code(seeded.order(claim.seq, PLAN)) == "ensure_absent_only"
    ordered(seeded.order(claim.seq, ENSURE))
    weak = seeded.unknown("w", WEAK)
    assert code(seeded.order(weak.seq, ENSURE)) == "ensure_absent_only"


def test_an_unknown_that_is_not_quiet_is_not_undone(seeded: Seeded) -> None:
    """Hole 2, 4: the request would land behind its undo."""
    claim = seeded.unknown("a", PROBED, quiet=False)
    assert code(seeded.order(claim.seq, ENSURE)) == "not_quiet"


def test_a_target_with_an_open_divergence_needs_a_proof_of_absence(seeded: Seeded) -> None:
    """Hole 26: there are two effects, and a handle for one of them."""
    claim = seeded.committed("a", PROBED)
    seeded.record(claim, Applied("ref-2"))
    assert seeded.row(claim.seq)["diverged_at"] is not None
    seeded.advance(200)
    assert code(seeded.order(claim.seq, PLAN)) == "ensure_absent_only"
    ordered(seeded.order(claim.seq, ENSURE))


def test_without_a_handle_there_is_nothing_to_undo_by(seeded: Seeded) -> None:
    """Hole 35: the answer named no object."""
    seq = old_commit(seeded, ref=None)
    assert code(seeded.order(seq, PLAN)) == "no_handle"


def test_a_compensation_is_not_compensated(seeded: Seeded) -> None:
    """One level only."""
    answer = ordered(seeded.order(old_commit(seeded), PLAN))
    assert answer.seq is not None
    assert code(seeded.order(answer.seq, PLAN)) == "is_compensation"


def test_the_inserting_statement_asks_again_by_itself(seeded: Seeded) -> None:
    """Second, paired assertion: whoever calls it, nothing is inserted for a target that may not."""
    being_undone = old_commit(seeded)
    seeded.order(being_undone, PLAN)
    noisy = seeded.unknown("b", PROBED, quiet=False).seq
    failed = seeded.awaiting("c", KEYED)
    seeded.record(failed, NotApplied("no"))
    first = seeded.awaiting("d", KEYED, x=1)
    adopter = seeded.supersede("d")
    seeded.record(first, Applied("ref-1"))
    seeded.hold_step(adopter)
    statement, _ = seeded.statements.named("insert_compensation")
    values = {
        "intent_id": "other~undo0", "tool": "undo", "version": 1, "lane": "undo", "args": "{}",
        "fingerprint": "f", "content": "f", "actor": "planner", "actor_name": None,
        "reason": None,
    }  # fmt: skip

    def inserted(seq: int) -> int:
        return seeded.run(lambda c: len(c.execute(statement, {**values, "seq": seq}).all()))

    assert [inserted(seq) for seq in (being_undone, noisy, failed.seq, adopter)] == [0, 0, 0, 0]


# -- while it is open ------------------------------------------------------------------------------


def test_a_repeated_request_returns_the_open_one_whatever_it_asks(seeded: Seeded) -> None:
    """Hole 35: other arguments are no conflict; evidence meanwhile changes nothing."""
    claim = seeded.unknown("a", PROBED)
    first = ordered(seeded.order(claim.seq, ENSURE))
    seeded.record(claim, Applied("ref-1"))
    assert seeded.state(claim.seq) == "committed"
    again = ordered(seeded.order(claim.seq, PLAN))
    assert (again.seq, again.created) == (first.seq, False)


def test_a_refusal_during_an_undo_settles_instead_of_queueing(seeded: Seeded) -> None:
    """Hole 4: the late transient NotApplied would send g0 after its undo."""
    claim = seeded.unknown("a", PROBED)
    seeded.order(claim.seq, ENSURE)
    recorded = seeded.record(claim, NotApplied("busy", code="busy", transient=True))
    assert (recorded.edge, recorded.state) == ("refuse", "failed")
    undo = run_undo(seeded)
    assert seeded.holds.finish_undo(claim.seq).edge == "undo_ended"
    assert (seeded.state(claim.seq), seeded.state(undo)) == ("failed", "committed")
    assert seeded.row(claim.seq)["undo"] is None


def test_nothing_is_adopted_from_an_effect_that_is_being_undone(seeded: Seeded) -> None:
    """Hole 7a: the planner would be handed an outcome whose effect is gone."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    second = seeded.supersede("a")
    assert seeded.hold_step(second) == (None, "compensation_open")
    run_undo(seeded)
    seeded.holds.finish_undo(seq)
    assert seeded.hold_step(second) == ("release", "release")


# -- how it ends -----------------------------------------------------------------------------------


def test_the_owner_and_its_adopters_are_compensated_together(seeded: Seeded) -> None:
    """Hole 7c: an adopter never outlives the effect; a third generation is not held by it."""
    first = seeded.awaiting("a", KEYED, x=1)
    second = seeded.supersede("a")
    seeded.record(first, Applied("ref-1"))
    assert seeded.hold_step(second) == ("adopt", "adopt")
    answer = ordered(seeded.order(second, PLAN))
    assert (answer.target, answer.intent_id) == (first.seq, "a~undo0")
    third = seeded.supersede("a", 1, tool=KEYED, x=3)
    run_undo(seeded)
    seeded.holds.finish_undo(first.seq)
    assert (seeded.state(first.seq), seeded.state(second)) == ("compensated", "compensated")
    outcomes = seeded.sql(
        "SELECT DISTINCT o.outcome FROM {schema}.intent_state s JOIN {schema}.observation o"
        " USING (observation_id) WHERE s.seq IN (:one, :two)", one=first.seq, two=second
    )  # fmt: skip
    assert [row["outcome"] for row in outcomes] == ["not_applied"], "not the adoption's"
    assert seeded.hold_step(third) == ("release", "release")


def test_an_unfinished_undo_settles_nothing(seeded: Seeded) -> None:
    """The target moves when its compensation is final, and not before."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    assert seeded.holds.find_undone(10) == ()
    assert seeded.holds.finish_undo(seq).edge is None
    claim = seeded.send("undo")
    seeded.record(claim, Unknown("lost"))
    assert seeded.holds.finish_undo(seq).edge is None
    assert seeded.state(seq) == "committed"


def test_a_failed_undo_leaves_the_target_and_lets_it_bind(seeded: Seeded) -> None:
    """Hole 21: the target is where it was; its batch waits for the consumer again."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    undo = run_undo(seeded, NotApplied("gone"))
    seeded.sql("DELETE FROM {schema}.settled_batch")
    assert seeded.holds.find_undone(10) == (seq,)
    assert seeded.holds.finish_undo(seq).edge == "undo_ended"
    row = seeded.row(seq)
    assert (row["state"], row["undo"]) == ("committed", None)
    batches = seeded.sql("SELECT seqs FROM {schema}.settled_batch")
    assert [list(batch["seqs"]) for batch in batches] == [[seq]]
    assert "undo_ended" in seeded.events(seq)
    assert seeded.state(undo) == "failed"


def test_a_failed_undo_is_asked_for_again_as_the_next_generation(seeded: Seeded) -> None:
    """Hole 21: another wire key, so a dead request is never repeated as the new one."""
    seq = old_commit(seeded)
    first = ordered(seeded.order(seq, PLAN))
    run_undo(seeded, NotApplied("gone"))
    again = ordered(seeded.order(seq, compensation_request("undo", 1, "undo", {"of": "other"})))
    assert (again.intent_id, again.generation, again.created) == ("a~undo0", 1, True)
    assert first.seq is not None
    assert seeded.row(first.seq)["live"] is False
    assert seeded.claim("undo").wire_key == "a~undo0~g1"


def test_a_finished_undo_is_finished_by_the_next_request_too(seeded: Seeded) -> None:
    """A request that comes before the pass does not mistake an ended one for an open one."""
    seq = old_commit(seeded)
    seeded.order(seq, PLAN)
    run_undo(seeded)
    assert code(seeded.order(seq, PLAN)) == "already_compensated"
    assert seeded.state(seq) == "compensated"


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
