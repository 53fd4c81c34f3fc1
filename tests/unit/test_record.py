"""What a recorded outcome does to its row: proof is never lost, and never more than it proves."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ackbox.outbox.contract import ToolContract, idempotent
from ackbox.outbox.model import Row, State, World
from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from ackbox.outbox.record import Decision, decide
from ackbox.outbox.transitions import apply

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYLESS = World(now=NOW, contract=ToolContract("t"))
KEYED = World(now=NOW, contract=ToolContract("t", key=idempotent(timedelta(hours=24))))
OUT = Row(
    seq=1, state=State.AWAITING_ACK, fence=3, attempts=3, sends=1, ack_by=NOW, contract_id=1,
    first_sent_at=NOW, quiet_at=NOW + timedelta(seconds=60),
)  # fmt: skip
UNKNOWN = replace(OUT, state=State.INDETERMINATE, ack_by=None, probe_at=NOW)


def edge_of(row: Row, outcome: Outcome, fence: int | None = 3, world: World = KEYLESS) -> str:
    """Return the edge decided on, or the code where nothing moves; the edge must be legal."""
    decision = decide(row, outcome, fence, world)
    if decision.move is None:
        return decision.code
    assert isinstance(apply(row, decision.move, world), Row), decision
    return decision.move.edge


@pytest.mark.parametrize("outcome", [Applied("T-1"), Accepted("T-1")])
@pytest.mark.parametrize("state", [State.AWAITING_ACK, State.INDETERMINATE, State.QUEUED])
def test_an_effect_commits_the_row_wherever_it_is_open(outcome: Outcome, state: State) -> None:
    """Late proof of any attempt of the generation commits, also a row that was queued again."""
    assert edge_of(replace(OUT, state=state), outcome) == "acknowledge"


def test_an_effect_of_an_earlier_attempt_commits_a_row_that_was_claimed_again() -> None:
    """Hole 25: the first attempt's answer stops the second send."""
    claimed = replace(OUT, state=State.EXECUTING, fence=4)
    assert edge_of(claimed, Applied("T-1"), fence=3) == "acknowledge"


def test_an_effect_without_a_mark_is_an_alarm_and_no_edge() -> None:
    """A claim's own Applied from executing would be an effect that no mark allowed."""
    claimed = replace(OUT, state=State.EXECUTING, fence=3)
    decision = decide(claimed, Applied("T-1"), 3, KEYLESS)
    assert decision == Decision(diverge=True, code="no_mark")
    assert decide(replace(OUT, sends=0), Applied("T-1"), 3, KEYLESS).diverge


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_an_effect_contradicts_a_row_that_settled_as_not_applied(state: State) -> None:
    """The final state stays; a divergence is opened."""
    decision = decide(replace(OUT, state=state), Applied("T-1"), 3, KEYLESS)
    assert decision.move is None
    assert decision.diverge


def test_the_recorded_reference_agrees_and_another_one_diverges() -> None:
    """Two references are two effects; one reference twice is one."""
    committed = replace(OUT, state=State.COMMITTED, observation_id=9)
    assert not decide(committed, Applied("T-1"), 3, KEYLESS, {"T-1"}).diverge
    assert decide(committed, Applied("T-2"), 3, KEYLESS, {"T-1"}).diverge


def test_two_nameless_effects_of_a_keyless_tool_are_two() -> None:
    """Two sends of a tool without key that both say Applied are two effects; keyed they are one."""
    committed = replace(OUT, state=State.COMMITTED, observation_id=9, fence=4)
    assert decide(committed, Applied(), 3, KEYLESS).diverge
    assert not decide(committed, Applied(), 3, KEYED).diverge


def test_a_transient_refusal_is_sent_again_and_a_final_one_ends() -> None:
    """Proof of nothing: retry while sends are left and the row is wanted, else failed."""
    again = NotApplied("busy", transient=True)
    assert edge_of(OUT, again) == "retry"
    assert edge_of(OUT, NotApplied("no such user")) == "refuse"
    assert edge_of(replace(OUT, sends=20), again) == "refuse"
    assert edge_of(replace(OUT, wanted=False), again) == "refuse"
    assert edge_of(replace(OUT, undo=5), again) == "refuse"
    assert edge_of(replace(OUT, deadline=NOW), again) == "refuse"


def test_retry_after_is_kept_and_bounded() -> None:
    """The tool's wish delays the next send, but cannot send the row away for years."""
    decision = decide(OUT, NotApplied(transient=True, retry_after_seconds=42), 3, KEYLESS)
    assert decision.move is not None
    assert decision.move.delay_seconds == 42
    far = decide(OUT, NotApplied(transient=True, retry_after_seconds=1e12), 3, KEYLESS)
    assert far.move is not None
    assert far.move.delay_seconds == 3600


def test_a_late_refusal_under_the_own_fence_settles_an_unknown() -> None:
    """Hole 25a: expire came first, then the attempt's own 429."""
    assert edge_of(UNKNOWN, NotApplied("busy", transient=True)) == "clear.worker"
    assert edge_of(UNKNOWN, NotApplied("no")) == "refuse"


def test_a_refused_resend_says_nothing_about_the_first_send() -> None:
    """Hole 18: a 429 on a resend leaves the row unknown; the key store's answer speaks for all."""
    resent = replace(OUT, unresolved=True, sends=2, resends=1)
    assert edge_of(resent, NotApplied("busy", transient=True)) == "lose"
    assert edge_of(resent, NotApplied("saved", key_store=True)) == "refuse"
    assert edge_of(replace(UNKNOWN, unresolved=True), NotApplied("busy")) == "unresolved"


def test_a_refusal_of_an_older_attempt_moves_nothing() -> None:
    """Its fence has passed: what it proves, it proves about itself alone."""
    assert edge_of(OUT, NotApplied("no"), fence=2) == "stale_fence"


def test_unknown_loses_the_row_and_never_fails_it() -> None:
    """An unknown outcome is a state."""
    assert edge_of(OUT, Unknown("read timeout")) == "lose"
    assert edge_of(OUT, Unknown("read timeout"), fence=2) == "stale_fence"


def test_a_protocol_miss_ends_the_trust_in_the_key_whoever_hands_it_in() -> None:
    """Hole 1: in whatever state, under whatever fence."""
    miss = Unknown("no echo", answer=Answer.COMPLETE)
    for row, fence in [(OUT, 3), (UNKNOWN, 3), (OUT, 2), (replace(OUT, state=State.QUEUED), 2)]:
        assert decide(row, miss, fence, KEYED).distrust


def test_one_cut_off_answer_leaves_the_key_trusted_and_a_second_does_not() -> None:
    """A broken connection is no proof that the key was ignored; two of them are taken for one."""
    cut = Unknown("cut off", answer=Answer.CUT_OFF)
    first = decide(OUT, cut, 3, KEYED)
    assert first.cut_off
    assert not first.distrust
    assert decide(replace(OUT, cut_offs=1), cut, 3, KEYED).distrust


def test_a_success_answer_of_an_older_send_keeps_the_later_one_unresolved() -> None:
    """And where nothing is open it contradicts the row."""
    miss = Unknown("no echo", answer=Answer.COMPLETE)
    assert decide(OUT, miss, 2, KEYED).unresolve
    assert decide(replace(OUT, state=State.QUEUED), miss, 2, KEYED).diverge
    assert decide(replace(OUT, state=State.FAILED), miss, 2, KEYED).diverge
