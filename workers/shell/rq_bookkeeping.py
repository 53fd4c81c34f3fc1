"""RQ's bookkeeping around a token, none of which may stop a worker when Redis fails.

Decides that an error of Redis is noted and stepped over, that the worker lists itself again when
its entry is gone, and that only wake tokens run. Shell. Imports rq and redis; needs `rq>=3,<4`,
because it overrides methods of RQ's worker.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from redis import Redis
from redis.exceptions import ResponseError
from rq import Queue, SimpleWorker, worker_registration
from rq.exceptions import AbandonedJobError
from rq.executions import Execution
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.timeouts import BaseDeathPenalty
from rq.utils import now
from rq.worker import WorkerStatus

from ...outbox.shell.redis_bus import DRAIN_FUNCTION, REDIS_ERRORS, RESULTS_FUNCTION, reconnect_once

if TYPE_CHECKING:
    from redis.client import Pipeline, PubSub, PubSubWorkerThread

TOKEN_FUNCTIONS = frozenset({DRAIN_FUNCTION, RESULTS_FUNCTION})
LISTED_TTL_SECONDS = 60
PUBSUB_PAUSE_SECONDS = 2.0


class NoDeathPenalty(BaseDeathPenalty):
    """A token has no time limit of RQ's: no SIGALRM may fire in the middle of a call."""

    def setup_death_penalty(self) -> None:
        """Set no alarm."""

    def cancel_death_penalty(self) -> None:
        """Clear no alarm."""


class ForeignJob(ValueError):
    """A job on a lane's queue that is no wake token; RQ files it as failed, nothing runs."""


def refuse_callbacks(job: Job) -> None:
    """Raise ForeignJob for a job that names callbacks: RQ would import and call them.

    Checked before the job runs at all, since RQ calls a failure's callback for a refused job too.
    """
    named = (
        job._success_callback_name, job._failure_callback_name, job._stopped_callback_name,
    )  # fmt: skip
    if any(named):
        raise ForeignJob("a wake token has no callbacks")


class BookkeepingWorker(SimpleWorker):
    """RQ's in-process worker, with every Redis call around a token allowed to fail."""

    death_penalty_class = NoDeathPenalty

    def __init__(self, queues: Any, name: str | None = None, **kwargs: Any) -> None:
        """Take what RQ's worker takes. Tokens are JSON whatever serializer is asked for.

        RQ's command line passes pickle unless told otherwise, which would run code from Redis
        and could not read a token.
        """
        self.counts: Counter[str] = Counter()
        self._listed = False
        kwargs["serializer"] = JSONSerializer
        super().__init__(queues, name, **kwargs)
        for queue in self.queues:
            queue.serializer = self.serializer
        self._exc_handlers.append(self._count_abandoned)
        self.connection.set_retry(reconnect_once())

    @property
    def dequeue_timeout(self) -> int:
        """Wait one second for a token: the bound of a beat, of re-listing and of SIGTERM."""
        return 1

    @property
    def connection_timeout(self) -> int:
        """Wait three seconds for any answer of Redis, longer than the blocking pop."""
        return self.dequeue_timeout + 2

    def absorb(self, what: str, action: Callable[[], object]) -> BaseException | None:
        """Do a Redis call; return its error, counted under `what`, instead of raising it."""
        try:
            action()
        except REDIS_ERRORS as error:
            self.note_trouble(what, error)
            return error
        return None

    def note_trouble(self, what: str, error: BaseException) -> None:
        """Count an error of Redis, and log its kind (its text may quote an address)."""
        self.counts[f"redis_{what}"] += 1
        self.log.debug("Worker %s: Redis %s: %s", self.name, what, type(error).__name__)

    def _set_ip_address(self, connection: Redis) -> None:
        self.ip_address = "unknown"
        self.absorb("address", partial(super()._set_ip_address, connection))

    def register_birth(self) -> None:
        """List this worker, now or at a later beat.

        Raises:
            ValueError: another live worker has this name.
        """
        self.birth_date = self.last_heartbeat = now()
        self._listed = self.absorb("register", super().register_birth) is None

    def register_death(self) -> None:
        """Take this worker off the lists; a full Redis still allows the removal alone."""
        if isinstance(self.absorb("unregister", super().register_death), ResponseError):
            self.absorb("unregister", partial(worker_registration.unregister, self))

    def heartbeat(self, timeout: int | None = None, pipeline: Pipeline | None = None) -> None:
        """Send a beat; inside a pipeline that is all, else as `beat`."""
        if pipeline is not None:
            super().heartbeat(timeout, pipeline)
        else:
            self.beat()

    def beat(self) -> BaseException | None:
        """Send a beat and list the worker again if Redis lost it; return Redis's error, if any."""
        return self.absorb("beat", self._beat_and_list)

    def _beat_and_list(self) -> None:
        with self.connection.pipeline() as pipeline:
            pipeline.sismember(self.redis_workers_keys, self.key)
            pipeline.hexists(self.key, "birth")
            super().heartbeat(LISTED_TTL_SECONDS, pipeline)
            is_member, is_born = pipeline.execute()[:2]
        if not (is_member and is_born):
            self._list_again()
        if self.pubsub_thread is None or not self.pubsub_thread.is_alive():
            self.subscribe()

    def _list_again(self) -> None:
        with self.connection.pipeline() as pipeline:
            pipeline.hset(self.key, mapping={**self.serialize(), "state": self.get_state()})
            pipeline.expire(self.key, LISTED_TTL_SECONDS)
            worker_registration.register(self, pipeline)
            pipeline.execute()
        self.counts["listed_again"] += 1
        self.log.info("Worker %s: listed again", self.name)

    def subscribe(self) -> None:
        """Listen for RQ's commands; without Redis a later beat does it."""
        self.absorb("subscribe", super().subscribe)

    def unsubscribe(self) -> None:
        """Stop to listen for RQ's commands."""
        thread = self.pubsub_thread
        self.absorb("unsubscribe", super().unsubscribe)
        if thread is not None:
            thread.stop()

    def _pubsub_exception_handler(
        self, exc: Exception, pubsub: PubSub, pubsub_thread: PubSubWorkerThread
    ) -> None:
        if not isinstance(exc, REDIS_ERRORS):
            raise exc
        self.note_trouble("pubsub", exc)
        threading.Event().wait(PUBSUB_PAUSE_SECONDS)

    def set_state(self, state: str, pipeline: Pipeline | None = None) -> None:
        """Show a state; what Redis did not take is shown by a later beat."""
        if pipeline is not None:
            super().set_state(state, pipeline)
        else:
            self.absorb("state", partial(super().set_state, state))

    def prepare_execution(self, job: Job) -> Execution:
        """Note in Redis that a token starts, or start it without the note."""
        try:
            return super().prepare_execution(job)
        except REDIS_ERRORS as error:
            self.note_trouble("prepare", error)
            return Execution(uuid4().hex, job.id, self.connection, worker_name=self.name)

    def prepare_job_execution(self, job: Job, remove_from_intermediate_queue: bool = False) -> None:
        """Admit a wake token and mark it started.

        Raises:
            ForeignJob: the job names another function.
        """
        if job.func_name not in TOKEN_FUNCTIONS:
            self.counts["foreign_job"] += 1
            raise ForeignJob("this queue carries wake tokens only")
        self.absorb("prepare", partial(super().prepare_job_execution, job))

    def handle_execution_ended(self, job: Job, queue: Queue, heartbeat_ttl: int) -> None:
        """Mark a token ended."""
        self.absorb("end", partial(super().handle_execution_ended, job, queue, heartbeat_ttl))

    def handle_job_success(self, *args: Any, **kwargs: Any) -> None:
        """Drop a token that ran; left behind in Redis it ages out by itself."""
        self.absorb("end", partial(super().handle_job_success, *args, **kwargs))

    def handle_job_failure(self, *args: Any, **kwargs: Any) -> None:
        """File a token that raised. Nothing reads the verdict."""
        self.counts["failed_token"] += 1
        self.absorb("end", partial(super().handle_job_failure, *args, **kwargs))

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run one token in this thread; returns whatever Redis does meanwhile."""
        execution = self.prepare_execution(job)
        self.perform_job(job, queue, execution)
        self.executions.clear()
        self.set_state(WorkerStatus.IDLE)

    def _count_abandoned(self, _job: Job, kind: type[BaseException], *_rest: object) -> bool:
        if kind is AbandonedJobError:
            self.counts["abandoned_token"] += 1
        return True
