"""A second session beside the test's own: work in a thread, and waiting until a lock stops it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, text

from ackbox.outbox.shell.database import CommitUnknown, Database

from .waiting import DEADLINE_SECONDS, wait_until

T = TypeVar("T")


class Background(Generic[T]):
    """One transaction in a thread of its own, committed when its work returns."""

    def __init__(self, database: Database, work: Callable[[Connection], T]) -> None:
        self._database = database
        self._work = work
        self._pid: int | None = None
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._future = self._pool.submit(self._run)

    def _run(self) -> T:
        def work(connection: Connection) -> T:
            self._pid = connection.scalar(text("SELECT pg_backend_pid()"))
            return self._work(connection)

        return self._database.run(work, attempts=1)

    def wait_for_lock(self) -> None:
        """Return once the session waits for a lock that another one holds."""
        wait_until(self._waits_for_lock, message="the session waits for a lock")

    def _waits_for_lock(self) -> bool:
        assert not self._future.done(), f"it never waited: {self._future.result()}"
        asked = text("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = :pid")
        with self._database.engine.connect() as connection:
            return bool(connection.scalar(asked, {"pid": self._pid}))

    def result(self) -> T:
        """Wait for the end and return what the work returned."""
        answer = self._future.result(timeout=DEADLINE_SECONDS)
        self._pool.shutdown()
        return answer


class LostCommit(Database):
    """Loses the acknowledgement of the next COMMIT: the transaction happened, or it did not."""

    happened = True
    armed = True

    def _once(self, work: Callable[[Connection], Any]) -> Any:
        if not self.armed:
            return super()._once(work)
        self.armed = False
        with self.engine.connect() as connection:
            transaction = connection.begin()
            work(connection)
            if self.happened:
                transaction.commit()
            else:
                transaction.rollback()
        raise CommitUnknown("the connection was lost during COMMIT", next_step="read again")
