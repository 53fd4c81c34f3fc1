"""What a planner is told about a step: one vocabulary for the API, the command line and a model.

Pure values; `telling` decides which of them is told. None of them shows a result in its repr.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias

from .errors import InvalidIntent
from .identity import DEFAULT_NAMESPACE, canonical, wire_key
from .type_variables import R, R_co

if TYPE_CHECKING:
    from .intent import ResultReader

RESULT_DIGEST = "result_digest"
"""Key of an observation's document that stands in for a result that could not be kept."""
_ANY_SIZE = 2**63


@dataclass(frozen=True, slots=True)
class AlsoHappened:
    """An effect of another generation of the step that stands beside what is told."""

    generation: int
    wire_key: str
    ref: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the parts as JSON."""
        return {"generation": self.generation, "wire_key": self.wire_key, "ref": self.ref}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What every told outcome says. `word` is stable; `reason` and `next_step` are for people."""

    word: ClassVar[str] = ""

    intent_id: str
    generation: int
    namespace: str = DEFAULT_NAMESPACE
    reason: str = ""
    next_step: str = ""
    also_happened: tuple[AlsoHappened, ...] = ()

    @property
    def wire_key(self) -> str:
        """The Idempotency-Key of the generation that is told about."""
        return wire_key(self.namespace, self.intent_id, self.generation)

    def as_dict(self) -> dict[str, Any]:
        """Return the same keys for every told outcome; what does not apply is null."""
        return {
            "word": self.word,
            "namespace": self.namespace,
            "intent_id": self.intent_id,
            "generation": self.generation,
            "wire_key": self.wire_key,
            "reason": self.reason,
            "next_step": self.next_step,
            "ref": getattr(self, "ref", None),
            "result": getattr(self, "stored_result", None),
            "accepted": getattr(self, "accepted", None),
            "digest": getattr(self, "digest", None),
            "superseded_by": getattr(self, "superseded_by", None),
            "also_happened": [other.as_dict() for other in self.also_happened],
        }

    def for_model(self) -> str:
        """Return the sentences that an agent's model may read; no reason or result is in them."""
        lines = [self._model_line()]
        for other in self.also_happened:
            named = f" (reference {other.ref})" if other.ref else ""
            lines.append(f"Another version of this step took effect as well{named}.")
        return " ".join(lines)

    def _model_line(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight(Told):
    """The step is under way, or waits for something that is not a person's approval."""

    word = "in_flight"

    def _model_line(self) -> str:
        return "The call is submitted and not finished. Do not submit it again; ask again later."


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingApproval(Told):
    """Nothing is sent before somebody approves it."""

    word = "awaiting_approval"

    def _model_line(self) -> str:
        return "The call waits for a person's approval. Do not submit it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Told, Generic[R_co]):
    """The effect happened. `accepted`: the tool took the request and finishes it later.

    `result` is what the tool's annotation says, where the intent came from a typed draft, and the
    stored JSON otherwise; `stored_result` is the JSON in either case.
    """

    word = "committed"

    ref: str | None = None
    result: R_co = field(repr=False)
    stored_result: Any = field(default=None, repr=False, compare=False)
    accepted: bool = False

    def _model_line(self) -> str:
        done = "was accepted by the tool" if self.accepted else "took effect"
        named = f" (reference {self.ref})" if self.ref else ""
        return f"The call {done}{named}. Do not submit it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedNoResult(Told):
    """The effect happened; its result could not be kept. The effect is never doubted for it."""

    word = "committed"

    ref: str | None = None
    digest: str | None = None
    accepted: bool = False

    def _model_line(self) -> str:
        named = f" (reference {self.ref})" if self.ref else ""
        return f"The call took effect{named}; its result was not kept. Do not submit it again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Told):
    """Proof that no attempt took effect."""

    word = "failed"

    def _model_line(self) -> str:
        return "The call was refused and changed nothing."


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcome(Told):
    """Nobody knows yet whether the effect happened, or the facts contradict each other."""

    word = "unknown"

    def _model_line(self) -> str:
        return (
            "It is not known whether the call took effect. Do not submit it again and do not try"
            " another way; it is being looked into."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled(Told):
    """Withdrawn before anything was sent."""

    word = "cancelled"

    def _model_line(self) -> str:
        return "The call was cancelled before anything was sent."


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensated(Told):
    """The effect happened and was undone."""

    word = "compensated"

    ref: str | None = None

    def _model_line(self) -> str:
        return "The call took effect and was undone."


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded(Told):
    """A later generation of the step took this one's place."""

    word = "superseded"

    superseded_by: int

    def _model_line(self) -> str:
        return f"The call was replaced by version {self.superseded_by} of the same step."


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRecorded(Told):
    """A cancel came after the send mark: nothing more is sent, and the outcome is still told."""

    word = "cancel_recorded"

    def _model_line(self) -> str:
        return "The call was already sent and may take effect; nothing more will be sent."


ToldOutcome: TypeAlias = (
    InFlight
    | AwaitingApproval
    | Committed[R]
    | CommittedNoResult
    | Failed
    | UnknownOutcome
    | Cancelled
    | Compensated
    | Superseded
)
"""Whatever may be told of a step, closed for `match`: `ToldOutcome[Ticket]` names the result."""


def with_result(
    told: ToldOutcome[Any], read_result: ResultReader[R] | None = None
) -> ToldOutcome[R]:
    """Return what is told with its result read; one that cannot be read is told as not kept.

    Without a reader the result stays JSON. The effect is never doubted for its result.
    """
    if read_result is None or not isinstance(told, Committed):
        return told
    try:
        result = read_result(told.stored_result)
    except InvalidIntent as error:
        return _unreadable(told, error.what)
    return replace(told, result=result)


def _unreadable(told: Committed[Any], problem: str) -> CommittedNoResult:
    """Keep what was told, with the digest of the result that the code here cannot read."""
    stored = told.stored_result
    known = None if stored is None else hashlib.sha256(canonical(stored, _ANY_SIZE)).hexdigest()
    why = "no result is known" if stored is None else problem
    return CommittedNoResult(
        intent_id=told.intent_id, generation=told.generation, namespace=told.namespace,
        reason=told.reason or why, next_step=told.next_step, also_happened=told.also_happened,
        ref=told.ref, digest=known, accepted=told.accepted,
    )  # fmt: skip
