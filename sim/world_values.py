"""The small values that a world is made of. May import `process` and the pure core.

All of them are immutable, so that a snapshot of a world may share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
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


T = TypeVar("T")


def altered(value: T, **columns: Any) -> T:
    """Return a copy of a value without slots; `dataclasses.replace` in a fraction of its time."""
    copy: T = object.__new__(type(value))
    object.__setattr__(copy, "__dict__", value.__dict__ | columns)
    return copy


class Counts(dict[str, int]):
    """Numbers by name; a name that was never counted has 0, and asking for it adds nothing."""

    __slots__ = ()

    def __missing__(self, name: str) -> int:
        return 0

    def copy(self) -> Counts:
        """Return a copy that goes on by itself."""
        return Counts(self)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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


ESSAY_COUNTERS = ("external_commits", "planner_timeouts", "rejected_stale", "outbox_rows")
"""The essay's counters, with its meaning."""
COUNTER_NAMES = (
    *ESSAY_COUNTERS, "claims", "refused_claims", "sends", "resends", "requests", "undone", "bound",
    "stale", "duplicate", "handed", "crashes", "parked", "divergences", "steps",
)  # fmt: skip
"""What a world counts: everything that a trace may expect a number of."""
