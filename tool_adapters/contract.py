"""The contract between the procedures and a tool's adapter: calls, requests, evidence, answers.

Decides nothing: only shapes, and the defaults of `BaseAdapter`. Pure: `outbox` and the standard
library. An adapter never sends anything. It says which request comes next and what the evidence
means; a transport in a `shell` package performs exactly one exchange for each request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeAlias, runtime_checkable

from ..outbox.contract import ToolContract
from ..outbox.intent import ResultReader
from ..outbox.outcome import NotApplied, Outcome, Unknown
from ..outbox.type_variables import R_co
from .digest import digest_of, stable_headers

Headers: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CompensationTarget:
    """The intent that a compensation undoes, as far as its adapter may need it."""

    wire_key: str
    args: Mapping[str, Any] = field(repr=False)
    ref: str | None = None
    result: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt's view of its intent. The args are the stored ones, never a message's."""

    namespace: str
    intent_id: str
    generation: int
    tool: str
    version: int
    wire_key: str
    args: Mapping[str, Any] = field(repr=False)
    sends: int = 0
    """Send marks so far, this attempt's own included once it is recorded."""
    handle: Any = field(default=None, repr=False)
    """What an earlier attempt prepared and the send mark stored (a draft's id), or None."""
    compensates: CompensationTarget | None = field(default=None, repr=False)
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One HTTP request. Secrets stand in `credentials` only, which nothing stores or prints."""

    method: str
    url: str
    headers: Headers = ()
    body: bytes = field(default=b"", repr=False)
    credentials: Headers = field(default=(), repr=False)

    def digest(self) -> str:
        """Return the SHA-256 of what makes this request itself: method, target, key and body.

        Headers that change between two sends of the same request are left out: credentials,
        signatures, dates, trace headers and a multipart boundary.
        """
        parts = [self.method.upper(), self.url, stable_headers(self.headers)]
        return digest_of("http", parts, self.body)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One call of a Python function. `purpose` tells the effect from a harmless probe."""

    tool: str
    version: int
    wire_key: str
    args: Mapping[str, Any] = field(repr=False)
    purpose: str = "effect"
    context: Call | None = field(default=None, repr=False, compare=False)
    """The call it is made for: what the function may look at besides its arguments."""

    def digest(self) -> str:
        """Return the SHA-256 over tool, version, wire key and arguments."""
        parts = ["function", self.tool, self.version, self.wire_key, dict(self.args)]
        return digest_of(self.purpose, parts, b"")


Request: TypeAlias = HttpRequest | FunctionCall


class Phase(StrEnum):
    """How far an HTTP exchange came, as the transport's trace proves it."""

    NOT_SENT = "not_sent"
    """No byte of the request left: nothing can have happened."""
    SENDING = "sending"
    """The request was cut before its last byte was handed over: nothing can have happened."""
    SENT = "sent"
    """The whole request left, no status came back: nobody can tell."""
    STATUS = "status"
    """A status line and its headers arrived, the body did not end."""
    COMPLETE = "complete"
    """The answer ended as far as this side can see; `framing_complete` says whether proven."""


@dataclass(frozen=True, slots=True)
class HttpEvidence:
    """What one HTTP exchange left behind."""

    phase: Phase
    status: int | None = None
    headers: Headers = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    """The answer's bytes so far; None where no status arrived or the limit was passed."""
    error: str | None = None
    """`<exception name>: <text>` of what ended the exchange early."""
    framing_complete: bool = False
    """HTTP itself proves that the body is whole (length, chunks, or a status without body)."""
    over_limit: bool = False
    """The answer was longer than the response limit; reading stopped there."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The function returned this value (an outcome is a value too)."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class RaisedOutcome:
    """The function raised an outcome: `NotApplied`, its only proof that nothing happened."""

    outcome: NotApplied


@dataclass(frozen=True, slots=True)
class RaisedError:
    """The function raised something else; nobody can tell what it did before."""

    error_type: str
    text: str = ""
    """Where it was raised (file and line); never the message, which may hold arguments."""


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The function still runs although its time limit has passed."""


FunctionEvidence: TypeAlias = Returned | RaisedOutcome | RaisedError | OverLimit


@dataclass(frozen=True, slots=True)
class NotWritten:
    """The send deadline had passed, so that no byte was written and no function was called."""

    reason: str = "send deadline passed"


Evidence: TypeAlias = HttpEvidence | FunctionEvidence | NotWritten


@dataclass(frozen=True, slots=True)
class Prepared:
    """All harmless requests before the effect are done; the send mark stores the handle."""

    handle: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The probe found the effect: by exact marker, so it is this generation's."""

    ref: str | None = None
    result: Any = field(default=None, repr=False)
    others: tuple[str, ...] = ()
    """References of further effects under the same marker: each is one too many."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The probe read everything and found nothing. What that proves, the contract says."""


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """The probe could not tell."""

    reason: str = ""


ProbeAnswer: TypeAlias = Found | Absent | Inconclusive


@dataclass(frozen=True, slots=True)
class CompensationPlan:
    """The intent that undoes a target: which tool, with which arguments."""

    tool: str
    args: Mapping[str, Any] = field(repr=False)
    ensure_absent: bool = False
    """It finds by exact marker and proves absence, so an indeterminate target may have it."""
    filled_in: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What defaults of the undoing tool's signature fill in, stored beside the arguments."""


@dataclass(frozen=True, slots=True)
class NoHandle:
    """Nothing is known by which the target could be undone."""


@dataclass(frozen=True, slots=True)
class IntentDraft(Generic[R_co]):
    """A checked request for one effect, not stored yet: what a planner's `put` takes."""

    tool: str
    version: int
    lane: str
    args: Mapping[str, Any] = field(repr=False)
    """As the caller gave them, already JSON; the fingerprint is taken over these."""
    defaults: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What defaults fill in: stored beside the arguments, or in place of one that they complete."""
    read_result: ResultReader[R_co] | None = field(default=None, repr=False, compare=False)
    """How the result that comes of it is read; None leaves it JSON."""


@runtime_checkable
class Adapter(Protocol):
    """One version of one tool. Every method is pure; raising is an answer that callers handle."""

    @property
    def contract(self) -> ToolContract:
        """What the tool declares about itself."""

    def build(self, call: Call) -> None:
        """Check the stored args. Raising means a failing build: nothing is sent."""

    def prepare(self, call: Call, answers: tuple[Evidence, ...]) -> Request | Prepared:
        """Return the next harmless request before the effect, or what they have prepared."""

    def encode(self, call: Call, handle: Any) -> Request:
        """Return the whole effect request, the same one for the same call and handle."""

    def classify(
        self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]
    ) -> Outcome | Request:
        """Return what the evidence proves, or one more harmless read (asked again with it)."""

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Return the next harmless read that looks for the effect, or what was learned."""

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Return the intent that undoes the target."""


class BaseAdapter:
    """Defaults for an adapter without preparation, probe and compensation."""

    def build(self, call: Call) -> None:
        """Accept any args."""

    def prepare(self, call: Call, answers: tuple[Evidence, ...]) -> Request | Prepared:
        """Prepare nothing and keep the handle that the call already has."""
        return Prepared(call.handle)

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Have no probe."""
        return Inconclusive("the tool declares no probe")

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Have no compensation."""
        return NoHandle()


def unsent_outcome(evidence: NotWritten) -> NotApplied:
    """Return the outcome of an attempt that missed its send deadline: it may be sent again."""
    return NotApplied(evidence.reason, code="not_written", transient=True)


def foreign_evidence(evidence: object) -> Unknown:
    """Return the outcome for evidence that the adapter's kind of request cannot leave."""
    return Unknown(f"evidence of another kind: {type(evidence).__name__}", code="bad_evidence")
