"""Decides gates: why a decision is refused, what a rejection does, and the pass that ends waiting.

Approving moves nothing: hold_pass releases the row when nothing else holds it. The clock of a gate
runs only once `hold.decide` has found nothing else to wait for (`starts_gate_clock`). Pure; may
import `model` and `records`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from .model import GateDecision, Move, Refusal, Row, State
from .records import Observation, order

TIMED_OUT = "gate_timed_out"
REJECTED = "gate_rejected"


def refusal_to_decide(
    decision: GateDecision | None, actor: str | None, fingerprint: str, quoted: str, state: State
) -> Refusal:
    """Return why a gate was not decided; `decision` None where the row has no gate.

    `quoted` is the fingerprint that the reviewer saw; it comes after a failed compare-and-set.
    """
    if decision is None:
        return Refusal("no_gate", "the row waits for no approval")
    if decision is not GateDecision.OPEN:
        return Refusal("gate_decided", f"{decision.value} by {actor}")
    if fingerprint != quoted:
        return Refusal("gate_changed", "the arguments are not the ones that were reviewed")
    return Refusal("not_held", f"the row is {state.value} by now")


def rejection(row: Row, reason: str) -> tuple[Move, Observation]:
    """Return the withdrawal that a rejection or a run-out clock asks for, and its observation."""
    why = TIMED_OUT if reason == TIMED_OUT else REJECTED
    seen = order(why if why == TIMED_OUT else f"{why}: {reason}")
    return Move("withdraw.cancel", row.seq, row.state, reason=why), seen


@dataclass(frozen=True, slots=True)
class FindGatesDue:
    """Reply: tuple[tuple[int, str], ...], (seq, fingerprint) of gates whose clock has run out."""

    limit: int


@dataclass(frozen=True, slots=True)
class TimeOutGate:
    """Reject a gate whose clock has run out. Reply: bool, whether it was still open."""

    seq: int
    fingerprint: str


def gate_pass(limit: int) -> Generator[Any, Any, int]:
    """End waiting for approvals that nobody gave; returns how many rows were withdrawn."""
    due: tuple[tuple[int, str], ...] = yield FindGatesDue(limit)
    ended = 0
    for seq, fingerprint in due:
        ended += yield TimeOutGate(seq, fingerprint)
    return ended
