"""What a callback is given on a memory bus: inside a bind, a session of the application's factory.

Its transaction commits before the bind is kept, and nothing can come between the two in memory.
Composition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...outbox.errors import ConfigError
from ...planner.bound import AsyncBound, Bound


@dataclass(frozen=True, slots=True)
class Sessions:
    """Where on_bound callbacks get their sessions."""

    factory: Callable[[], Any] | None = None
    async_factory: Callable[[], Any] | None = None


class MemoryBound(Bound[Any]):
    """What a `def` on_bound callback gets."""

    sessions = Sessions()

    def on(self, sessions: Sessions) -> MemoryBound:
        """Take sessions from these factories."""
        self.sessions = sessions
        return self

    @property
    def connection(self) -> Any:
        """The session's connection. Raises ConfigError without a session factory."""
        return self.session.connection()

    @property
    def session(self) -> Any:
        """A session of the bus's factory. Raises ConfigError without one."""
        if self._session is None:
            self._session = _given(self.sessions.factory, "session_factory")()
        return self._session

    def discard(self) -> None:
        """Undo what a callback that raised has left in its session."""
        session, self._session = self._session, None
        if session is not None:
            session.rollback()
            session.close()


class AsyncMemoryBound(AsyncBound[Any]):
    """What an `async def` on_bound callback gets."""

    sessions = Sessions()

    def on(self, sessions: Sessions) -> AsyncMemoryBound:
        """Take sessions from these factories."""
        self.sessions = sessions
        return self

    @property
    def connection(self) -> Any:
        """Raise ConfigError: an AsyncSession's connection must be awaited for."""
        raise ConfigError(
            "a bus in memory has no AsyncConnection to give",
            next_step="await bound.session.connection(), or use the fixture ackbox_bus",
        )

    @property
    def session(self) -> Any:
        """A session of the bus's factory of AsyncSessions. Raises ConfigError without one."""
        if self._session is None:
            self._session = _given(self.sessions.async_factory, "async_session_factory")()
        return self._session

    async def discard(self) -> None:
        """Undo what a callback that raised has left in its session."""
        session, self._session = self._session, None
        if session is not None:
            await session.rollback()
            await session.close()


def _given(factory: Callable[[], Any] | None, name: str) -> Callable[[], Any]:
    if factory is None:
        raise ConfigError(
            "the bus in memory has no database that bound.session could be on",
            next_step=f"give MemoryBus(..., {name}=...) the factory of your application",
        )
    return factory
