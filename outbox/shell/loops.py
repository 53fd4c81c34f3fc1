"""The loop that every background role runs: one pass, then a jittered wait that a ring ends early.

A pass that fails for the environment's sake is logged and tried again with back-off: no role ends
because Postgres or Redis is away. Shell.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ..backoff import backoff_seconds
from ..defaults import Limits
from ..errors import AckboxError

_log = structlog.get_logger(__name__)
_AWAY = Limits(backoff_base_seconds=0.2, backoff_cap_seconds=5.0)
DEBOUNCE_SECONDS = 0.02
LOOK_SECONDS = 0.2
"""How long a loop waits for a ring before it looks whether it has to end."""


class Loop:
    """One role's loop. `run_once` returns whether it found work, in which case it runs again."""

    def __init__(
        self,
        name: str,
        run_once: Callable[[], bool],
        *,
        poll_seconds: float,
        stop: threading.Event,
        wake: threading.Event | None = None,
    ) -> None:
        self.name = name
        self._run_once = run_once
        self._poll_seconds = poll_seconds
        self._stop = stop
        self._wake = wake or threading.Event()
        self._failures = 0

    def ring(self) -> None:
        """End the present wait early."""
        self._wake.set()

    def run(self) -> None:
        """Run passes until stopped."""
        while not self._stop.is_set():
            if not self._pass():
                self._wait()

    def start(self) -> threading.Thread:
        """Run in a thread of its own."""
        thread = threading.Thread(target=self.run, name=f"ackbox-{self.name}", daemon=True)
        thread.start()
        return thread

    def _pass(self) -> bool:
        try:
            found = self._run_once()
        except (AckboxError, SQLAlchemyError, OSError) as error:
            self._failures += 1
            code = getattr(error, "code", type(error).__name__)
            _log.warning("pass_failed", role=self.name, code=code, failures=self._failures)
            return False
        self._failures = 0
        return found

    def _wait(self) -> None:
        if self._failures:
            self._stop.wait(backoff_seconds(self._failures, random.uniform(0.5, 1.0), _AWAY))
            return
        until = time.monotonic() + self._poll_seconds * random.uniform(0.75, 1.25)
        while not self._stop.is_set() and (left := until - time.monotonic()) > 0:
            if self._wake.wait(min(left, LOOK_SECONDS)):
                # Rings come in bursts; one pass answers all that came until now.
                self._stop.wait(DEBOUNCE_SECONDS)
                self._wake.clear()
                return
