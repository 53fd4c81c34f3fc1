"""The loop of the RQ worker that runs wake tokens in its own process and outlives Redis.

Decides what a failing Redis means: nothing but time. Lanes are drained by an own poll until it
answers again; SIGTERM lets calls in flight end. Use it as
`rq worker -w ackbox.workers.shell.rq_worker.AckboxWorker --serializer json ackbox.default`.
Shell. Imports rq and redis.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum
from time import monotonic
from types import FrameType
from typing import Any

from rq import Queue
from rq.defaults import DEFAULT_LOGGING_DATE_FORMAT, DEFAULT_LOGGING_FORMAT
from rq.exceptions import DeserializationError, NoSuchJobError
from rq.job import Job
from rq.suspension import is_suspended
from rq.utils import as_text, get_version, now
from rq.worker import DequeueStrategy, WorkerStatus

from ...outbox.defaults import DEFAULTS
from ...outbox.errors import StoreUnavailable
from ...outbox.shell.redis_bus import REDIS_ERRORS, parse_queue_name
from .drain import (
    DRAIN_SECONDS,
    MAX_LIMIT,
    LaneDrainer,
    UnknownLane,
    allow_forks,
    current_drainer,
    forbid_forks,
)
from .rq_bookkeeping import BookkeepingWorker, refuse_callbacks
from .signals import WakePipe, watch_parent

GRACE_VARIABLE = "ACKBOX_TERM_GRACE_SECONDS"
SECOND_SIGNAL_SECONDS = 1.0
AWAY_BASE_SECONDS = 0.25
AWAY_CAP_SECONDS = 5.0
HUSK_ERRORS = (
    NoSuchJobError, DeserializationError, ValueError, TypeError, AssertionError, AttributeError,
    LookupError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What RQ raises while it reads a job that anybody may have written, or half of one."""
COLD_EXIT_CODE = 1


class Turn(Enum):
    """How one turn of the loop ended."""

    WORKED = "a token ran"
    IDLE = "no token came"
    AWAY = "Redis does not answer or refuses writes: the lanes were polled"


class AckboxWorker(BookkeepingWorker):
    """Drains lanes as their tokens come, and by an own poll while Redis fails."""

    max_connection_wait_time = AWAY_CAP_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what RQ's worker takes; the drainer is built when `work` starts."""
        super().__init__(*args, **kwargs)
        self.grace_seconds = float(os.environ.get(GRACE_VARIABLE, DEFAULTS.term_grace_seconds))
        self._drainer: LaneDrainer | None = None
        self._stop = threading.Event()
        self._asked_at: datetime | None = None
        self._is_cold = False
        self._away_turns = 0

    def work(
        self,
        burst: bool = False,
        logging_level: str | None = None,
        date_format: str = DEFAULT_LOGGING_DATE_FORMAT,
        log_format: str = DEFAULT_LOGGING_FORMAT,
        max_jobs: int | None = None,
        max_idle_time: int | None = None,
        with_scheduler: bool = False,
        dequeue_strategy: DequeueStrategy = DequeueStrategy.DEFAULT,
    ) -> bool:
        """Run tokens until told to stop; True when any ran.

        `with_scheduler` is ignored: RQ's scheduler is a fork that would hold our connections.
        Returns only after calls in flight have ended or the grace is over.
        """
        self._dequeue_strategy = dequeue_strategy
        if with_scheduler:
            self.log.info("Worker %s: starts no scheduler, tokens need none", self.name)
        self._drainer = current_drainer()
        with self._forks_forbidden(), self._signals_handled():
            watch_parent(self.grace_seconds + 5)
            self.bootstrap(logging_level, date_format, log_format)
            try:
                has_worked = self._loop(burst, max_jobs, max_idle_time)
            finally:
                self._finish_attempts(burst)
                self.teardown()  # type: ignore[no-untyped-call]
        if self._is_cold:  # RQ swallows a SystemExit that hits a token
            raise SystemExit(COLD_EXIT_CODE)
        return has_worked

    def _loop(self, burst: bool, max_jobs: int | None, max_idle_time: int | None) -> bool:
        tokens, idle_since = 0, monotonic()
        while not self._stop_requested:
            turn = self._turn(burst)
            if turn is Turn.WORKED:
                tokens, idle_since = tokens + 1, monotonic()
            is_done = max_jobs is not None and tokens >= max_jobs
            is_bored = max_idle_time is not None and monotonic() - idle_since >= max_idle_time
            if is_done or is_bored or (burst and turn is not Turn.WORKED):
                break
        return tokens > 0

    def _turn(self, burst: bool) -> Turn:
        if self.beat() is not None:
            return self._turn_without_redis()
        self._clean_up()
        try:
            if is_suspended(self.connection):
                return self._turn_suspended()
            found = self._take(None if burst else self.dequeue_timeout)
        except REDIS_ERRORS as error:
            self.note_trouble("take", error)
            return self._turn_without_redis()
        if self._away_turns:
            self.log.warning("Worker %s: Redis is back", self.name)
        self._away_turns = 0
        if found is None:
            return Turn.IDLE
        self.execute_job(*found)
        return Turn.WORKED

    def _turn_without_redis(self) -> Turn:
        if not self._away_turns:
            self.log.warning("Worker %s: no Redis; lanes are polled until it is back", self.name)
        self.poll_lanes()
        ceiling = min(AWAY_CAP_SECONDS, AWAY_BASE_SECONDS * 2.0 ** min(self._away_turns, 10))
        self._away_turns += 1
        self._stop.wait(random.uniform(ceiling / 2, ceiling))
        return Turn.AWAY

    def _turn_suspended(self) -> Turn:
        self.set_state(WorkerStatus.SUSPENDED)
        self._stop.wait(self.dequeue_timeout)
        return Turn.IDLE

    def poll_lanes(self) -> int:
        """Drain each lane of this worker once, without a token; return the number of claims."""
        return sum(self._drain_queue(name) for name in self.queue_names())

    def _drain_queue(self, name: str) -> int:
        lane = parse_queue_name(name)
        if lane is None or self._drainer is None or self._stop_requested:
            return 0
        self.counts["poll"] += 1
        try:
            return self._drainer.drain(lane[0], lane[1], MAX_LIMIT, DRAIN_SECONDS)
        except (UnknownLane, StoreUnavailable):
            self.counts["poll_failed"] += 1
            return 0

    def _clean_up(self) -> None:
        if self.should_run_maintenance_tasks:
            self.last_cleaned_at = now()  # type: ignore[assignment]
            self.absorb("clean", self.run_maintenance_tasks)

    def _take(self, timeout_seconds: int | None) -> tuple[Job, Queue] | None:
        """Pop a token; husks (ids that lead to no token) are counted and passed over.

        A plain pop, never a move to RQ's intermediate list: it is allowed while Redis is full,
        and a token that is lost with this process costs nothing.
        """
        if self.get_state() != WorkerStatus.IDLE:
            self.set_state(WorkerStatus.IDLE)
        popped = self._pop(timeout_seconds)
        while popped is not None:
            queue_key = as_text(popped[0])
            queue = next(queue for queue in self.queues if queue.key == queue_key)
            found = self._fetch(popped[1], queue)
            if found is not None:
                return found
            popped = self._pop(None)
        return None

    def _pop(self, timeout_seconds: int | None) -> Any:
        keys = [queue.key for queue in self._ordered_queues]
        if timeout_seconds is None:
            return self.queue_class.lpop(keys, None, connection=self.connection)
        return self.connection.blpop(keys, timeout_seconds)

    def _fetch(self, job_id: bytes | str, queue: Queue) -> tuple[Job, Queue] | None:
        try:
            job = self.job_class.fetch(as_text(job_id), self.connection, self.serializer)
            job.redis_server_version = get_version(self.connection)
            refuse_callbacks(job)
        except HUSK_ERRORS:
            self.counts["husk"] += 1
            return None
        self.reorder_queues(reference_queue=queue)
        return job, queue

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        """Begin to stop; a second signal, a second later or more, stops without a grace.

        Runs as a signal handler: takes no lock and logs nothing.
        """
        if self._asked_at is None:
            self._asked_at = now()
            self._stop_requested = True
            self._wake.wake()
        elif now() - self._asked_at >= timedelta(seconds=SECOND_SIGNAL_SECONDS):
            self._is_cold = True
            raise SystemExit(COLD_EXIT_CODE)

    def _stop_when_woken(self) -> None:
        self._wake.wait()
        self._stop.set()
        if self._stop_requested and self._drainer is not None:
            self.handle_warm_shutdown_request()  # type: ignore[no-untyped-call]
            self._drainer.stop_claiming()

    @contextmanager
    def _signals_handled(self) -> Iterator[None]:
        self._wake = WakePipe()
        stopper = threading.Thread(target=self._stop_when_woken, name="stopper", daemon=True)
        stopper.start()
        is_main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        before = {number: signal.signal(number, self.request_stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            self._wake.wake()
            stopper.join()
            self._wake.close()

    @contextmanager
    def _forks_forbidden(self) -> Iterator[None]:
        forbid_forks()
        try:
            yield
        finally:
            allow_forks()

    def _finish_attempts(self, burst: bool) -> None:
        """Stop claiming, give back what is executing, wait for what may be on the wire."""
        if self._drainer is None or self._is_cold:
            return
        if burst and not self._stop_requested:
            self._drainer.wait_idle(self.grace_seconds)
        self._drainer.stop_claiming()
        if not self._drainer.wait_idle(self.grace_seconds):
            self.counts["grace_over"] += 1
            self.log.warning("Worker %s: the grace is over with calls in flight", self.name)
