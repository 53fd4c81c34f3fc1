"""Decides what a planner is told, from all generations of a step and what was observed of them.

Pure; may import `model`, `told`, `guards` and `identity`. Two rules stand above the rest: while a
divergence is open the step is unknown, and nothing is told as not happened while an earlier
generation might have happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .identity import DEFAULT_NAMESPACE, undo_id, wire_key
from .model import CALLED_OFF_STATES, SETTLED_STATES, GateDecision, Row, State
from .told import (
    RESULT_DIGEST,
    AlsoHappened,
    AwaitingApproval,
    Cancelled,
    Committed,
    CommittedNoResult,
    Compensated,
    Failed,
    InFlight,
    Superseded,
    ToldOutcome,
    UnknownOutcome,
)

_LAST_WORD_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of a step with the observation that settled it."""

    row: Row
    namespace: str
    intent_id: str
    tool: str
    outcome: str | None = None
    ref: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)
    gate: GateDecision | None = None
    unserved: bool = False
    """No live worker's row lists the tool at the row's version, in the row's lane."""
    paused: bool = False
    version: int = 1
    last_word: str | None = None
    """Why the newest attempt's outcome is unknown, as its adapter said; only of an unknown row."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A told outcome, and whether waiting any longer could bring another one by itself."""

    told: ToldOutcome[Any]
    finished: bool
    bound: bool


def tell(step: Sequence[Generation], generation: int | None, now: datetime) -> Telling | None:
    """Return what to tell about a generation, None for the live one; None where there is none."""
    asked = _asked(step, generation)
    if asked is None:
        return None
    told, finished = _tell(asked, step, now)
    return Telling(told, finished, asked.row.bound_at is not None)


def _asked(step: Sequence[Generation], generation: int | None) -> Generation | None:
    for one in step:
        if one.row.live if generation is None else one.row.generation == generation:
            return one
    return None


def _tell(
    asked: Generation, step: Sequence[Generation], now: datetime
) -> tuple[ToldOutcome[Any], bool]:
    said = _Said(asked, step)
    if any(one.row.diverged_at is not None for one in step):
        told: ToldOutcome[Any] = UnknownOutcome(
            **said.common("divergence", f"ackbox show {said.name}, then ackbox release")
        )
        return told, True
    if not asked.row.live:
        return _superseded(said)
    state = asked.row.state
    if state in (State.FAILED, State.CANCELLED):
        return _nothing_happened(said)
    if state in SETTLED_STATES:
        return _happened(said)
    if state is State.INDETERMINATE:
        return _unknown(said)
    return _under_way(said, now)


class _Said:
    """What all told outcomes about one generation have in common."""

    def __init__(self, asked: Generation, step: Sequence[Generation]) -> None:
        self.asked = asked
        self.step = step
        self.row = asked.row
        self.earlier = [one for one in step if one.row.generation < asked.row.generation]
        front = "" if asked.namespace == DEFAULT_NAMESPACE else f"{asked.namespace}/"
        back = f"~g{self.row.generation}" if self.row.generation else ""
        self.name = f"{front}{asked.intent_id}{back}"

    def common(self, reason: str, next_step: str, *, own: bool = False) -> dict[str, Any]:
        """Return the keyword arguments of every told outcome. `own`: its own effect counts too."""
        return {
            "namespace": self.asked.namespace,
            "intent_id": self.asked.intent_id,
            "generation": self.row.generation,
            "reason": reason,
            "next_step": next_step,
            "also_happened": self._also_happened(own),
        }

    def _also_happened(self, own: bool) -> tuple[AlsoHappened, ...]:
        """Return standing effects of other generations; an adopted effect is one, its owner's."""
        others = [*self.earlier, self.asked] if own else self.earlier
        owners = {
            one.row.adopted_from or one.row.seq
            for one in others
            if one.row.state is State.COMMITTED
        }
        if not own:
            owners.discard(self.row.adopted_from or self.row.seq)
        return tuple(
            AlsoHappened(
                one.row.generation,
                wire_key(one.namespace, one.intent_id, one.row.generation),
                one.ref,
            )
            for one in self.step
            if one.row.seq in owners
        )

    def unsettled(self) -> Generation | None:
        """Return the first earlier generation that may have taken effect, or has."""
        for one in self.earlier:
            if one.row.state not in CALLED_OFF_STATES:
                return one
        return None


def _superseded(said: _Said) -> tuple[ToldOutcome[Any], bool]:
    live = next((one.row.generation for one in said.step if one.row.live), said.row.generation)
    reason = f"replaced by generation {live}"
    look = f"ackbox show {said.name}"
    if said.row.state is State.INDETERMINATE:
        told: ToldOutcome[Any] = UnknownOutcome(
            **said.common(f"{reason}; its own outcome is unknown", look)
        )
        return told, said.row.parked_at is not None
    if said.row.state not in SETTLED_STATES:
        return InFlight(**said.common(f"{reason}; its request may be on the wire", look)), False
    if (blocking := said.unsettled()) is not None:
        return _earlier_stands(said, blocking)
    common = said.common(reason, "ask about the step, not about this generation", own=True)
    return Superseded(superseded_by=live, **common), True


def _nothing_happened(said: _Said) -> tuple[ToldOutcome[Any], bool]:
    """Failed or cancelled: only where no earlier generation might have happened."""
    if (blocking := said.unsettled()) is not None:
        return _earlier_stands(said, blocking)
    reason = str(said.asked.document.get("reason") or said.asked.document.get("code") or "")
    if said.row.state is State.FAILED:
        return Failed(**said.common(reason, "put another step, or supersede this one")), True
    return Cancelled(**said.common(reason, "nothing is left to do")), True


def _earlier_stands(said: _Said, blocking: Generation) -> tuple[ToldOutcome[Any], bool]:
    number = blocking.row.generation
    happened = blocking.row.state is State.COMMITTED and blocking.row.undo is None
    reason = f"generation {number} took effect" if happened else f"generation {number} is open"
    step = "compensate it, or take its effect as it is" if happened else "wait until it is settled"
    finished = happened or blocking.row.parked_at is not None
    return UnknownOutcome(**said.common(reason, step)), finished


def _happened(said: _Said) -> tuple[ToldOutcome[Any], bool]:
    owner = next((one for one in said.step if one.row.seq == said.row.adopted_from), said.asked)
    if said.row.state is State.COMPENSATED:
        common = said.common("the effect was undone", "nothing is left to do")
        return Compensated(ref=owner.ref, **common), True
    if said.row.undo is not None or owner.row.undo is not None:
        look = f"ackbox show {undo_id(owner.intent_id, owner.row.generation)}"
        return InFlight(**said.common("compensating", look)), False
    adopted = owner is not said.asked
    reason = f"generation {owner.row.generation} had done it already" if adopted else ""
    return _committed(owner, said.common(reason, "nothing is left to do")), True


def _committed(owner: Generation, common: dict[str, Any]) -> ToldOutcome[Any]:
    accepted = owner.outcome == "accepted"
    digest = owner.document.get(RESULT_DIGEST)
    if digest is not None:
        return CommittedNoResult(ref=owner.ref, digest=digest, accepted=accepted, **common)
    result = owner.document.get("result")
    return Committed(
        ref=owner.ref, result=result, stored_result=result, accepted=accepted, **common
    )


def _unknown(said: _Said) -> tuple[ToldOutcome[Any], bool]:
    if said.row.undo is not None:
        return UnknownOutcome(**said.common("compensating", f"ackbox show {said.name}")), False
    if said.row.parked_at is not None:
        step = f"ackbox resolve {said.name} --landed REF | --not-landed --reason TEXT"
        return UnknownOutcome(
            **said.common(_with_last_word(said, "a person must decide"), step)
        ), True
    reason = _with_last_word(said, "being reconciled")
    common = said.common(reason, f"wait, or look: ackbox show {said.name}")
    return UnknownOutcome(**common), False


def _with_last_word(said: _Said, reason: str) -> str:
    word = said.asked.last_word
    return f"{reason}; last: {word[:_LAST_WORD_CHARACTERS]}" if word else reason


def _under_way(said: _Said, now: datetime) -> tuple[ToldOutcome[Any], bool]:
    look = f"ackbox show {said.name}"
    if said.row.state is State.HELD:
        return _held(said, look)
    if not said.row.wanted:
        return InFlight(**said.common("the cancel is recorded; one send is open", look)), False
    return InFlight(**said.common(_why(said.asked, now), look)), False


def _held(said: _Said, look: str) -> tuple[ToldOutcome[Any], bool]:
    if said.row.parked_at is not None:
        common = said.common("held until a person releases it", f"ackbox release {said.name}")
        return InFlight(**common), True
    blocking = said.unsettled()
    if said.asked.gate is GateDecision.OPEN:
        return AwaitingApproval(**said.common("waits for an approval", look)), False
    if said.asked.gate is GateDecision.REJECTED:
        return InFlight(**said.common("rejected; being withdrawn", look)), False
    if blocking is not None:
        reason = f"waits until generation {blocking.row.generation} is settled"
        return InFlight(**said.common(reason, look)), False
    return InFlight(**said.common("about to be released", look)), False


def _why(asked: Generation, now: datetime) -> str:
    """Return why the row is still under way, the most telling cause first."""
    row = asked.row
    if row.state is State.AWAITING_ACK:
        return "sent; waits for the tool's answer"
    if row.state is State.EXECUTING:
        return "a worker prepares the call"
    if row.deadline is not None and row.deadline <= now:
        return "its deadline has passed; being withdrawn"
    if asked.paused:
        return f"{asked.tool} is paused"
    if asked.unserved:
        return f"no live worker has {asked.tool}{_version(asked.version)}"
    if row.unready_since is not None:
        return f"no worker could prepare the call yet; {_next_try(row, now)}"
    if row.ready_at is not None and row.ready_at > now:
        return f"may start at {row.ready_at.isoformat()}"
    return "waits for a worker"


def _version(version: int) -> str:
    return "" if version == 1 else f" version {version}"


def _next_try(row: Row, now: datetime) -> str:
    if row.ready_at is None or row.ready_at <= now:
        return "the next try is due"
    return f"the next try is at {row.ready_at.isoformat()}"
