"""What becomes of a held row, and the pass that looks at held rows and at ended compensations.

Level-triggered: every decision is made from the step as it stands under its lock, so that no
release depends on an event having been seen. Pure; may import `model`, `guards`, `transitions`,
`contract`, `compensate` and `commands`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from .commands import (
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
from .compensate import TOOL_UNKNOWN
from .contract import ToolContract
from .defaults import Limits
from .guards import adoptable_owner, is_quiet, is_wanted
from .model import SETTLED_STATES, GateDecision, Move, Refusal, Row, State, World
from .transitions import refusal_of

MOVED_ON = "moved_on"
DEADLINE = "deadline"
DIVERGENCE = "divergence"
GATE = "gate"
UNSETTLED = "generation_unsettled"
COMPENSATING = "compensation_open"
NOT_QUIET = "not_quiet"
PERSON = "person"
COMPENSATION_FAILED = "compensation_failed"
PERSONS_REASONS = frozenset({DIVERGENCE, PERSON, COMPENSATION_FAILED})
"""Nothing but a person moves a row that is held for one of these."""
_NOT_FOR_A_PERSON = frozenset({"not_quiet", "awaiting_ack", TOOL_UNKNOWN})


@dataclass(frozen=True, slots=True)
class HoldDecision:
    """What to do with a held row: make `move`, undo the effect of `owner`, or leave it held.

    `generation` is the earlier one that it waits for. `starts_gate_clock`: nothing but the gate
    (and a compensation that comes after it) is left to wait for.
    """

    reason: str
    move: Move | None = None
    owner: int | None = None
    generation: int | None = None
    starts_gate_clock: bool = False

    @property
    def needs_person(self) -> bool:
        """Whether the row is parked in front of a person."""
        return self.move is None and self.owner is None and self.reason in PERSONS_REASONS


def decide(
    row: Row,
    world: World,
    contracts: Mapping[int, ToolContract | None],
    ordered: Collection[int] = (),
) -> HoldDecision:
    """Return the first that applies: adopt, release, undo what stands in the way, stay held.

    `world.step` holds every generation under lock; `contracts` the declaration that each was last
    claimed with, by seq; `ordered` the generations that the outbox has already undone by itself.
    A live row elsewhere that met an open divergence is held.
    """
    if row.state in (State.QUEUED, State.EXECUTING):
        return _moves(row, world, [Move("hold", row.seq, row.state, reason=DIVERGENCE)])
    if row.state is not State.HELD:
        return HoldDecision(MOVED_ON)
    owner = adoptable_owner(row, world)
    adopt = Move(
        "adopt", row.seq, row.state, adopted_from=owner.seq if owner else None, reason="adopted"
    )
    moved = _moves(row, world, [adopt, Move("release", row.seq, row.state, reason="released")])
    return moved if moved.move else _stay(row, world, contracts, ordered)


def _moves(row: Row, world: World, moves: list[Move]) -> HoldDecision:
    for move in moves:
        if refusal_of(row, move, world) is None:
            return HoldDecision(move.edge, move)
    return HoldDecision(MOVED_ON)


def _stay(
    row: Row,
    world: World,
    contracts: Mapping[int, ToolContract | None],
    ordered: Collection[int],
) -> HoldDecision:
    if not is_wanted(row, world.now):
        return HoldDecision(DEADLINE)
    if row.diverged_at is not None:
        return HoldDecision(DIVERGENCE)
    earlier = [other for other in world.step if other.generation < row.generation]
    unsettled = [other for other in earlier if other.state not in SETTLED_STATES]
    if unsettled:
        return HoldDecision(UNSETTLED, generation=unsettled[0].generation)
    if world.gate is not None and world.gate is not GateDecision.APPROVED:
        # What is left besides the gate comes after the approval: its clock runs from now on.
        return HoldDecision(GATE, starts_gate_clock=world.gate is GateDecision.OPEN)
    return _undo_first(row, world, earlier, contracts, ordered)


def _undo_first(
    row: Row,
    world: World,
    earlier: list[Row],
    contracts: Mapping[int, ToolContract | None],
    ordered: Collection[int],
) -> HoldDecision:
    owners = [
        other
        for other in earlier
        if other.state is State.COMMITTED and other.adopted_from is None
    ]  # fmt: skip
    undone = [owner for owner in owners if owner.undo is not None]
    if undone:
        return HoldDecision(COMPENSATING, generation=undone[-1].generation)
    others = [owner for owner in owners if owner.content != row.content]
    if not others:
        return HoldDecision(PERSON)
    # The latest effect is undone first.
    owner = others[-1]
    contract = contracts.get(owner.seq)
    if contract is None or not contract.compensates:
        return HoldDecision(PERSON, generation=owner.generation)
    if owner.seq in ordered:
        return HoldDecision(COMPENSATION_FAILED, generation=owner.generation)
    if not is_quiet(owner, world.now):
        return HoldDecision(NOT_QUIET, generation=owner.generation)
    return HoldDecision(COMPENSATING, owner=owner.seq, generation=owner.generation)


def refused(decision: HoldDecision, refusal: Refusal) -> HoldDecision:
    """Return why the row stays held where the compensation that it waits for was refused."""
    reason = refusal.code if refusal.code in _NOT_FOR_A_PERSON else PERSON
    return HoldDecision(reason, generation=decision.generation)


def next_look_seconds(age_seconds: float, share: float, limits: Limits) -> float:
    """Return when a row that stays held is looked at again: after a quarter of its age.

    The statement rearm_hold computes the same.
    """
    quarter = max(limits.backoff_base_seconds, age_seconds / 4)
    return min(limits.backoff_cap_seconds, quarter) * (0.5 + share / 2)


@dataclass(frozen=True, slots=True)
class HoldReport:
    """What one pass did."""

    looked_at: int = 0
    moved: int = 0
    ordered: int = 0
    undone: int = 0


def hold_pass(limit: int, token_limit: int) -> Generator[Any, Any, HoldReport]:
    """Settle targets whose compensation ended, then look at held rows whose turn has come.

    Both bounded by `limit`. Lanes that got rows are rung, the result consumer where rows settled.
    """
    undone: tuple[int, ...] = yield FindUndone(limit)
    finished = 0
    for seq in undone:
        answer: HoldAnswer = yield FinishUndo(seq)
        finished += answer.edge is not None
    held: tuple[int, ...] = yield FindHeld(limit)
    edges: Counter[str] = Counter()
    lanes: set[str] = set()
    for seq in held:
        answer = yield from _look_at(seq)
        edges[answer.edge or ""] += 1
        if answer.edge in ("release", "order"):
            lanes.add(answer.lane)
    for lane in sorted(lanes):
        yield Ring(lane, token_limit)
    if finished or edges["adopt"]:
        yield RingResults()
    ordered = edges["order"]
    return HoldReport(len(held), len(held) - edges[""] - ordered, ordered, finished)


def _look_at(seq: int) -> Generator[Any, Any, HoldAnswer]:
    answer: HoldAnswer = yield HoldStep(seq)
    if answer.owner is not None:
        plan = yield PlanCompensation(answer.owner)
        answer = yield OrderCompensation(seq, answer.owner, plan)
    return answer
