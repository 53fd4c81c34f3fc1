"""Rings a lane: puts a wake token on its RQ queue, or says that it could not.

Decides the names of the queues, the shape of a token, and when Redis is left alone for a while.
A token carries no work and grants no right: losing, doubling or reordering it costs time only.
Shell. Imports redis and rq; names the functions that a token runs by dotted string only.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from uuid import uuid4

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer

from ..identity import RESULTS, is_lane_name

DEFAULT_OUTBOX = "default"
DRAIN_FUNCTION = "ackbox.workers.shell.drain.drain_token"
RESULTS_FUNCTION = "ackbox.planner.shell.consumer.consume_token"
JOB_KEY_PREFIX = Job.key_for("").encode()
TOKENS_PER_QUEUE = 3
TOKEN_TTL_SECONDS = 3600
FAILURE_TTL_SECONDS = 60
SOCKET_SECONDS = 0.5
TAKE_SECONDS = 0.3
"""Shorter than the socket's time-out: an empty queue is no failure of Redis."""
BACKOFF_BASE_SECONDS = 0.1
BACKOFF_CAP_SECONDS = 5.0
REDIS_ERRORS = (RedisError, OSError)

_PREFIX = "ackbox"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def queue_name(lane: str, outbox: str = DEFAULT_OUTBOX) -> str:
    """Return the RQ queue of a lane.

    Raises:
        ValueError: the lane or the outbox has a name that no queue can carry.
    """
    if not is_lane_name(lane):
        raise ValueError("a lane has 1 to 64 letters, digits, _ or -, and is not called results")
    return f"{_outbox_prefix(outbox)}.{lane}"


def results_queue_name(outbox: str = DEFAULT_OUTBOX) -> str:
    """Return the RQ queue whose tokens wake the result consumer of an outbox."""
    return f"{_outbox_prefix(outbox)}.{RESULTS}"


def parse_queue_name(name: str) -> tuple[str, str] | None:
    """Return (outbox, lane) of a lane's queue; None for a results queue and any foreign name."""
    parts = name.split(".")
    if len(parts) == 2:
        parts.insert(1, DEFAULT_OUTBOX)
    if len(parts) != 3 or parts[0] != _PREFIX or not _NAME.fullmatch(parts[1]):
        return None
    return (parts[1], parts[2]) if is_lane_name(parts[2]) else None


def _outbox_prefix(outbox: str) -> str:
    if _NAME.fullmatch(outbox) is None:
        raise ValueError("an outbox has 1 to 64 letters, digits, _ or - in its name")
    return _PREFIX if outbox == DEFAULT_OUTBOX else f"{_PREFIX}.{outbox}"


def reconnect_once() -> Retry:
    """Return the retry rule of every client here: once, at once, for a dead pooled connection.

    A restart of Redis leaves such connections behind. A time-out is not tried again: it would
    only double the time that a frozen server costs.
    """
    return Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))


def bus_client(url: str, socket_seconds: float = SOCKET_SECONDS) -> Redis:
    """Return a Redis client that gives up fast; never hand it to an RQ worker.

    An RQ worker raises the time-outs on the pool of the client that it is given.

    Raises:
        ValueError: the URL is none that redis-py knows.
    """
    return Redis.from_url(
        url,
        socket_timeout=socket_seconds,
        socket_connect_timeout=socket_seconds,
        retry=reconnect_once(),
    )


class TokenBus:
    """Rings the lanes of one outbox. Safe to share between threads; never raises for Redis.

    After a failure Redis is left alone for a growing, jittered time (at most 5 s) in which every
    ring answers False at once, so a caller never waits twice for a server that is gone.
    """

    def __init__(
        self,
        url: str,
        outbox: str = DEFAULT_OUTBOX,
        *,
        tokens_per_queue: int = TOKENS_PER_QUEUE,
        socket_seconds: float = SOCKET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep the URL's client; nothing is connected before the first ring.

        Raises:
            ValueError: the URL or the outbox's name is malformed.
        """
        self.outbox = outbox
        self._results = results_queue_name(outbox)
        self._redis = bus_client(url, socket_seconds)
        self._tokens_per_queue = tokens_per_queue
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._quiet_until = 0.0
        self._counts: Counter[str] = Counter()

    def __repr__(self) -> str:
        """Name the outbox only: the URL may hold a password."""
        return f"TokenBus(outbox={self.outbox!r})"

    def ring(self, lane: str, limit: int) -> bool:
        """Put a token for up to `limit` claims on the lane's queue.

        Returns True when a token stands there now, a new one or enough older ones; False when
        Redis refused, is being left alone, or the lane has no legal name. Never raises for Redis.
        """
        if not is_lane_name(lane):
            self._count("invalid")
            return False
        args = (self.outbox, lane, limit)
        return self._ring(queue_name(lane, self.outbox), lane, DRAIN_FUNCTION, args)

    def ring_results(self) -> bool:
        """Put a token on the results queue. Answers as `ring` does."""
        return self._ring(self._results, RESULTS, RESULTS_FUNCTION, (self.outbox,))

    def take_results(self) -> bool:
        """Wait shortly for a token of the results queue and take it; False where none came.

        For a consumer that is no RQ worker. Never raises for Redis, and answers at once while
        Redis is being left alone.
        """
        if self.retry_in_seconds > 0:
            return False
        queue = Queue(self._results, connection=self._redis, serializer=JSONSerializer)
        try:
            popped = self._redis.blpop([queue.key], timeout=TAKE_SECONDS)
            if popped is not None:
                # As bytes: whoever reaches Redis may have pushed an id that is no text.
                job_id = popped[1]
                known = job_id if isinstance(job_id, bytes) else job_id.encode()
                self._redis.delete(JOB_KEY_PREFIX + known)
        except REDIS_ERRORS:
            self._note_failure()
            return False
        return popped is not None

    @property
    def counts(self) -> Mapping[str, int]:
        """Rings so far by outcome: rung, enough, failed, left_alone, invalid."""
        with self._lock:
            return dict(self._counts)

    @property
    def failures_in_a_row(self) -> int:
        """Failed rings since the last one that reached Redis; 0 means Redis is answering."""
        with self._lock:
            return self._failures

    @property
    def retry_in_seconds(self) -> float:
        """How long Redis is still left alone; 0 when the next ring will try it."""
        with self._lock:
            return max(0.0, self._quiet_until - self._clock())

    def close(self) -> None:
        """Close the connections of this bus."""
        self._redis.close()

    def _ring(self, queue: str, label: str, function: str, args: tuple[object, ...]) -> bool:
        if self.retry_in_seconds > 0:
            self._count("left_alone")
            return False
        try:
            outcome = self._put_token(queue, label, function, args)
        except REDIS_ERRORS:
            self._note_failure()
            return False
        self._note_success(outcome)
        return True

    def _put_token(
        self, queue_name: str, label: str, function: str, args: tuple[object, ...]
    ) -> str:
        queue = Queue(queue_name, connection=self._redis, serializer=JSONSerializer)
        if queue.count >= self._tokens_per_queue:
            return "enough"
        queue.enqueue_call(
            function,
            args=args,
            timeout=-1,
            result_ttl=0,
            ttl=TOKEN_TTL_SECONDS,
            failure_ttl=FAILURE_TTL_SECONDS,
            description=f"wake {queue_name}",
            job_id=f"{label}-{uuid4().hex}",
        )
        return "rung"

    def _count(self, outcome: str) -> None:
        with self._lock:
            self._counts[outcome] += 1

    def _note_success(self, outcome: str) -> None:
        with self._lock:
            self._counts[outcome] += 1
            self._failures = 0
            self._quiet_until = 0.0

    def _note_failure(self) -> None:
        with self._lock:
            self._counts["failed"] += 1
            ceiling = min(BACKOFF_CAP_SECONDS, BACKOFF_BASE_SECONDS * 2.0**self._failures)
            self._failures = min(self._failures + 1, 32)
            self._quiet_until = self._clock() + random.uniform(ceiling / 2, ceiling)
