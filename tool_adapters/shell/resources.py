"""What function tools share within one process: opened after its start, closed at its end.

Decides what a lifespan may be and which object `call.resource(Type)` returns. Async lifespans
live on the process's event loop, each in one task from its opening to its closing, as task groups
and cancel scopes ask for. Shell.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from itertools import chain
from typing import Any

import structlog

from ...outbox.errors import ConfigError
from ..registry import Tools
from .event_loop import ToolLoop
from .function_run import place_of

_log = structlog.get_logger(__name__)
SLOW_SECONDS = 10.0
CLOSE_SECONDS = 5.0
Find = Callable[[type[Any]], Any]


class Resources:
    """The opened lifespans of one process's tools."""

    def __init__(self, tools: Tools, loop: ToolLoop) -> None:
        """Open every lifespan. Raises ConfigError naming the one that cannot be opened."""
        self._loop = loop
        self._closing = ExitStack()
        self._opened: list[tuple[Tools, dict[type[Any], Any]]] = []
        try:
            for part in tools.with_lifespans():
                self._opened.append((part, self._open(part.lifespan)))
        except BaseException:
            self.close()
            raise

    def finder(self, tool: str, version: int) -> Find:
        """Return what finds a resource of that tool by its type."""

        def find(wanted: type[Any]) -> Any:
            found = [objects for part, objects in self._opened if part.lookup(tool, version)]
            for objects in found:
                if wanted in objects:
                    return objects[wanted]
            for value in chain.from_iterable(objects.values() for objects in found):
                if isinstance(value, wanted):
                    return value
            raise _missing(tool, wanted)

        return find

    def close(self) -> None:
        """Close what was opened, the last one first; a failure is logged and stops nothing."""
        self._closing.close()

    # -- opening -----------------------------------------------------------------------------------

    def _open(self, lifespan: Any) -> dict[type[Any], Any]:
        name = f"{lifespan.__module__}.{getattr(lifespan, '__qualname__', type(lifespan).__name__)}"
        try:
            manager = _context_of(lifespan)
            if isinstance(manager, AbstractAsyncContextManager):
                return by_type(self._open_async(name, manager))
            return by_type(self._open_here(name, manager))
        except Exception as error:
            # A user's code: whatever it raises is told.
            raise _unopened(name, error) from error

    def _open_here(self, name: str, manager: AbstractContextManager[Any]) -> Any:
        value = manager.__enter__()
        self._closing.callback(_end, name, lambda: manager.__exit__(None, None, None))
        return value

    def _open_async(self, name: str, manager: AbstractAsyncContextManager[Any]) -> Any:
        opened: Future[Any] = Future()
        closing = asyncio.Event()
        life = self._loop.start(_live(manager, opened, closing))
        life.add_done_callback(lambda ended: _pass_failure(name, ended, opened))
        value = _patiently(name, opened)
        self._closing.callback(_end, name, lambda: self._end_life(life, closing))
        return value

    def _end_life(self, life: Future[None], closing: asyncio.Event) -> None:
        self._loop.start(_set(closing)).result(CLOSE_SECONDS)
        life.result(CLOSE_SECONDS)


async def _live(
    manager: AbstractAsyncContextManager[Any], opened: Future[Any], closing: asyncio.Event
) -> None:
    async with manager as value:
        opened.set_result(value)
        await closing.wait()


async def _set(event: asyncio.Event) -> None:
    event.set()


def _pass_failure(name: str, ended: Future[None], opened: Future[Any]) -> None:
    """Tell whoever waits for the opening; an end that nobody asked for is logged."""
    error = ended.exception() if not ended.cancelled() else CancelledError()
    if not opened.done():
        early = RuntimeError("it ended before it yielded")
        opened.set_exception(early if error is None or ended.cancelled() else error)
    elif error is not None:
        _log.error("lifespan_ended", lifespan=name, error=type(error).__name__,
                   where=place_of(error))  # fmt: skip


def _patiently(name: str, opened: Future[Any]) -> Any:
    while True:
        try:
            return opened.result(SLOW_SECONDS)
        except TimeoutError:
            if opened.done():  # the lifespan itself timed out
                raise
            _log.warning("lifespan_opens_slowly", lifespan=name, seconds=SLOW_SECONDS)


def _end(name: str, close: Callable[[], Any]) -> None:
    try:
        close()
    except Exception as error:  # noqa: BLE001 - a user's code; the others are still to be closed
        _log.warning("lifespan_not_closed", lifespan=name, error=type(error).__name__,
                     where=place_of(error))  # fmt: skip


def _context_of(lifespan: Any) -> AbstractContextManager[Any] | AbstractAsyncContextManager[Any]:
    """Return the context manager that a lifespan stands for."""
    if inspect.isasyncgenfunction(lifespan):
        return asynccontextmanager(lifespan)()
    if inspect.isgeneratorfunction(lifespan):
        return contextmanager(lifespan)()
    made = lifespan()
    if isinstance(made, AbstractContextManager | AbstractAsyncContextManager):
        return made
    if inspect.iscoroutine(made):
        made.close()
    raise TypeError(f"it returned a {type(made).__name__}")


def by_type(value: Any) -> dict[type[Any], Any]:
    """Return what a lifespan yielded by type: one object, a mapping from type, or several."""
    if value is None:
        return {}
    if isinstance(value, Mapping) and all(isinstance(key, type) for key in value):
        return dict(value)
    if not isinstance(value, list | tuple | set | frozenset):
        return {type(value): value}
    found = {type(one): one for one in value}
    if len(found) < len(value):
        raise TypeError("it yields two objects of one type")
    return found


def _unopened(name: str, error: Exception) -> ConfigError:
    where = f" at {place}" if (place := place_of(error)) else ""
    return ConfigError(
        f"the lifespan {name} could not be opened: {type(error).__name__}{where}",
        next_step="correct it, then start the process again",
        code="lifespan_failed",
    )


def _missing(tool: str, wanted: type[Any]) -> ConfigError:
    return ConfigError(
        f"tool {tool} asks for a {wanted.__qualname__}, and no lifespan of its tools yields one",
        next_step=f"yield it in the lifespan given to Tools(..., lifespan=...) with {tool} in it",
        code="no_resource",
    )
