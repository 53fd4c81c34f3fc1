"""What a callback is given: the intent, what is told of it, and inside a bind its transaction.

Opens nothing itself: whoever runs the callback gives the connection and the way to a session. Pure;
may import `outbox`, and names SQLAlchemy in annotations only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from ..outbox.errors import ConfigError
from ..outbox.intent import Intent
from ..outbox.told import ToldOutcome
from ..outbox.type_variables import R_co

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
    from sqlalchemy.orm import Session

C = TypeVar("C")


@dataclass(slots=True)
class Bound(Generic[R_co]):
    """A row as a callback sees it: the intent, and what is told of it.

    `connection` and `session` stand in the bind's own transaction, and only `on_bound` has them.
    Commit nothing on them: the consumer commits the bind and what the callback wrote together.
    """

    intent: Intent[R_co]
    told: ToldOutcome[R_co]
    _connection: Connection | None = field(default=None, repr=False)
    _open: Callable[[Connection], Session] | None = field(default=None, repr=False)
    _session: Session | None = field(default=None, repr=False)

    @property
    def connection(self) -> Connection:
        """The connection of the bind's transaction. Raises ConfigError outside of it."""
        return _inside(self._connection)

    @property
    def session(self) -> Session:
        """A session on that connection; its own commit only flushes. Raises ConfigError."""
        if self._session is None:
            self._session = _inside(self._open)(self.connection)
        return self._session

    def close(self) -> None:
        """Flush the session, and take connection and session away from the callback."""
        session, self._session = self._session, None
        try:
            if session is not None:
                session.commit()
        finally:
            if session is not None:
                session.close()
            self._connection = None


@dataclass(slots=True)
class AsyncBound(Generic[R_co]):
    """What an `async def` callback gets: `Bound` with an AsyncConnection and an AsyncSession."""

    intent: Intent[R_co]
    told: ToldOutcome[R_co]
    _connection: AsyncConnection | None = field(default=None, repr=False)
    _open: Callable[[AsyncConnection], AsyncSession] | None = field(default=None, repr=False)
    _session: AsyncSession | None = field(default=None, repr=False)

    @property
    def connection(self) -> AsyncConnection:
        """The connection of the bind's transaction. Raises ConfigError outside of it."""
        return _inside(self._connection)

    @property
    def session(self) -> AsyncSession:
        """A session on that connection; its own commit only flushes. Raises ConfigError."""
        if self._session is None:
            self._session = _inside(self._open)(self.connection)
        return self._session

    async def close(self) -> None:
        """Flush the session, and take connection and session away from the callback."""
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.commit()
        finally:
            if session is not None:
                await session.close()
            self._connection = None


def _inside(given: C | None) -> C:
    if given is None:
        raise ConfigError(
            "this callback runs outside the bind's transaction",
            next_step="use on_bound for what must commit with the bind",
        )
    return given
