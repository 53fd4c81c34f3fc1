"""Listens for a schema's rings on a direct connection and passes each on; a lost one costs a poll.

Rings once after every connect, since whatever came while nobody listened is lost. Shell.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import psycopg
import structlog

from ..backoff import backoff_seconds
from ..defaults import Limits
from ..errors import AckboxError, ConfigError
from .connection import quoted
from .database import Database
from .notify import channel_name

_log = structlog.get_logger(__name__)
_AWAY = Limits(backoff_base_seconds=0.2, backoff_cap_seconds=5.0)
_LOOK_SECONDS = 0.2


class Listener:
    """A thread that calls `on_ring` for notifications. `on_ring` must return at once.

    Where no URL leads past a pooler it says so once, and polls find what nobody rings for.
    """

    def __init__(
        self, database: Database, on_ring: Callable[[], None], stop: threading.Event
    ) -> None:
        self._database = database
        self._on_ring = on_ring
        self._stop = stop

    def start(self) -> threading.Thread:
        """Listen until stopped, connecting again with back-off."""
        thread = threading.Thread(target=self._run, name="ackbox-listen", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                self._listen()
                failures = 0
            except ConfigError as error:
                # No time mends a setting. The thread stays, since a role lives by its threads.
                _log.error("listen_impossible", what=error.what, next_step=error.next_step)
                self._stop.wait()
            except (psycopg.Error, AckboxError, OSError) as error:
                failures += 1
                code = error.code if isinstance(error, AckboxError) else type(error).__name__
                _log.warning("listen_failed", code=code, failures=failures)
                self._stop.wait(backoff_seconds(failures, random.uniform(0.5, 1.0), _AWAY))

    def _listen(self) -> None:
        with self._database.listen_connection() as connection:
            channel = quoted(channel_name(self._database.schema))
            connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.SQL(channel)))
            self._on_ring()
            while not self._stop.is_set():
                for _ in connection.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                    self._on_ring()
