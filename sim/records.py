"""What the in-memory outbox holds beside its state rows. Values; nothing here decides anything.

May import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from ..outbox.intent import Intent
from ..outbox.model import Actor, GateDecision, State


class Frozen(dict[str, Any]):
    """A JSON object that is never changed, so that it may stand in a key or a reply log."""

    __slots__ = ("_digest",)

    def __hash__(self) -> int:  # type: ignore[override]
        if not hasattr(self, "_digest"):
            self._digest = hash(tuple(sorted((key, repr(self[key])) for key in self)))
        return self._digest


@dataclass(frozen=True)
class IntentRecord:
    """The immutable part of one generation."""

    seq: int
    namespace: str
    intent_id: str
    generation: int
    tool: str
    tool_version: int
    lane: str
    args: Frozen = field(repr=False)
    fingerprint: str
    content: str
    created_at: datetime
    run_id: str | None = None
    step: str | None = None
    read_set: Mapping[str, int] | None = None
    deadline: datetime | None = None
    compensates: int | None = None
    traceparent: str | None = None
    tracestate: str | None = None

    @cached_property
    def name(self) -> tuple[str, str]:
        """The step's name: all its generations share it."""
        return self.namespace, self.intent_id

    def intent(self, *, created: bool) -> Intent:
        """Return the record as callers of the planner see it."""
        return Intent(
            self.seq, self.namespace, self.intent_id, self.generation, self.tool, self.lane,
            self.run_id, self.step, created=created,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class GateRecord:
    """A gate. `clock_started_at` None: something else still holds the row."""

    fingerprint: str
    opened_at: datetime
    policy: str
    decision: GateDecision = GateDecision.OPEN
    clock_started_at: datetime | None = None
    decided_at: datetime | None = None
    actor: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """The heartbeat row of one process incarnation."""

    beat_at: datetime
    tools: frozenset[str]
    stopped: bool = False


class Batch(NamedTuple):
    """Rows that wait to be bound (`settled`) or handed over (`bound`)."""

    stage: str
    seqs: tuple[int, ...]
    due_at: datetime
    tries: int = 0


class Kept(NamedTuple):
    """One stored observation."""

    observation_id: int
    fence: int
    kind: str
    number: int
    outcome: str
    ref: str | None
    document: Mapping[str, Any]
    actor: Actor

    def __repr__(self) -> str:
        # A document may hold results.
        return f"Kept({self.observation_id}, {self.kind}, {self.outcome})"


class Event(NamedTuple):
    """One line of the audit log."""

    event_id: int
    at: datetime
    seq: int | None
    name: str
    from_state: State | None
    to_state: State | None
    actor: Actor
    fence: int | None = None
    reason: str | None = None
    actor_name: str | None = None
    subject: str | None = None
    detail: Mapping[str, Any] | None = None
