"""What is written beside a row: observations, events, and the moves that carry them.

Pure values that both stores share; may import `model` and `outcome`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .model import Actor, Move, State
from .outcome import Outcome, kind_of, to_document


@dataclass(frozen=True, slots=True)
class Observation:
    """What is kept of an outcome, a probe, a statement or an order; told apart by its number."""

    kind: str
    outcome: str
    document: dict[str, Any]
    number: int = 0
    ref: str | None = None


def observation_of(outcome: Outcome, kind: str = "attempt", number: int = 0) -> Observation:
    """Return the observation of an adapter's outcome."""
    document = to_document(outcome)
    return Observation(kind, kind_of(outcome), document, number, document.get("ref"))


def order(reason: str, outcome: str = "not_applied", number: int = 0) -> Observation:
    """Return the observation that withdraw, adopt and compensate write themselves."""
    return Observation("order", outcome, {"kind": outcome, "reason": reason}, number)


@dataclass(frozen=True, slots=True)
class Write:
    """A move, who makes it, and what is kept beside it."""

    move: Move
    actor: Actor
    contract_id: int | None = None
    """The row's stamped contract, as the decision saw it; part of the compare-and-set."""
    observation: Observation | None = None
    actor_name: str | None = None
    detail: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """A row after its edge."""

    seq: int
    edge: str
    state: State
    fence: int


@dataclass(frozen=True, slots=True)
class Note:
    """An event that moves no state: a divergence, a recorded cancel, a park, a bind."""

    seq: int | None
    name: str
    actor: Actor
    reason: str | None = None
    fence: int | None = None
    state: State | None = None
    actor_name: str | None = None
    subject: str | None = None
    detail: dict[str, Any] | None = None
