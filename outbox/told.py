"""What a planner is told about a step: one vocabulary for the API, the command line and a model.

Pure values; `telling` decides which of them is told. None of them shows a result in its repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .identity import DEFAULT_NAMESPACE, wire_key

RESULT_DIGEST = "result_digest"
"""Key of an observation's document that stands in for a result that could not be kept."""


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
            "result": getattr(self, "result", None),
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
class Committed(Told):
    """The effect happened. `accepted`: the tool took the request and finishes it later."""

    word = "committed"

    ref: str | None = None
    result: Any = field(default=None, repr=False)
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
