"""What every kind of callback needs: the row to show it, a way to call it, a record that it failed.

Shell.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlalchemy import Connection

from ...outbox.backoff import backoff_seconds
from ...outbox.defaults import Limits
from ...outbox.errors import ProtocolViolation
from ...outbox.intent import Intent
from ...outbox.shell.bind_store import BindStore
from ...outbox.shell.database import Database
from ...outbox.shell.fault_points import FaultPoints
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.shell.statements import Statements
from ...outbox.telling import Generation, Telling, tell
from ...outbox.told import ToldOutcome, with_result
from ..bound import AsyncBound, Bound
from ..plan import Callbacks, Waiting
from .callback_loop import CallbackLoop
from .callbacks import CallbackFailed, call, call_async, is_async

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Leases:
    """How long one consumer may be at a batch of binds, and at one call of a callback.

    `kept_seconds`: how long what its own plan has no function for is kept for consumers whose plan
    has one, as while a new version of the plan is rolled out.
    """

    bind_seconds: float = 30.0
    hand_over_seconds: float = 60.0
    kept_seconds: float = 3600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One row as it stands now: the intent, its generation of the step, what is told of it."""

    intent: Intent[Any]
    generation: Generation
    telling: Telling

    def shown(self, waiting: Waiting[Any]) -> tuple[Intent[Any], ToldOutcome[Any]]:
        """Return intent and told outcome as one function is shown them: with its tool's types."""
        told = with_result(self.telling.told, waiting.read_result)
        return self.intent.read_by(waiting.read_result), told


@dataclass
class CallbackRunner:
    """One consumer's callbacks and what they run on."""

    database: Database
    callbacks: Callbacks
    statements: Statements
    limits: Limits
    leases: Leases = field(default_factory=Leases)
    faults: FaultPoints = field(default_factory=lambda: FaultPoints(None))

    def __post_init__(self) -> None:
        self.loop = CallbackLoop()
        self.bind_store = BindStore(self.statements)
        self._planner_store = PlannerStore(self.statements, self.limits)

    def read(self, connection: Connection, seq: int) -> Seen:
        """Read what a callback is shown of a row. Raises ProtocolViolation where it is gone."""
        intent = self.bind_store.intents(connection, [seq]).get(seq)
        if intent is not None:
            name = (intent.namespace, intent.intent_id)
            step, now = self._planner_store.steps(connection, [name]).get(name, ([], None))
            generation = next((one for one in step if one.row.seq == seq), None)
            telling = tell(step, intent.generation, now) if now else None
            if generation is not None and telling is not None:
                return Seen(intent, generation, telling)
        raise ProtocolViolation(f"row {seq} cannot be told", next_step="ackbox doctor")

    def reach(self, point: str, seqs: Iterable[int]) -> None:
        """Meet the faults planned for a point with these rows; without a plan nothing is read."""
        if self.faults.planned:
            found = self.database.run(lambda c: self.bind_store.intents(c, list(seqs)))
            for intent in found.values():
                self.faults.reach(point, intent.intent_id)

    def call_outside(self, waiting: Waiting[Any], seen: Seen) -> None:
        """Call it where no transaction is open. Raises CallbackFailed for whatever it raised."""
        started_at = time.monotonic()
        function = waiting.function
        if is_async(function):
            bound = AsyncBound(*seen.shown(waiting))
            self.loop.run(lambda: call_async(function, bound))
        else:
            call(function, Bound(*seen.shown(waiting)))
        seconds = time.monotonic() - started_at
        if seconds > self.leases.hand_over_seconds:
            _log.warning("callback_outlived_its_lease", seq=seen.intent.seq, seconds=seconds)

    def alert(self, seq: int, name: str, failed: CallbackFailed) -> None:
        """Put a callback that raised on record, by the type of its error alone."""
        _log.error(name, seq=seq, error=failed.error_type)
        self.database.run(lambda c: self.bind_store.note_failed(c, seq, name, failed.error_type))

    def delay_seconds(self, tries: int) -> float:
        """Return how long a callback that has failed is left alone."""
        return backoff_seconds(tries, random.uniform(0.5, 1.0), self.limits)
