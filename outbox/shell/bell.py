"""Rings Redis from a thread of its own, so that nobody who settles or commits ever waits for it.

Rings are merged: many asked for at once become one token per lane. Lost ones cost a poll. Shell.
"""

from __future__ import annotations

import threading

from .redis_bus import TokenBus

TOKEN_LIMIT = 100


class Bell:
    """Merges rings and passes them on. Without a bus every ring is dropped: polls find the rows."""

    def __init__(self, bus: TokenBus | None, token_limit: int = TOKEN_LIMIT) -> None:
        self._bus = bus
        self._token_limit = token_limit
        self._lanes: set[str] = set()
        self._results = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ackbox-bell", daemon=True)
        self._thread.start()

    def ring(self, lane: str) -> None:
        """Ask for a wake token of a lane soon."""
        with self._changed:
            self._lanes.add(lane)
            self._changed.notify()

    def ring_results(self) -> None:
        """Ask for a token of the result queue soon."""
        with self._changed:
            if not self._results:
                self._results = True
                self._changed.notify()

    def close(self) -> None:
        """Pass on what was asked for, then end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lanes or self._results or self._closed)
                lanes, self._lanes = self._lanes, set()
                results, self._results = self._results, False
                closed = self._closed
            self._pass_on(lanes, results)
            if closed and not (lanes or results):
                return

    def _pass_on(self, lanes: set[str], results: bool) -> None:
        if self._bus is None:
            return
        for lane in sorted(lanes):
            self._bus.ring(lane, self._token_limit)
        if results:
            self._bus.ring_results()
