"""Runs one callback of a plan, and gives it the row with or without the bind's transaction.

Decides that whatever a callback raises is its own failure and never the consumer's, and that a
callback does not end the transaction which it is called in. Shell.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

from sqlalchemy import Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.orm import Session

from ...outbox.errors import ConfigError
from ..bound import AsyncBound, Bound
from ..plan import Callback

AsyncCallback = Callable[[Any], Awaitable[object]]
_JOINED: Any = {"join_transaction_mode": "rollback_only"}
"""A session's own commit only flushes; its rollback is the end of the bind."""


class CallbackFailed(Exception):
    """A callback raised. Says the error's type only: its message may hold anything."""

    def __init__(self, error_type: str) -> None:
        super().__init__(error_type)
        self.error_type = error_type


def open_session(connection: Connection) -> Session:
    """Return a session in the transaction that is open on a connection."""
    return Session(connection, **_JOINED)


def open_async_session(connection: AsyncConnection) -> AsyncSession:
    """Return a session in the transaction that is open on a connection."""
    return AsyncSession(connection, expire_on_commit=False, **_JOINED)


def is_async(callback: Callback) -> TypeGuard[AsyncCallback]:
    """Return whether a callback is an `async def` function, or an object that is called as one."""
    called = getattr(callback, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(called)


def async_connection(connection: Connection) -> AsyncConnection:
    """Return the asynchronous face of a connection whose engine is an asynchronous one."""
    return AsyncConnection(AsyncEngine(connection.engine), connection)


def call(callback: Callback, bound: Bound[Any]) -> None:
    """Call it, and raise CallbackFailed for whatever it raised.

    A failure to flush what it left in the session counts as its own. In the main thread a
    KeyboardInterrupt and a SystemExit go on up: there they are meant for the process.
    """
    try:
        returned = callback(bound)
        if inspect.isawaitable(returned):
            raise _not_awaited(returned)
        bound.close()
    except Exception as error:
        raise CallbackFailed(error_type(error)) from error
    except (SystemExit, KeyboardInterrupt) as error:
        if threading.current_thread() is threading.main_thread():
            raise
        raise CallbackFailed(error_type(error)) from error


async def call_async(callback: AsyncCallback, bound: AsyncBound[Any]) -> None:
    """Await it on the callbacks' own loop, and raise CallbackFailed for whatever it raised.

    Nothing is meant for the process there, so that cancelling and exiting are failures too.
    """
    try:
        await callback(bound)
        await bound.close()
    except Exception as error:
        raise CallbackFailed(error_type(error)) from error
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
        raise CallbackFailed(error_type(error)) from error


def _not_awaited(returned: Any) -> ConfigError:
    if inspect.iscoroutine(returned):
        returned.close()
    return ConfigError(
        "a callback returned something to be awaited without being an async def function",
        next_step="define the callback with async def",
    )


def error_type(error: BaseException) -> str:
    """Return the error's type; of a database's error the driver's, which says what happened."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return type(error.orig).__name__
    return type(error).__name__


@contextmanager
def not_committed_by_callbacks(connection: Connection) -> Iterator[None]:
    """Refuse every COMMIT on the connection for a while: it would make the bind durable alone."""
    event.listen(connection, "commit", _refuse_commit)
    try:
        yield
    finally:
        event.remove(connection, "commit", _refuse_commit)


def _refuse_commit(_: Connection) -> None:
    raise ConfigError(
        "an on_bound callback may not commit: the bind and what it wrote commit together",
        next_step="leave the commit out, or use after_bound",
    )
