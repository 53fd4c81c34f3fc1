"""What an adapter concluded about one attempt: Applied, Accepted, NotApplied or Unknown.

Pure values. May import `type_variables` and the standard library only.
`NotApplied` is an exception as well, because a function tool proves "nothing happened" by raising
it; every other exception of a tool is Unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeAlias

from .type_variables import R_co


class Answer(StrEnum):
    """How much of a success answer an Unknown saw; decides whether the key is still trusted."""

    NONE = "none"
    """No 2xx status was seen."""
    CUT_OFF = "cut_off"
    """A 2xx status arrived, its body did not end: a miss only at the second distinct one."""
    COMPLETE = "complete"
    """A complete 2xx lacked the declared echo: a protocol miss."""


@dataclass(frozen=True, slots=True)
class Applied(Generic[R_co]):
    """The effect happened. `ref` is the tool's own id of it, None where none was learned."""

    ref: str | None = None
    result: R_co | None = field(default=None, repr=False)
    key_store: bool = False
    """The answer was a replay out of the provider's key store."""
    result_digest: str | None = None
    """SHA-256 of a result that was too large or no JSON, and so is not stored."""


@dataclass(frozen=True, slots=True)
class Accepted(Generic[R_co]):
    """The tool took the request and finishes it later; for deduplication it counts as Applied."""

    ref: str | None = None
    result: R_co | None = field(default=None, repr=False)
    key_store: bool = False
    result_digest: str | None = None


@dataclass(unsafe_hash=True)
class NotApplied(Exception):
    """Proof that this attempt changed nothing at the tool.

    `transient` allows another send; `retry_after_seconds` is the tool's own wish.
    `key_store` says that the answer came out of the provider's key store and so speaks for every
    send of the intent, not for this one alone.
    """

    reason: str = ""
    code: str = "refused"
    transient: bool = False
    retry_after_seconds: float | None = None
    key_store: bool = False

    def __str__(self) -> str:
        return self.reason or self.code


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can tell whether the effect happened. Never a failure."""

    reason: str
    code: str = "no_answer"
    answer: Answer = Answer.NONE


Outcome: TypeAlias = Applied | Accepted | NotApplied | Unknown

_KINDS: dict[str, type[Any]] = {
    "applied": Applied,
    "accepted": Accepted,
    "not_applied": NotApplied,
    "unknown": Unknown,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def kind_of(outcome: Outcome) -> str:
    """Return the stable word for the outcome's kind, as observations store it."""
    return _NAMES[type(outcome)]


def to_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as a JSON object with a `kind` key; `from_document` is its inverse."""
    return {"kind": kind_of(outcome), **asdict(outcome)}


def from_document(document: Mapping[str, Any]) -> Outcome:
    """Rebuild an outcome from `to_document`'s form. Raises KeyError for an unknown kind."""
    fields = dict(document)
    kind = _KINDS[fields.pop("kind")]
    if kind is Unknown:
        fields["answer"] = Answer(fields["answer"])
    outcome: Outcome = kind(**fields)
    return outcome
