"""What a caller's open transaction has put on a memory bus: there at its commit, gone with it.

Decides whose turn it is. What is staged runs on a copy of the store until the caller's COMMIT, and
then on the store itself. On Postgres a second transaction would wait for the first; nothing in
memory can wait, so that it is refused. Composition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, event
from sqlalchemy.orm import Session

from ...outbox.errors import ConfigError
from ...planner.shell.operations import Operation
from ...sim.records import IntentRecord
from ...sim.store import MemoryStore

T = TypeVar("T")
Owner = Session | Connection
Name = tuple[str, str]


@dataclass(eq=False)
class _Staged:
    """One call. `savepoints`: those inside which it was made, the innermost first."""

    operation: Operation[Any]
    seq: int
    savepoints: tuple[Any, ...]
    new: tuple[IntentRecord, ...]
    touched: frozenset[Name]
    changes: bool
    """It changes a step that is visible to others."""


@dataclass(eq=False)
class OpenTransaction:
    """The calls of one open transaction, in order."""

    calls: list[_Staged] = field(default_factory=list)

    def new(self) -> list[IntentRecord]:
        """Return the intents that it has put."""
        return [intent for call in self.calls for intent in call.new]

    def touches(self, names: frozenset[Name] | set[Name]) -> bool:
        """Return whether it has changed or put one of the steps."""
        return any(names & call.touched for call in self.calls)


_OPEN: WeakKeyDictionary[Owner, list[OpenTransaction]] = WeakKeyDictionary()


def staged_on(owner: Owner) -> list[IntentRecord]:
    """Return what an open transaction has put, on whichever bus."""
    return [intent for one in _OPEN.get(owner, ()) for intent in one.new()]


class Transactions:
    """The open transactions of one bus. The caller holds the bus's lock."""

    def __init__(self, store: MemoryStore, published: Callable[[Callable[[], None]], None]) -> None:
        """`published` runs a function under the bus's lock."""
        self._store = store
        self._under_lock = published
        self._open: WeakKeyDictionary[Owner, OpenTransaction] = WeakKeyDictionary()

    def is_open(self, name: Name) -> bool:
        """Return whether an open transaction has put or changed a step."""
        return any(one.touches({name}) for one in self._open.values())

    def refuse_changes(self) -> None:
        """Raise ConfigError where work would race with a change that is not committed."""
        if any(call.changes for one in self._open.values() for call in one.calls):
            raise ConfigError(
                "an open transaction changes a stored step, and no work on it can wait for that",
                next_step="commit the transaction, or roll it back",
            )

    # -- calls -------------------------------------------------------------------------------------

    def alone(self, operation: Operation[T]) -> T:
        """Run a call that commits by itself: all of it, or nothing where it raises."""
        before = self._store.snapshot()
        try:
            answer, touched = self._work(operation)
            self._refuse_taken(touched, None)
        except BaseException:
            self._store.restore(before)
            raise
        return answer

    def joined(self, owner: Owner, operation: Operation[T]) -> T:
        """Run a call in a caller's transaction, which is begun if it was not."""
        _begin(owner)
        mine = self._open.get(owner) or OpenTransaction()
        with self._as_seen_by(mine):
            seq = self._store.tables.next_seq
            answer, touched = self._work(operation)
            self._refuse_taken(touched, mine)
            new = tuple(self._new())
        if touched:
            known = touched - {intent.name for intent in new}
            staged = _Staged(operation, seq, _savepoints(owner), new, touched, bool(known))
            mine.calls.append(staged)
            self._remember(owner, mine)
        return answer

    def _work(self, operation: Operation[T]) -> tuple[T, frozenset[Name]]:
        tables = self._store.tables
        tables.dirty.clear()
        answer = operation.work(None)  # type: ignore[arg-type]
        return answer, frozenset(tables.intents[seq].name for seq in tables.dirty)

    def _new(self) -> Iterator[IntentRecord]:
        tables = self._store.tables
        return (tables.intents[seq] for seq, before in tables.dirty.items() if before is None)

    def _refuse_taken(self, touched: frozenset[Name], mine: OpenTransaction | None) -> None:
        if any(one is not mine and one.touches(touched) for one in self._open.values()):
            raise ConfigError(
                "another open transaction has put or changed this step",
                next_step="end that one first: on Postgres this call would wait for it",
            )

    @contextmanager
    def _as_seen_by(self, mine: OpenTransaction) -> Iterator[None]:
        """Let the store be what the transaction sees, for a while; numbers stay used up."""
        tables, before = self._store.tables, self._store.snapshot()
        try:
            for call in mine.calls:
                self._replay(call)
            yield
        finally:
            next_seq = tables.next_seq
            self._store.restore(before)
            tables.next_seq = next_seq
            tables.dirty.clear()

    def _replay(self, call: _Staged) -> None:
        tables = self._store.tables
        next_seq, tables.next_seq = tables.next_seq, call.seq
        call.operation.work(None)  # type: ignore[arg-type]
        tables.next_seq = max(next_seq, tables.next_seq)

    # -- ends --------------------------------------------------------------------------------------

    def _remember(self, owner: Owner, mine: OpenTransaction) -> None:
        if owner in self._open:
            return
        self._open[owner] = mine
        _OPEN.setdefault(owner, []).append(mine)
        _listen(owner, _Ends(self, owner))

    def commit(self, owner: Owner) -> None:
        """Make what a transaction has put visible."""
        self._under_lock(lambda: self._publish(owner))

    def _publish(self, owner: Owner) -> None:
        mine = self._open.get(owner)
        for call in mine.calls if mine else ():
            self._replay(call)
        self.forget(owner)

    def forget(self, owner: Owner, savepoint: Any = None) -> None:
        """Let go of what was put in a transaction, or since one of its savepoints."""
        mine = self._open.get(owner)
        if mine is not None:
            mine.calls[:] = [
                call
                for call in mine.calls
                if savepoint is not None and savepoint not in call.savepoints
            ]


class _Ends:
    """Hears how a session's or a connection's transactions end."""

    def __init__(self, transactions: Transactions, owner: Owner) -> None:
        self._to = transactions

    def session_committed(self, session: Session) -> None:
        """Publish at the outermost commit; the event fires when a savepoint ends as well."""
        if not session.in_nested_transaction():
            self._to.commit(session)

    def session_rolled_back(self, session: Session, ended: Any) -> None:
        """Forget all of it, or what was put since a savepoint."""
        self._to.forget(session, ended if ended.nested else None)

    def session_ended(self, session: Session, ended: Any) -> None:
        """Forget what a closed session has never committed."""
        if ended.parent is None:
            self._to.forget(session)

    def committed(self, connection: Connection) -> None:
        """Publish; the COMMIT itself follows at once."""
        self._to.commit(connection)

    def rolled_back(self, connection: Connection) -> None:
        """Forget all of it."""
        self._to.forget(connection)

    def savepoint_rolled_back(self, connection: Connection, _name: str, _context: Any) -> None:
        """Forget what was put since the savepoint."""
        self._to.forget(connection, connection.get_nested_transaction())


def _listen(owner: Owner, ends: _Ends) -> None:
    if isinstance(owner, Session):
        event.listen(owner, "after_commit", ends.session_committed)
        event.listen(owner, "after_soft_rollback", ends.session_rolled_back)
        event.listen(owner, "after_transaction_end", ends.session_ended)
    else:
        event.listen(owner, "commit", ends.committed)
        event.listen(owner, "rollback", ends.rolled_back)
        event.listen(owner, "rollback_savepoint", ends.savepoint_rolled_back)


def _begin(owner: Owner) -> None:
    """Begin a transaction, as the first statement of a put would."""
    if not owner.in_transaction():
        owner.begin()


def _savepoints(owner: Owner) -> tuple[Any, ...]:
    found: list[Any] = []
    one: Any = owner.get_nested_transaction()
    while one is not None:
        found.append(one)
        one = one.parent if isinstance(owner, Session) else one._previous_nested
    return tuple(found)
