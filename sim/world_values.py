"""The small values that a world is made of. May import `process` and the pure core.

All of them are immutable, so that a snapshot of a world may share them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from ..outbox.commands import Claimed
from ..tool_adapters.contract import HttpEvidence, HttpRequest
from .process import Node

WAITING: Any = object()
"""The reply to a command whose answer comes by a later choice."""


class Impossible(Exception):
    """An event that the present state of the world does not allow."""

    def __init__(self, text: str, field: str = "do") -> None:
        super().__init__(text)
        self.field = field
        """Which member of the event is at fault."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process: `owner` is its incarnation's id, None for a role that holds no rows."""

    name: str
    owner: UUID | None
    incarnation: int = 1
    alive: bool = True
    frozen: bool = False

    @property
    def runs(self) -> bool:
        """Whether it may take a step now."""
        return self.alive and not self.frozen


@dataclass(frozen=True, slots=True)
class Task:
    """A suspended procedure of one process."""

    name: str
    process: str
    role: str
    node: Node
    send_by: datetime | None = None
    flight: str | None = None
    """The request whose answer it waits for."""
    lost: bool = False
    """The COMMIT of its last command was not acknowledged: the row is to be read again."""
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Flight:
    """An effect request that has left its process. `answer` is set once it has arrived."""

    name: str
    task: str
    claim: Claimed
    request: HttpRequest
    left_at: datetime
    dies_at: datetime
    """By then it has arrived or never will: the settle time that the tool declares."""
    answer: HttpEvidence | None = None
    awaited: bool = True
    """A living process still waits for the answer."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a world has seen. The first four are the essay's, with its meaning."""

    external_commits: int = 0
    planner_timeouts: int = 0
    rejected_stale: int = 0
    outbox_rows: int = 0
    claims: int = 0
    refused_claims: int = 0
    sends: int = 0
    resends: int = 0
    requests: int = 0
    undone: int = 0
    bound: int = 0
    stale: int = 0
    duplicate: int = 0
    handed: int = 0
    crashes: int = 0
    parked: int = 0
    divergences: int = 0
    steps: int = 0


COUNTER_NAMES = tuple(one.name for one in fields(Counters))
ESSAY_COUNTERS = COUNTER_NAMES[:4]
