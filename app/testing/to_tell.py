"""The work list of on_told callbacks on a memory bus, read from the events of its rows.

Which event tells which word is what the triggers of the real schema say. Composition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ...outbox.model import State
from ...outbox.on_told import COMPENSATED, PARKED, UNKNOWN
from ...sim.records import Event
from ...sim.tables import Tables


@dataclass(frozen=True, slots=True)
class Telling:
    """One thing on the list."""

    number: int
    seq: int
    word: str
    due_at: datetime
    tries: int = 0


def words_of(event: Event) -> Iterator[str]:
    """Yield the words that an event makes true, where it makes any."""
    entered = event.to_state if event.to_state is not event.from_state else None
    if event.name == "divergence" or entered is State.INDETERMINATE:
        yield UNKNOWN
    if event.name == "parked":
        yield PARKED
    if entered is State.COMPENSATED:
        yield COMPENSATED


class ListToTell:
    """What is still to be told of one store. The caller holds the bus's lock."""

    def __init__(self, tables: Callable[[], Tables]) -> None:
        self._tables = tables
        self._read_to = 0
        self._list: list[Telling] = []

    def take(self, words: Collection[str]) -> Telling | None:
        """Take what has been due longest off the list; what nobody waits for is let go of."""
        self._read_on()
        self._list = [one for one in self._list if one.word in words]
        now = self._tables().clock.now
        due = [one for one in self._list if one.due_at <= now]
        if not due:
            return None
        first = min(due, key=lambda one: (one.due_at, one.number))
        self._list.remove(first)
        return replace(first, tries=first.tries + 1)

    def put_off(self, one: Telling, seconds: float) -> None:
        """Put something back on the list, for later."""
        due_at = self._tables().clock.now + timedelta(seconds=seconds)
        self._list.append(replace(one, due_at=due_at))

    def due_at(self) -> Iterator[datetime]:
        """Yield when each thing on the list is due."""
        return (one.due_at for one in self._list)

    def _read_on(self) -> None:
        tables = self._tables()
        events = [event for past in tables.events.values() for event in past]
        for event in sorted(event for event in events if event.event_id > self._read_to):
            self._read_to = event.event_id
            if event.seq is not None:
                self._list += [
                    Telling(event.event_id, event.seq, word, event.at) for word in words_of(event)
                ]
