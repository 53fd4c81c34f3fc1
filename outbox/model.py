"""The nouns of the protocol: states, actors, the mutable row, a move that somebody asks for.

Pure values. May import `contract`, `defaults` and the standard library only.
Times are aware datetimes of the store's one clock; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from .contract import ToolContract
from .defaults import DEFAULTS, Limits


class State(StrEnum):
    """Where an intent stands. The edges between them stand in `transitions`."""

    HELD = "held"
    """In: a gate, an unsettled generation, a divergence. Out: hold pass, person."""
    QUEUED = "queued"
    """In: put, release, or proof that nothing was sent. Out: a claim from `ready_at` on."""
    EXECUTING = "executing"
    """In: a claim. Nothing sent by this attempt. Out: the send mark, give back, lapse."""
    AWAITING_ACK = "awaiting_ack"
    """In: the durable send mark. A request may be on the wire. Out: outcome, or expiry."""
    INDETERMINATE = "indeterminate"
    """In: an unknown outcome or expiry. Out: proof, same-key resend, a person, a compensation."""
    COMMITTED = "committed"
    """In: proof of the effect. Final, or undone by its compensation."""
    FAILED = "failed"
    """In: proof that no attempt of this generation took effect. Final."""
    CANCELLED = "cancelled"
    """In: withdrawn while no send was open. Final."""
    COMPENSATED = "compensated"
    """In: a named compensation undid the effect. Final."""


CALLED_OFF_STATES = frozenset({State.FAILED, State.CANCELLED, State.COMPENSATED})
"""Settled with no standing effect: an earlier generation here stands in nobody's way."""
SETTLED_STATES = CALLED_OFF_STATES | {State.COMMITTED}
WITHDRAWABLE_STATES = frozenset({State.HELD, State.QUEUED, State.EXECUTING})


class Actor(StrEnum):
    """Who asks for an edge; stands in every event."""

    PLANNER = "planner"
    WORKER = "worker"
    REAPER = "reaper"
    RECONCILER = "reconciler"
    OUTBOX = "outbox"
    PERSON = "person"


@dataclass(frozen=True)
class Row:
    """The mutable state of one (intent_id, generation), as the guards see it.

    `fingerprint` and `content` belong to the immutable intent; they are loaded only where an edge
    looks at other generations of the step.
    """

    seq: int
    generation: int = 0
    lane: str = "default"
    state: State = State.QUEUED
    fence: int = 0
    attempts: int = 0
    sends: int = 0
    resends: int = 0
    probes: int = 0
    cut_offs: int = 0
    suspect: bool = False
    suspect_claims: int = 0
    unready_since: datetime | None = None
    ready_at: datetime | None = None
    deadline: datetime | None = None
    withdraw_at: datetime | None = None
    hold_at: datetime | None = None
    owner: UUID | None = None
    ack_by: datetime | None = None
    first_sent_at: datetime | None = None
    request_digest: str | None = None
    handle: Any = field(default=None, repr=False)
    quiet_at: datetime | None = None
    unknown_since: datetime | None = None
    contract_id: int | None = None
    unresolved: bool = False
    key_trusted: bool = True
    in_doubt: bool = False
    live: bool = True
    wanted: bool = True
    undo: int | None = None
    adopted_from: int | None = None
    diverged_at: datetime | None = None
    probe_at: datetime | None = None
    parked_at: datetime | None = None
    observation_id: int | None = None
    settled_at: datetime | None = None
    bound_at: datetime | None = None
    handed_at: datetime | None = None
    fingerprint: str | None = None
    content: str | None = None


def changed(row: Row, columns: Mapping[str, Any]) -> Row:
    """Return a copy of the row with other values in some columns.

    What `dataclasses.replace` returns, without its loop over every field: a simulated world copies
    rows all the time. Row has no slots for this reason.
    """
    copy = object.__new__(Row)
    copy.__dict__.update(row.__dict__)
    copy.__dict__.update(columns)
    return copy


@dataclass(frozen=True, slots=True)
class Move:
    """One edge that somebody asks for on one row, with everything they say about it.

    `from_state` is the state that the decision was made on: part of the compare-and-set.
    Fields that an edge's guards and effects do not name are ignored by it.
    """

    edge: str
    seq: int
    from_state: State
    fence: int | None = None
    owner: UUID | None = None
    contract_id: int | None = None
    delay_seconds: float = 0.0
    final: bool = False
    transient: bool = False
    key_store: bool = False
    decisive: bool = False
    unready: bool = False
    alone: bool = False
    digest: str | None = None
    handle: Any = field(default=None, repr=False)
    may_duplicate: bool = False
    drop_handle: bool = False
    divergence: datetime | None = None
    adopted_from: int | None = None
    reason: str | None = None


class GateDecision(StrEnum):
    """What was decided at a gate."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class World:
    """What guards may look at beside the row and the move, read under the row's lock."""

    now: datetime
    contract: ToolContract | None = None
    limits: Limits = DEFAULTS
    owner_alive: bool = True
    tool_served: bool = False
    """A live worker's row lists the tool at the row's version."""
    paused: bool = False
    read_set_holds: bool = True
    gate: GateDecision | None = None
    step: tuple[Row, ...] = ()
    """All generations of the step, this row included, in ascending generation."""
    undo_committed: bool = False
    """A generation of the row's derived compensation is committed."""
    share: float = 1.0
    """A random share in [0, 1], drawn by the store, for the jitter of a back-off."""
    edges: Mapping[str, Any] | None = None
    """A table to go by instead of the shipped one: how the simulator takes a guard out of it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The protocol's no: a value with a stable code, never an exception inside the core."""

    code: str
    detail: str = ""
