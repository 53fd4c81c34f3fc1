"""What the procedures ask of a store, and what they get back.

A procedure is a generator: it yields one of these commands and is resumed with the reply named in
the command's docstring. Two drivers answer them: the production store and the simulator's.
Pure values; may import `model` and `outcome`. Replies carry no random ids and no times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .contract import ToolContract
from .identity import wire_key
from .model import State
from .outcome import Outcome


@dataclass(frozen=True, slots=True)
class Target:
    """The effect that a compensation undoes."""

    wire_key: str
    args: dict[str, Any] = field(repr=False)
    ref: str | None = None
    result: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row that this process may prepare and, after the mark, send. `sends` counts marks so far.

    Also what a reconciler gets for a probe or a resend: `fence` is then the row's present one.
    """

    seq: int
    namespace: str
    intent_id: str
    generation: int
    fence: int
    tool: str
    version: int
    lane: str
    args: dict[str, Any] = field(repr=False)
    contract_id: int | None = None
    sends: int = 0
    handle: Any = field(default=None, repr=False)
    suspect: bool = False
    target: Target | None = None
    traceparent: str | None = None

    @property
    def wire_key(self) -> str:
        """The Idempotency-Key of this (intent_id, generation)."""
        return wire_key(self.namespace, self.intent_id, self.generation)


@dataclass(frozen=True, slots=True)
class ReadyLane:
    """A lane with claimable rows."""

    lane: str
    rows: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class FindReadyLanes:
    """Reply: tuple[ReadyLane, ...]: lanes with rows whose `ready_at` has come."""

    row_limit: int = 1000


@dataclass(frozen=True, slots=True)
class Ring:
    """Put a wake token for a lane. Reply: bool, whether one was put or is already waiting."""

    lane: str
    limit: int


@dataclass(frozen=True, slots=True)
class RingResults:
    """Wake the result consumer. Reply: bool."""


@dataclass(frozen=True, slots=True)
class MarkSend:
    """Write the durable send mark. Reply: Marked, or NotMarked where nothing may be sent."""

    claim: Claimed
    digest: str
    handle: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Marked:
    """The mark is committed: the effect may be sent, once, until the send deadline."""


@dataclass(frozen=True, slots=True)
class NotMarked:
    """No mark: nothing may be sent. `code` is the guard's."""

    code: str


@dataclass(frozen=True, slots=True)
class Record:
    """Keep an outcome and take the edge that it calls for. Reply: Recorded.

    kind is attempt, evidence, probe; number tells repeated observations of one fence apart.
    """

    claim: Claimed
    outcome: Outcome
    kind: str = "attempt"
    number: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """`edge` None: kept, and nothing moved (`code` says why).

    `state` is the row's state now; None where the row is not this attempt's any more.
    """

    edge: str | None
    state: State | None
    code: str = "recorded"


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Return an executing row unsent. Reply: Recorded (withdrawn where it is not wanted).

    `unready` marks the kinds that a limit in time bounds: prepare_failed, build_failed,
    no_worker_for_tool.
    """

    claim: Claimed
    reason: str
    delay_seconds: float = 0.0
    unready: bool = False


@dataclass(frozen=True, slots=True)
class FindOverdue:
    """Reply: tuple[int, ...], seqs of open attempts and rows past their deadline, at most limit."""

    limit: int


@dataclass(frozen=True, slots=True)
class ReapRows:
    """Lock the rows, take `reap.moves_for` of each. Reply: (edge, lane) of those that moved."""

    seqs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FindHeld:
    """Reply: tuple[int, ...], seqs of held rows whose turn to be looked at has come."""

    limit: int


@dataclass(frozen=True, slots=True)
class HoldStep:
    """Lock the step of a held row, then decide by `hold.decide`. Reply: HoldAnswer."""

    seq: int


@dataclass(frozen=True, slots=True)
class HoldAnswer:
    """What was done for a held row: `edge` None means it stays, for `reason`.

    `owner` set: the committed effect of that earlier generation is to be undone first.
    """

    edge: str | None
    reason: str
    lane: str
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class FindUndone:
    """Reply: tuple[int, ...], seqs of targets whose compensation has ended."""

    limit: int


@dataclass(frozen=True, slots=True)
class FinishUndo:
    """Settle a target whose compensation has ended. Reply: HoldAnswer."""

    seq: int


@dataclass(frozen=True, slots=True)
class PlanCompensation:
    """Ask the owner's adapter how its effect is undone. Reply: CompensationRequest or Refusal."""

    owner: int


@dataclass(frozen=True, slots=True)
class OrderCompensation:
    """Undo the owner's effect, so that a held row can go on. Reply: HoldAnswer.

    `plan` is what PlanCompensation was answered with.
    """

    seq: int
    owner: int
    plan: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class FindSettled:
    """Reply: tuple[int, ...], batch ids of settled rows that wait for their binding."""

    limit: int


@dataclass(frozen=True, slots=True)
class BindBatch:
    """Bind what may be bound of a batch. Reply: BindAnswer."""

    batch_id: int


@dataclass(frozen=True, slots=True)
class BindAnswer:
    """Counts of one batch by answer, and whether its rows wait for a hand-over."""

    bound: int = 0
    stale: int = 0
    duplicate: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class FindBound:
    """Reply: tuple[int, ...], batch ids of bound rows that were not handed over yet."""

    limit: int


@dataclass(frozen=True, slots=True)
class HandOverBatch:
    """Run the `after_bound` callbacks of a batch. Reply: int, rows handed over."""

    batch_id: int


@dataclass(frozen=True, slots=True)
class FindUnknown:
    """Reply: tuple[Unresolved, ...]: indeterminate rows whose `probe_at` has come."""

    limit: int


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An indeterminate row as the reconciler sees it; every flag was computed by the store."""

    claim: Claimed
    contract: ToolContract
    probes: int
    resends: int
    quiet: bool
    parked: bool
    may_resend: bool
    """Every guard of `resend` but the request's digest holds."""
    too_old: bool
    """`park_after` has passed since the outcome became unknown."""
    resend_later: bool = False
    """No guard of `resend` is lost for good: a pause may end, the row may become quiet."""


@dataclass(frozen=True, slots=True)
class RecordProbe:
    """Keep a probe's answer: Found acknowledges, a strong Absent clears or refuses.

    Reply: Recorded. `answer` is found, absent or inconclusive. `was_quiet` is `Unresolved.quiet`
    from before the probe began: what a probe read earlier proves no absence. `others` are further
    effects under the same marker.
    """

    claim: Claimed
    answer: str
    ref: str | None = None
    result: Any = field(default=None, repr=False)
    reason: str = ""
    was_quiet: bool = False
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resend:
    """Take the row for a same-key resend. Reply: Claimed with the raised fence, or NotMarked."""

    claim: Claimed
    digest: str


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Set when the reconciler looks next. Reply: None."""

    claim: Claimed
    delay_seconds: float


@dataclass(frozen=True, slots=True)
class Park:
    """Put the row in front of a person; slower probes go on. Reply: None."""

    claim: Claimed
    reason: str
    delay_seconds: float
