"""Runs one callback of a plan, and gives it the bound row with or without its transaction.

Decides that whatever a callback raises is its own failure and never the consumer's. Shell.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from ...outbox.errors import ConfigError
from ...outbox.intent import Intent
from ...outbox.told import Told
from ..plan import Callback


class CallbackFailed(Exception):
    """A callback raised. Says the error's type only: its message may hold anything."""

    def __init__(self, error_type: str) -> None:
        super().__init__(error_type)
        self.error_type = error_type


@dataclass(slots=True)
class Bound:
    """A bound row as a callback sees it (`plan.BoundView`)."""

    intent: Intent
    told: Told
    _connection: Connection | None = field(default=None, repr=False)
    _session: Session | None = field(default=None, repr=False)

    @property
    def connection(self) -> Connection:
        """The connection of the bind's transaction. Raises ConfigError outside of it."""
        if self._connection is None:
            raise ConfigError(
                "after_bound runs outside the bind's transaction",
                next_step="use on_bound for what must commit with the bind",
            )
        return self._connection

    @property
    def session(self) -> Session:
        """A session on that connection; its own commit only flushes. Raises ConfigError."""
        if self._session is None:
            self._session = Session(self.connection, join_transaction_mode="rollback_only")
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


def call(callback: Callback, bound: Bound) -> None:
    """Call it, and raise CallbackFailed for whatever it raised.

    A failure to flush what it left in the session counts as its own.
    """
    try:
        callback(bound)
        bound.close()
    except Exception as error:
        raise CallbackFailed(type(error).__name__) from error
