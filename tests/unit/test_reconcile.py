"""The ladder's next rung, and what a probe's answer may do."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.commands import Claimed, RecordProbe, Unresolved
from ackbox.outbox.contract import ProbeStrength, ToolContract, idempotent
from ackbox.outbox.model import Row, State, World
from ackbox.outbox.reconcile import (
    ParkRung,
    ProbeRung,
    ResendRung,
    Rung,
    WaitRung,
    decide_probe,
    next_rung,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEYLESS = ToolContract("t")
KEYED = ToolContract("t", key=idempotent(None))
PROBED = ToolContract("t", probe=ProbeStrength.STRONG)
CLAIM = Claimed(1, "default", "a", 0, 3, "t", 1, "default", {})


def unresolved(contract: ToolContract = PROBED, **said: Any) -> Unresolved:
    """Return a quiet unknown row at its first look."""
    row = Unresolved(
        CLAIM, contract, probes=0, resends=0, quiet=True, parked=False, may_resend=False,
        too_old=False,
    )  # fmt: skip
    return replace(row, **said)


def rung(row: Unresolved, *, probed: bool = False, share: float = 1.0, **said: Any) -> Rung:
    """Return the next rung."""
    return next_rung(row, probed=probed, share=share, **said)


def test_a_probe_comes_before_a_resend() -> None:
    """A round is one probe, then one legal resend."""
    both = unresolved(replace(KEYED, probe=ProbeStrength.WEAK), may_resend=True, resend_later=True)
    assert rung(both) == ProbeRung()
    assert rung(both, probed=True) == ResendRung()


def test_a_keyed_tool_without_a_probe_is_resent() -> None:
    """The key is all there is."""
    assert rung(unresolved(KEYED, may_resend=True, resend_later=True)) == ResendRung()


def test_no_resend_before_the_row_is_quiet() -> None:
    """Whatever the store's flag says."""
    row = unresolved(KEYED, may_resend=True, resend_later=True, quiet=False)
    assert isinstance(rung(row), WaitRung)


def test_a_refused_resend_ends_the_round() -> None:
    """Another request than the stored one, or an unknown tool: wait, and park in time."""
    row = unresolved(KEYED, may_resend=True, resend_later=True)
    assert isinstance(rung(row, resend_refused=True), WaitRung)
    old = replace(row, too_old=True)
    assert rung(old) == ResendRung()
    assert rung(old, resend_refused=True) == ParkRung("park_after", 600.0)


def test_a_row_that_is_not_quiet_is_probed_once() -> None:
    """Only Found counts then; probes are kept for the time in which Absent counts too."""
    assert rung(unresolved(quiet=False)) == ProbeRung()
    assert isinstance(rung(unresolved(quiet=False, probes=1)), WaitRung)
    assert rung(unresolved(probes=1)) == ProbeRung()


def test_without_key_and_probe_a_person_is_called_at_once() -> None:
    """No rung is left."""
    assert rung(unresolved(KEYLESS)) == ParkRung("no_rung_left", 600.0)
    assert rung(unresolved(KEYED)) == ParkRung("no_rung_left", 600.0)


def test_a_paused_tool_is_waited_for() -> None:
    """A guard that may hold again is no lost rung."""
    assert isinstance(rung(unresolved(KEYED, resend_later=True)), WaitRung)


@pytest.mark.parametrize(
    ("said", "reason"),
    [({"probes": 11}, "max_probes"), ({"too_old": True}, "park_after")],
)
def test_the_ladder_ends(said: dict[str, Any], reason: str) -> None:
    """Hole 20: by count or by time, whichever comes first, after this look's probe."""
    assert rung(unresolved(**said)) == ProbeRung()
    assert rung(unresolved(**said), probed=True) == ParkRung(reason, 600.0)


def test_a_parked_row_is_still_probed_and_resent() -> None:
    """Parked is a fact, not a state: any rung may still settle it, at a slower pace."""
    row = unresolved(parked=True, probes=40)
    assert rung(row) == ProbeRung()
    after = rung(row, probed=True, share=0.0)
    assert isinstance(after, ParkRung)
    assert after.delay_seconds == 300.0
    assert rung(unresolved(KEYED, parked=True, may_resend=True)) == ResendRung()


def test_rounds_back_off() -> None:
    """Probes and resends count together."""
    delays = [
        rung(unresolved(probes=count, resends=count), probed=True).delay_seconds  # type: ignore[union-attr]
        for count in range(3)
    ]
    assert delays == [1.0, 4.0, 16.0]


@given(
    contract=st.sampled_from([KEYLESS, KEYED, PROBED]),
    flags=st.fixed_dictionaries(
        {
            name: st.booleans()
            for name in ("quiet", "parked", "may_resend", "too_old", "resend_later")
        }
    ),
    probes=st.integers(0, 20),
    refused=st.booleans(),
)
def test_every_look_ends(
    contract: ToolContract, flags: dict[str, bool], probes: int, refused: bool
) -> None:
    """After a probe and a refused resend there is a wait or a park, never another rung."""
    row = unresolved(contract, probes=probes, **flags)
    last = rung(row, probed=True, resend_refused=True)
    assert isinstance(last, WaitRung | ParkRung)
    first = rung(row, resend_refused=refused)
    assert not (isinstance(first, ResendRung) and not flags["quiet"])


# -- a probe's answer ------------------------------------------------------------------------------


def row(state: State = State.INDETERMINATE, **said: Any) -> Row:
    """Return a row that was sent under the claim's fence."""
    return Row(seq=1, state=state, fence=3, sends=1, **said)


def answered(answer: str, **said: Any) -> RecordProbe:
    """Return a probe's answer from a quiet row."""
    return RecordProbe(CLAIM, answer, **{"was_quiet": True, **said})


WORLD = World(NOW, contract=PROBED)


@pytest.mark.parametrize(
    "state",
    [State.HELD, State.QUEUED, State.EXECUTING, State.AWAITING_ACK, State.INDETERMINATE],
)
def test_found_acknowledges_whatever_the_row_became(state: State) -> None:
    """Hole 25c; and never as the word of the attempt that holds the fence (hole 6)."""
    decided = decide_probe(row(state), answered("found", ref="r"), WORLD)
    (move,) = decided.moves
    assert (move.edge, move.fence, move.decisive) == ("acknowledge", 3, False)


def test_found_for_a_settled_row_agrees_or_diverges() -> None:
    """The known reference agrees, so does the first one ever named; another one diverges."""
    done = row(State.COMMITTED)
    assert not decide_probe(done, answered("found", ref="r"), WORLD, {"r"}).diverge
    assert not decide_probe(done, answered("found", ref="r"), WORLD).diverge
    assert decide_probe(done, answered("found", ref="r2"), WORLD, {"r"}).diverge
    assert decide_probe(row(State.FAILED), answered("found", ref="r"), WORLD).diverge


def test_further_finds_diverge_unless_they_are_known() -> None:
    """Two objects under one marker are two effects."""
    both = answered("found", ref="r", others=("r2",))
    assert decide_probe(row(), both, WORLD).diverge
    assert decide_probe(row(), both, WORLD).moves
    assert not decide_probe(row(State.COMMITTED), both, WORLD, {"r", "r2"}).diverge


def test_absent_asks_for_clear_then_refuse() -> None:
    """The table's guards choose."""
    decided = decide_probe(row(), answered("absent"), WORLD)
    assert [move.edge for move in decided.moves] == ["clear", "refuse.absent"]


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (row(State.QUEUED), {}),
        (row(), {"was_quiet": False}),
        (replace(row(), fence=4), {}),
    ],
    ids=["moved on", "looked too early", "another send since"],
)
def test_absent_counts_for_the_row_that_was_looked_at(at: Row, said: dict[str, Any]) -> None:
    """Everything else is kept and proves nothing."""
    assert decide_probe(at, answered("absent", **said), WORLD).moves == ()


def test_inconclusive_moves_nothing() -> None:
    """It is counted only."""
    assert decide_probe(row(), answered("inconclusive"), WORLD).moves == ()
