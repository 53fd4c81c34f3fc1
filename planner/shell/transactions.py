"""What a planner's own transaction has put: which lanes to ring after it, and whether it is open.

SQLAlchemy fires nothing after a bare connection's COMMIT, so such a transaction is rung by
whoever opened it (`note_on`), and a session that owns its transaction by its own event. Shell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session

from ...outbox.intent import Address, Intent
from ...outbox.shell.plain_connection import Driver
from .joining import Joined, is_open

_OPTION = "ackbox_lanes"
Ring = Callable[[Iterable[str]], None]


def note_on(connection: Connection) -> set[str]:
    """Collect the lanes of every put on this connection in the set that is returned.

    The set belongs to the Connection object and is gone with it, not with the pooled session.
    """
    lanes: set[str] = set()
    connection.execution_options(**{_OPTION: lanes})
    return lanes


def note_on_async(connection: AsyncConnection) -> set[str]:
    """Do the same on a connection of an event loop; asks no server."""
    sync = connection.sync_connection
    assert sync is not None, "the connection was just opened"
    return note_on(sync)


class PutsInTransactions:
    """The puts of one planner on connections and sessions that are not its own."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._open: WeakKeyDictionary[Connection | Driver, set[tuple[str, str]]] = (
            WeakKeyDictionary()
        )
        self._sessions: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()
        self._unrung: set[str] = set()

    def noted(self, joined: Joined, put: Sequence[Intent], rung: Sequence[Intent]) -> None:
        """Remember what was put on a caller's transaction, and which lanes to ring at its end."""
        if not put and not rung:
            return
        lanes = {intent.lane for intent in rung}
        with self._lock:
            self._forget_ended()
            names = self._open.setdefault(joined.holder, set())
            names.update((one.namespace, one.intent_id) for one in put)
            collected = self._collected(joined)
            if collected is not None:
                collected.update(lanes)
            elif joined.session is not None:
                self._lanes_of(joined.session).update(lanes)
            else:
                self._unrung.update(lanes)

    def _collected(self, joined: Joined) -> set[str] | None:
        if not isinstance(joined.holder, Connection):
            return None
        collected = joined.holder.get_execution_options().get(_OPTION)
        return collected if isinstance(collected, set) else None

    def is_open(self, address: Address) -> bool:
        """Return whether a transaction of this process that put the step may still be open.

        One that has ended is taken for open where the next one has begun on its connection: so
        ask whether the step is visible before you believe it.
        """
        name = (address.namespace, address.intent_id)
        with self._lock:
            return any(name in names and is_open(one) for one, names in self._open.items())

    def unrung(self) -> set[str]:
        """Return, and forget, the lanes of puts on bare connections."""
        with self._lock:
            lanes, self._unrung = self._unrung, set()
            return lanes

    def _forget_ended(self) -> None:
        for holder in list(self._open):
            if not is_open(holder):
                del self._open[holder]

    def _lanes_of(self, session: Session) -> set[str]:
        if session not in self._sessions:
            self._sessions[session] = set()
            event.listen(session, "after_commit", self._committed)
            event.listen(session, "after_rollback", self._rolled_back)
        return self._sessions[session]

    def _committed(self, session: Session) -> None:
        """Ring after the outermost COMMIT; the event also fires when a savepoint ends."""
        if session.in_nested_transaction():
            return
        with self._lock:
            noted = self._sessions.get(session)
            lanes = set(noted or ())
            if noted is not None:
                noted.clear()
        self._ring(lanes)

    def _rolled_back(self, session: Session) -> None:
        """Forget what was put; the event fires for the whole transaction only."""
        with self._lock:
            self._sessions.get(session, set()).clear()
