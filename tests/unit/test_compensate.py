"""Whether an effect may be undone now, and by what."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ackbox.outbox.compensate import compensation_request, refusal_to_undo, withdrawal
from ackbox.outbox.contract import ProbeStrength, ToolContract
from ackbox.outbox.errors import InvalidIntent
from ackbox.outbox.model import Row, State, World

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BY_REF = compensation_request("undo", 1, "undo", {"of": "r"})
ENSURE = compensation_request("undo", 1, "undo", {"marker": "a"}, ensure_absent=True)
STRONG = ToolContract("t", probe=ProbeStrength.STRONG, compensates=True, ensure_absent=True)


def refused(
    state: State,
    request: Any = BY_REF,
    ref: str | None = "r",
    contract: ToolContract = STRONG,
    **said: Any,
) -> str | None:
    """Return the code with which a request is refused, None where it is not."""
    world = World(NOW, contract=contract)
    refusal = refusal_to_undo(Row(seq=1, state=state, **said), world, request, ref)
    return refusal.code if refusal else None


def test_a_quiet_committed_effect_with_a_reference_may_be_undone() -> None:
    """The plain case."""
    assert refused(State.COMMITTED) is None


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (State.AWAITING_ACK, "awaiting_ack"),
        (State.FAILED, "nothing_to_undo"),
        (State.CANCELLED, "nothing_to_undo"),
        (State.COMPENSATED, "already_compensated"),
    ],
)
def test_other_states_have_refusals_of_their_own(state: State, code: str) -> None:
    """Even for a request that proves absence."""
    assert refused(state) == code
    assert refused(state, ENSURE) == code


@pytest.mark.parametrize("state", [State.COMMITTED, State.INDETERMINATE])
def test_nothing_is_undone_while_a_send_may_arrive(state: State) -> None:
    """Hole 6: for a committed target too."""
    assert refused(state, ENSURE, quiet_at=NOW + timedelta(seconds=1)) == "not_quiet"


def test_an_unknown_needs_a_proof_of_absence_that_its_declaration_allows() -> None:
    """Hole 13: a request that claims it is not enough; a weak read never proves anything."""
    assert refused(State.INDETERMINATE) == "ensure_absent_only"
    assert refused(State.INDETERMINATE, ENSURE) is None
    for contract in (
        ToolContract("t", probe=ProbeStrength.STRONG, compensates=True),
        ToolContract("t", probe=ProbeStrength.WEAK, compensates=True, ensure_absent=True),
    ):
        assert refused(State.INDETERMINATE, ENSURE, contract=contract) == "ensure_absent_only"


def test_a_diverged_target_needs_a_proof_of_absence() -> None:
    """Hole 26: its one reference is of one of two effects."""
    assert refused(State.COMMITTED, diverged_at=NOW) == "ensure_absent_only"
    assert refused(State.COMMITTED, ENSURE, diverged_at=NOW) is None


def test_without_a_reference_only_a_proof_of_absence_helps() -> None:
    """Hole 35."""
    assert refused(State.COMMITTED, ref=None) == "no_handle"
    assert refused(State.COMMITTED, ENSURE, ref=None) is None


@pytest.mark.parametrize("state", list(State))
def test_what_was_not_sent_is_withdrawn(state: State) -> None:
    """Hole 5: held, queued and executing, and no other state."""
    move = withdrawal(Row(seq=1, state=state))
    unsent = state in (State.HELD, State.QUEUED, State.EXECUTING)
    assert (move is not None) == unsent
    assert move is None or (move.edge, move.from_state) == ("withdraw.cancel", state)


def test_a_plan_is_checked_like_any_intent() -> None:
    """An adapter cannot store what would not survive being stored."""
    with pytest.raises(InvalidIntent, match=r"args\.amount"):
        compensation_request("undo", 1, "undo", {"amount": float("nan")})
