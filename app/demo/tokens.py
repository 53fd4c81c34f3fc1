"""Wake tokens that get lost and doubled: what the demo puts between the planner and Redis.

None of it may change an outcome, only when it comes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress

from rq import Queue

from ...outbox.shell.redis_bus import REDIS_ERRORS, TokenBus, bus_client, queue_name

_COPIES = 3
_FATES = ("passed", "lost", "doubled")


class UnreliableRinger:
    """Passes rings on, but loses some and doubles some, by a seed."""

    def __init__(self, bus: TokenBus, seed: int) -> None:
        self._bus = bus
        self._draw = random.Random(seed)
        self._fates: list[str] = []
        self.lost = 0
        self.doubled = 0

    def ring(self, lane: str, limit: int) -> bool:
        """Put no token, one, or several; the planner believes that one stands there."""
        fate = self._next_fate()
        if fate == "lost":
            self.lost += 1
            return True
        if fate == "doubled":
            self.doubled += 1
            return any([self._bus.ring(lane, limit) for _ in range(_COPIES)])
        return self._bus.ring(lane, limit)

    def _next_fate(self) -> str:
        """Return each fate once in every three rings, in an order that is drawn."""
        if not self._fates:
            self._fates = self._draw.sample(_FATES, len(_FATES))
        return self._fates.pop()

    def close(self) -> None:
        """Close the bus."""
        self._bus.close()


class TokenThief:
    """Takes tokens out of Redis that nobody has seen yet."""

    def __init__(self, redis_url: str, outbox: str, lanes: Sequence[str]) -> None:
        self._redis = bus_client(redis_url)
        self._queues = [Queue(queue_name(lane, outbox), connection=self._redis) for lane in lanes]
        self.stolen = 0

    def steal(self) -> None:
        """Empty every lane's queue."""
        with suppress(*REDIS_ERRORS):
            for queue in self._queues:
                self.stolen += int(queue.empty() or 0)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()
