"""Binds rows for which a plan has callbacks.

`on_bound` runs in the bind's own transaction, one row a transaction, and undoes the bind by
raising. An `async def` one gets that transaction on the callbacks' loop. Shell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.util import await_only, greenlet_spawn

from ...outbox.commands import BindAnswer, BindBatch
from ...outbox.shell.bind_store import SETTLED
from ...outbox.shell.database import Database, LockTimeout
from ...outbox.shell.loop_database import LoopDatabase
from ..bound import AsyncBound, Bound
from ..plan import Waiting
from .callback_runner import CallbackRunner, Seen
from .callbacks import (
    CallbackFailed,
    async_connection,
    call,
    call_async,
    error_type,
    is_async,
    not_committed_by_callbacks,
    open_async_session,
    open_session,
)
from .transactions import note_on

BIND_FAILED = "bind_failed"


class Binder:
    """Binds batches of one plan. `rung` gets the lanes of what callbacks have put."""

    def __init__(self, runner: CallbackRunner, rung: Callable[[Collection[str]], None]) -> None:
        self._runner = runner
        self._store = runner.bind_store
        self._callbacks = runner.callbacks
        self._rung = rung

    @property
    def _hand_over(self) -> tuple[str, ...]:
        """The tools whose bound rows wait for their hand-over."""
        return tuple(self._callbacks.after_bound)

    def bind(self, command: BindBatch) -> BindAnswer:
        """Bind one batch; rows whose callback raised are kept for later, the others go on."""
        run, leases = self._runner.database.run, self._runner.leases
        batch = run(lambda c: self._store.take(c, command.batch_id, SETTLED, leases.bind_seconds))
        if batch is None:
            return BindAnswer()
        alone = [pair for pair in batch.rows if pair[1] in self._callbacks.on_bound]
        together = [seq for seq, tool in batch.rows if tool not in self._callbacks.on_bound]
        self._runner.reach("before_bind", [seq for seq, _ in batch.rows])
        answers = [run(lambda c: self._store.bind_rows(c, together, self._hand_over))]
        failed = []
        for seq, tool in alone:
            answer = self._bind_alone(seq, self._callbacks.on_bound[tool])
            if answer is None:
                failed.append(seq)
            else:
                answers.append(answer)
        self._runner.reach("after_bind", [seq for seq, _ in batch.rows])
        delay = self._runner.delay_seconds(batch.tries)
        run(lambda c: self._store.finish(c, batch, failed, delay))
        return _sum(answers)

    def _bind_alone(self, seq: int, waiting: Waiting[Any]) -> BindAnswer | None:
        """Bind one row with its callback; None where nothing was bound and it must come again.

        A row that another consumer is at this moment binding is not waited for.
        """
        lanes: set[str] = set()
        try:
            if is_async(waiting.function):
                database = self._loop_database
                answer = self._runner.loop.run(
                    lambda: greenlet_spawn(self._bind_in, database, seq, waiting, lanes)
                )
            else:
                answer = self._bind_in(self._runner.database, seq, waiting, lanes)
        except LockTimeout:
            return None
        except CallbackFailed as failed:
            self._runner.alert(seq, BIND_FAILED, failed)
            return None
        self._rung(lanes)
        return answer

    @cached_property
    def _loop_database(self) -> LoopDatabase:
        return LoopDatabase.beside(self._runner.database)

    def close(self) -> None:
        """Close the connection that `async def` callbacks had."""
        if "_loop_database" in self.__dict__:
            database = self._loop_database
            self._runner.loop.run(lambda: greenlet_spawn(database.dispose))

    def _bind_in(
        self, database: Database, seq: int, waiting: Waiting[Any], lanes: set[str]
    ) -> BindAnswer:
        """Bind in one transaction of a database; `lanes` are those that the callback has put in."""

        def work(connection: Connection) -> BindAnswer:
            answer = self._store.bind_rows(connection, [seq], self._hand_over)
            lanes.clear()
            if answer.bound:
                lanes.update(self._call_inside(connection, seq, waiting))
            return answer

        return database.run(work)

    def _call_inside(self, connection: Connection, seq: int, waiting: Waiting[Any]) -> set[str]:
        """Run on_bound in the bind's transaction; returns the lanes of what it has put there."""
        faults = self._runner.faults
        lanes = note_on(connection)
        seen = self._runner.read(connection, seq)
        faults.reach("in_bind", seen.intent.intent_id)
        try:
            with not_committed_by_callbacks(connection):
                _call(waiting, seen, connection)
            self._check_bind(connection, seq)
        except CallbackFailed:
            # Whatever it did to the transaction, none of it may come to the next one in the pool.
            if not connection.closed:
                connection.invalidate()
            raise
        faults.reach("before_bind_commit", seen.intent.intent_id)
        return lanes

    def _check_bind(self, connection: Connection, seq: int) -> None:
        """Raise CallbackFailed unless COMMIT will keep the bind.

        A callback may swallow the error of a statement: COMMIT is then a silent rollback. And one
        that ran for too long has lost its session.
        """
        try:
            kept = self._store.still_bound(connection, seq)
        except SQLAlchemyError as error:
            raise CallbackFailed(error_type(error)) from error
        if not kept:
            raise CallbackFailed("TransactionEnded")


def _call(waiting: Waiting[Any], seen: Seen, connection: Connection) -> None:
    intent, told = seen.shown(waiting)
    function = waiting.function
    if is_async(function):
        inside = async_connection(connection)
        await_only(call_async(function, AsyncBound(intent, told, inside, open_async_session)))
    else:
        call(function, Bound(intent, told, connection, open_session))


def _sum(answers: Sequence[BindAnswer]) -> BindAnswer:
    return BindAnswer(
        bound=sum(answer.bound for answer in answers),
        stale=sum(answer.stale for answer in answers),
        duplicate=sum(answer.duplicate for answer in answers),
        waiting=sum(answer.waiting for answer in answers),
    )
