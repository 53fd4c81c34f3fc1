"""Runs many attempts at once in one process and commits what they ask for in batches.

The rules stay per row: this shell only starts claimed rows, answers their commands and counts
slots. An attempt is advanced by one thread at a time; it holds a slot of its lane from the claim
until its last reply, a function that overruns its limit until it returns. Shell.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import structlog

from ...outbox.commands import (
    Claimed,
    GiveBack,
    Marked,
    MarkSend,
    NotMarked,
    Record,
    Recorded,
    RingResults,
)
from ...outbox.errors import StoreUnavailable
from ...outbox.give_back import UNSERVED
from ...outbox.pooler import UndeclaredPooler
from ...outbox.shell.attempt_store import LOCKED_ROW, AttemptStore
from ...outbox.shell.fault_points import FaultPoints
from ...tool_adapters.contract import Evidence, OverLimit
from ...tool_adapters.shell.function_run import place_of
from ..attempt import OWNER_DOUBTFUL, SHUTDOWN, attempt, conclude
from ..commands import Exchange, Fetch
from .coalescer import Coalescer
from .slots import LaneSlots
from .tool_driver import Timing, ToolDriver

_log = structlog.get_logger(__name__)
RECORD_RETRY_SECONDS = 1.0
MISSING_EVERY_SECONDS = 60.0


class Bell(Protocol):
    """Wakes the result consumer; never waits for Redis."""

    def ring_results(self) -> None:
        """Ask for a results token soon."""
        ...


@dataclass(slots=True, eq=False)
class _Attempt:
    """One attempt in flight."""

    claim: Claimed
    steps: Any
    timing: Timing
    on_end: Callable[[Claimed], None]
    marked: bool = False
    overruns: bool = False
    ended: bool = False
    asks: str = ""
    """What of its adapter runs now, since `asked_at`; a word that is too long is told once."""
    asked_at: float = 0.0
    told_hanging: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class Runner:
    """The attempts of one process. All methods may be called from any thread."""

    def __init__(
        self,
        store: AttemptStore,
        tools: ToolDriver,
        slots: LaneSlots,
        bell: Bell,
        *,
        owner: UUID,
        is_doubtful: Callable[[], bool],
        threads: int,
        batch_limit: int = 200,
        faults: FaultPoints | None = None,
    ) -> None:
        self._store = store
        self._tools = tools
        self._slots = slots
        self._bell = bell
        self._owner = owner
        self._is_doubtful = is_doubtful
        self._faults = faults or FaultPoints(None)
        self._stopping = threading.Event()
        self._closing = threading.Event()
        self._ready: queue.SimpleQueue[tuple[_Attempt, Any] | None] = queue.SimpleQueue()
        self._attempts: set[_Attempt] = set()
        self._missing_told: dict[tuple[str, int], float] = {}
        self._attempts_lock = threading.Lock()
        self._marks = Coalescer("marks", self._mark, _no_mark, batch_limit=batch_limit)
        self._records = Coalescer("records", self._record, _no_record, batch_limit=batch_limit)
        # Rows that somebody else has locked wait on a thread of their own, not before the others.
        self._locked = Coalescer("locked", self._record_locked, _no_record, batch_limit=batch_limit)
        self._returns = Coalescer("returns", self._give_back, _no_record, batch_limit=batch_limit)
        self._threads = [
            threading.Thread(target=self._serve, name=f"ackbox-attempt-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    # -- attempts in and out ---------------------------------------------------------------------

    def start(
        self, claims: Iterable[Claimed], on_end: Callable[[Claimed], None] = lambda claim: None
    ) -> None:
        """Start an attempt for each claimed row; its lane's slot was taken by the caller."""
        for claim in claims:
            self.start_steps(claim, attempt(claim), on_end)

    def start_steps(
        self,
        claim: Claimed,
        steps: Any,
        on_end: Callable[[Claimed], None] = lambda claim: None,
        timing: Timing | None = None,
        *,
        marked: bool = False,
    ) -> None:
        """Start any procedure of one row that yields an attempt's commands.

        `marked` says that it holds no unmarked claim, so that a shutdown waits for it.
        """
        running = _Attempt(claim, steps, timing or self._tools.timing(), on_end, marked)
        with self._attempts_lock:
            self._attempts.add(running)
        self._ready.put((running, None))

    def unmarked(self) -> int:
        """Return how many attempts hold a claim without a send mark."""
        with self._attempts_lock:
            return sum(not running.marked for running in self._attempts)

    def overrunning(self) -> tuple[int, ...]:
        """Return the rows whose function still runs although its limit has passed."""
        with self._attempts_lock:
            return tuple(running.claim.seq for running in self._attempts if running.overruns)

    def hanging(self) -> int:
        """Return how many adapters have not come back in time, and name each of them once.

        Code cannot be stopped: the slot stays taken until it returns, or until the process ends.
        """
        limit_at = time.monotonic() - self._tools.hang_seconds
        with self._attempts_lock:
            hang = [one for one in self._attempts if one.asks and one.asked_at < limit_at]
        for one in hang:
            if not one.told_hanging:
                one.told_hanging = True
                _log.error(
                    "adapter_hangs", tool=one.claim.tool, intent_id=one.claim.intent_id,
                    method=one.asks, seconds=self._tools.hang_seconds,
                )  # fmt: skip
        return len(hang)

    def is_doubtful(self) -> bool:
        """Return whether others may take this process for dead: then it sends nothing."""
        return self._is_doubtful()

    def stop(self) -> None:
        """From now on give back whatever is not marked; what is marked runs on."""
        self._stopping.set()

    def close(self) -> None:
        """End the threads. Attempts still in flight stay as they are for the reaper."""
        self._closing.set()
        for coalescer in (self._marks, self._returns, self._records, self._locked):
            coalescer.close()
        for _ in self._threads:
            self._ready.put(None)

    # -- advancing -------------------------------------------------------------------------------

    def _serve(self) -> None:
        while (item := self._ready.get()) is not None:
            running, reply = item
            try:
                self._advance(running, reply)
            except Exception as error:  # noqa: BLE001 - one broken attempt must not end the others
                # The row lapses or expires. The message stays out: it may hold arguments.
                name, where = type(error).__name__, place_of(error)
                _log.error("attempt_broken", error=name, where=where, seq=running.claim.seq)
                self._end(running)

    def _advance(self, running: _Attempt, reply: Any) -> None:
        while True:
            try:
                command = running.steps.send(reply)
            except StopIteration:
                self._end(running)
                return
            if self._hand_over(running, command):
                return
            reply = self._answer(running, command)

    def _hand_over(self, running: _Attempt, command: Any) -> bool:
        """Pass a store command to its coalescer; False for commands that are answered here."""

        def answer(reply: Any) -> None:
            if isinstance(reply, Marked):
                running.marked = True
            self._ready.put((running, reply))

        match command:
            case MarkSend():
                self._faults.reach("before_send", running.claim.intent_id)
                self._ask_for_mark(running, command, answer)
            case Record():
                self._faults.reach("before_settle", running.claim.intent_id)
                self._records.put(command, lambda reply: self._recorded(command, reply, answer))
            case GiveBack():
                if command.reason == UNSERVED:
                    self._tell_missing(command.claim)
                self._returns.put(command, answer)
            case _:
                return False
        return True

    def _tell_missing(self, claim: Claimed) -> None:
        """Say that a row of this lane needs another process, once in a while for each tool."""
        key, now = (claim.tool, claim.version), time.monotonic()
        if now - self._missing_told.get(key, -MISSING_EVERY_SECONDS) >= MISSING_EVERY_SECONDS:
            self._missing_told[key] = now
            _log.warning(
                "tool_missing", tool=claim.tool, version=claim.version, lane=claim.lane,
                intent_id=claim.intent_id,
            )  # fmt: skip

    def _recorded(self, record: Record, reply: Any, answer: Callable[[Any], None]) -> None:
        """Answer a stored outcome; one whose row is locked stays in memory and is tried again."""
        if reply is LOCKED_ROW and not self._closing.is_set():
            self._locked.put(record, lambda again: self._recorded(record, again, answer))
        else:
            answer(reply)

    def _ask_for_mark(
        self, running: _Attempt, command: MarkSend, answer: Callable[[Any], None]
    ) -> None:
        if self._stopping.is_set():
            answer(NotMarked(SHUTDOWN))
        elif self._is_doubtful():
            # Others may take this process for dead already: in doubt nothing is sent.
            answer(NotMarked(OWNER_DOUBTFUL))
        else:
            self._tools.start_send(running.claim, running.timing)
            self._marks.put(command, answer)

    def _answer(self, running: _Attempt, command: Any) -> Any:
        if isinstance(command, RingResults):
            self._faults.reach("after_settle", running.claim.intent_id)
            self._bell.ring_results()
            return True
        if isinstance(command, Fetch):
            return self._tools.answer(command, running.timing, lambda evidence: None)
        if not isinstance(command, Exchange):
            running.asked_at, running.asks = time.monotonic(), type(command).__name__.lower()
            reply = self._tools.answer(command, running.timing, lambda evidence: None)
            running.asks = ""
            return reply
        self._faults.reach("after_mark", running.claim.intent_id)
        evidence = self._exchange(running, command)
        self._faults.reach("after_effect", running.claim.intent_id)
        return evidence

    # -- functions that outlive their limit ------------------------------------------------------

    def _exchange(self, running: _Attempt, command: Exchange) -> Evidence:
        # The late answer may come before this call returns: whoever is second releases the slot.
        arrived = threading.Event()

        def on_late(evidence: Evidence) -> None:
            arrived.set()
            self._report_late(running, evidence)

        evidence: Evidence = self._tools.answer(command, running.timing, on_late)
        if isinstance(evidence, OverLimit):
            with running.lock:
                running.overruns = not arrived.is_set()
        return evidence

    def _report_late(self, running: _Attempt, evidence: Evidence) -> None:
        """Record what an abandoned function returned, as evidence; then free its slot."""
        steps = self._late_steps(running.claim, evidence)
        with running.lock:
            was_overrunning, running.overruns = running.overruns, False
            finished = running.ended
        self.start_steps(running.claim, steps, timing=running.timing, marked=True)
        if was_overrunning and finished:
            self._release(running)

    @staticmethod
    def _late_steps(claim: Claimed, evidence: Evidence) -> Any:
        outcome = yield from conclude(claim, evidence)
        yield Record(claim, outcome, kind="evidence", number=1)

    def _end(self, running: _Attempt) -> None:
        with running.lock:
            running.ended = True
            if running.overruns:
                return
        self._release(running)

    def _release(self, running: _Attempt) -> None:
        with self._attempts_lock:
            self._attempts.discard(running)
        running.on_end(running.claim)

    # -- batches ---------------------------------------------------------------------------------

    def _mark(self, batch: Sequence[MarkSend]) -> Sequence[Marked | NotMarked]:
        try:
            return self._store.mark(batch, self._owner)
        except StoreUnavailable as error:
            # Whether the marks are written or not: nothing is sent, the reaper judges the rows.
            _log.warning("marks_failed", code=error.code, rows=len(batch))
            return [_no_mark(command) for command in batch]

    def _record(self, batch: Sequence[Record]) -> Sequence[Any]:
        """Keep trying: an outcome stays in memory, and its tool is never called again."""
        while True:
            try:
                return self._store.record(batch)
            except (StoreUnavailable, UndeclaredPooler) as error:
                _log.warning("records_failed", code=error.code, rows=len(batch))
                if self._closing.wait(RECORD_RETRY_SECONDS):
                    return [_no_record(record) for record in batch]

    def _record_locked(self, batch: Sequence[Record]) -> Sequence[Any]:
        self._closing.wait(RECORD_RETRY_SECONDS)
        return self._record(batch)

    def _give_back(self, batch: Sequence[GiveBack]) -> Sequence[Any]:
        try:
            return self._store.give_back(batch)
        except StoreUnavailable as error:
            _log.warning("give_back_failed", code=error.code, rows=len(batch))
            return [_no_record(command) for command in batch]


def _no_mark(_command: MarkSend) -> NotMarked:
    return NotMarked("store_unavailable")


def _no_record(_command: Record | GiveBack) -> Recorded:
    return Recorded(None, None, "store_unavailable")
