"""One reader for everybody in this process who waits for a step: one query for all of them.

Decides when to look again: soon after somebody came or something changed, then ever more seldom,
with jitter. A wait changes nothing in the store, however it ends. Shell.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from ...outbox.errors import ConfigError
from ...outbox.intent import Address
from ...outbox.shell.database import Database
from ...outbox.telling import Generation, Telling, tell
from ...outbox.told import Superseded

Steps = Mapping[tuple[str, str], tuple[Sequence[Generation], datetime]]
ReadSteps = Callable[[Connection, Collection[tuple[str, str]]], Steps]

FIRST_GAP_SECONDS = 0.01
LONGEST_GAP_SECONDS = 0.25
GROWTH = 1.5
CLOSE_SECONDS = 5.0
FIRST_LOOK_SECONDS = 5.0


def _unheard() -> None:
    """Wake nobody."""


@dataclass(eq=False, slots=True)
class _Waiting:
    """One caller's wait. `telling` is the newest answer, None while nothing is visible.

    `wake` is called by the reader after each look; a thread's wait hears the condition instead.
    """

    address: Address
    until_bound: bool
    wake: Callable[[], None] = _unheard
    telling: Telling | None = None
    seen: bool = False
    error: Exception | None = None

    @property
    def over(self) -> bool:
        if isinstance(self.error, ConfigError):
            return True  # Waiting mends no setting and no missing schema.
        return is_over(self.telling, until_bound=self.until_bound)


def is_over(telling: Telling | None, *, until_bound: bool) -> bool:
    """Return whether a wait has nothing more to wait for."""
    if telling is None or not telling.finished:
        return False
    if not until_bound or telling.bound:
        return True
    # A row that is replaced or stands in front of a person never binds by itself.
    return isinstance(telling.told, Superseded) or telling.told.word not in _BOUND_WORDS


def _told(waiting: _Waiting, steps: Steps) -> Telling | None:
    """Return what is told now; the newest word stays where nothing is visible any more."""
    address = waiting.address
    found = steps.get((address.namespace, address.intent_id))
    return tell(found[0], address.generation, found[1]) if found else waiting.telling


def _answer(waiting: _Waiting) -> Telling | None:
    if not waiting.seen and waiting.error is not None:
        raise waiting.error
    return waiting.telling


def _left(waiting: _Waiting, end: float) -> float:
    """Return the seconds left; a wait of no time at all still takes one look."""
    answered = waiting.seen or waiting.error is not None
    return end + (0.0 if answered else FIRST_LOOK_SECONDS) - time.monotonic()


_BOUND_WORDS = ("committed", "failed", "cancelled", "compensated")


class Waiters:
    """The waits of one process on one outbox."""

    def __init__(
        self,
        database: Database,
        read_steps: ReadSteps,
        longest_gap_seconds: float = LONGEST_GAP_SECONDS,
    ) -> None:
        self._database = database
        self._read_steps = read_steps
        self._longest_gap_seconds = longest_gap_seconds
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._condition = threading.Condition()
        self._waiting: set[_Waiting] = set()
        self._running = False
        self._newcomer = False
        self._closing = False
        self.queries = 0

    def wait(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Wait until the step is told for good or the time is over; never raises for time.

        Returns the newest telling, None where the store knows no such step. Raises what the store
        raised where it gave no answer at all.
        """
        waiting = _Waiting(address, until_bound)
        end = time.monotonic() + timeout_seconds
        self._begin(waiting)
        with self._condition:
            try:
                while not self._is_over(waiting) and (left := _left(waiting, end)) > 0:
                    self._condition.wait(left)
            finally:
                self._waiting.discard(waiting)
        return _answer(waiting)

    async def wait_async(
        self, address: Address, timeout_seconds: float, *, until_bound: bool = False
    ) -> Telling | None:
        """Do the same without blocking the running loop; cancelling it changes nothing."""
        loop, looked = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The loop may have been closed over the heads of those who waited in it.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(looked.set)

        waiting = _Waiting(address, until_bound, wake)
        end = time.monotonic() + timeout_seconds
        self._begin(waiting)
        try:
            while not self._is_over(waiting) and (left := _left(waiting, end)) > 0:
                looked.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await looked.wait()
        finally:
            with self._condition:
                self._waiting.discard(waiting)
        return _answer(waiting)

    def _begin(self, waiting: _Waiting) -> None:
        if self._pid != os.getpid():
            self._reset()
        self._closing = False
        with self._condition:
            self._wake_reader()
            self._waiting.add(waiting)

    def close(self) -> None:
        """End every wait with its newest word, and the reader before its connection is closed."""
        if self._pid != os.getpid():
            return
        with self._condition:
            self._closing = True
            self._wake(self._waiting)
            self._condition.wait_for(lambda: not self._running, CLOSE_SECONDS)

    def _is_over(self, waiting: _Waiting) -> bool:
        return waiting.over or self._closing

    def _wake_reader(self) -> None:
        self._newcomer = True
        if not self._running:
            # Only then: a process that can start no thread now may be able to later.
            threading.Thread(target=self._read_on, name="ackbox-wait", daemon=True).start()
            self._running = True
        self._condition.notify_all()

    def _read_on(self) -> None:
        gap_seconds = FIRST_GAP_SECONDS
        while (asked := self._next(gap_seconds)) is not None:
            asked_anew, waiting = asked
            changed = self._look(waiting)
            grown = min(self._longest_gap_seconds, gap_seconds * GROWTH)
            gap_seconds = FIRST_GAP_SECONDS if changed or asked_anew else grown

    def _next(self, gap_seconds: float) -> tuple[bool, list[_Waiting]] | None:
        """Pause, unless somebody new came; None ends the thread once nobody waits."""
        with self._condition:
            pause = gap_seconds * random.uniform(0.5, 1.0)
            self._condition.wait_for(lambda: self._newcomer or self._closing, pause)
            newcomer, self._newcomer = self._newcomer, False
            waiting = [one for one in self._waiting if not self._is_over(one)]
            if not waiting:
                self._running = False
                self._condition.notify_all()
                return None
            return newcomer, waiting

    def _look(self, waiting: list[_Waiting]) -> bool:
        names = {(one.address.namespace, one.address.intent_id) for one in waiting}
        self.queries += 1
        try:
            steps = self._database.run(lambda c: self._read_steps(c, names), attempts=1)
            told = [(one, _told(one, steps)) for one in waiting]
        except Exception as error:  # noqa: BLE001 - else all waits end with the thread, untold
            with self._condition:
                new = [one for one in waiting if one.error is None]
                for one in waiting:
                    one.error = error
                self._wake(new)
            return False
        changed = any(telling != one.telling for one, telling in told)
        with self._condition:
            first = {one for one in waiting if not one.seen}
            for one, telling in told:
                one.telling, one.seen = telling, True
            self._wake(one for one in waiting if one.over or one in first)
        return changed

    def _wake(self, waiting: Iterable[_Waiting]) -> None:
        """Wake every thread, and those on event loops who have something to hear."""
        self._condition.notify_all()
        for one in waiting:
            one.wake()
