"""What a planner's own transaction has put: which lanes to ring after it, and whether it is open.

SQLAlchemy fires nothing after a bare connection's COMMIT, so such a transaction is rung by
whoever opened it (`note_on`), and a session that owns its transaction by its own event. Shell.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, event
from sqlalchemy.orm import Session

_OPTION = "ackbox_lanes"
Ring = Callable[[Iterable[str]], None]


def note_on(connection: Connection) -> set[str]:
    """Collect the lanes of every put on this connection in the set that is returned.

    The set belongs to the Connection object and is gone with it, not with the pooled session.
    """
    lanes: set[str] = set()
    connection.execution_options(**{_OPTION: lanes})
    return lanes


class PutsInTransactions:
    """The puts of one planner on connections and sessions that are not its own."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._lock = threading.Lock()
        self._open: WeakKeyDictionary[Connection, set[int]] = WeakKeyDictionary()
        self._sessions: WeakKeyDictionary[Session, set[str]] = WeakKeyDictionary()
        self._unrung: set[str] = set()

    def noted(self, on: Connection | Session, seqs: Iterable[int], lanes: Iterable[str]) -> None:
        """Remember what was put on a caller's transaction."""
        connection = on.connection() if isinstance(on, Session) else on
        with self._lock:
            self._forget_ended()
            self._open.setdefault(connection, set()).update(seqs)
            collected = connection.get_execution_options().get(_OPTION)
            if isinstance(collected, set):
                collected.update(lanes)
            elif isinstance(on, Session):
                self._lanes_of(on).update(lanes)
            else:
                self._unrung.update(lanes)

    def is_open(self, seq: int) -> bool:
        """Return whether a transaction of this process that put the row is still open."""
        with self._lock:
            return any(
                seq in seqs and not connection.closed and connection.in_transaction()
                for connection, seqs in self._open.items()
            )

    def unrung(self) -> set[str]:
        """Return, and forget, the lanes of puts on bare connections."""
        with self._lock:
            lanes, self._unrung = self._unrung, set()
            return lanes

    def _forget_ended(self) -> None:
        for connection in list(self._open):
            if connection.closed or not connection.in_transaction():
                del self._open[connection]

    def _lanes_of(self, session: Session) -> set[str]:
        if session not in self._sessions:
            self._sessions[session] = set()
            event.listen(session, "after_commit", self._committed)
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
