"""The same plan on bare RQ with `Retry`: the same steps, the same kills, the same slow answers.

A planner that times out enqueues the step again: it cannot know whether it was done. The kills hit
the work horse; killing the whole RQ worker only delays the second run by minutes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from redis import Redis
from rq import Queue, Retry
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from ...outbox.shell.fault_points import PLAN_VARIABLE
from .driver import PATIENCE_SECONDS, TICK_SECONDS, WINDOW
from .faults import KillPlan
from .naive_job import RETRIES, call_tool, request_key
from .plan import Step
from .processes import HostedPool
from .progress import Snapshot
from .provider import ProviderProcess
from .schedule import Schedule

WORKER_CLASS = "ackbox.app.demo.naive_job.NaiveWorker"
_ENDED = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.STOPPED, JobStatus.CANCELED)
_KEEP_SECONDS = 600


class NaiveSide:
    """Runs the plan on an RQ queue of its own."""

    def __init__(
        self,
        redis_url: str,
        name: str,
        provider: ProviderProcess,
        schedule: Schedule,
        kill_plan: KillPlan,
        show: Callable[[Snapshot], None],
    ) -> None:
        self._redis_url = redis_url
        self._redis = Redis.from_url(redis_url)
        self._queue = Queue(f"{name}-naive", connection=self._redis, serializer=JSONSerializer)
        self._provider = provider
        self._schedule = schedule
        self._kill_plan = kill_plan
        self._show = show
        self._pause = threading.Event()
        self._jobs: list[Job] = []

    def run(
        self, steps: Sequence[Step], *, workers: int, folder: Path, limit_seconds: float
    ) -> bool:
        """Run the whole plan; False when the time was over."""
        environ = {
            **os.environ,
            "RQ_REDIS_URL": self._redis_url,
            PLAN_VARIABLE: str(self._kill_plan.path),
        }
        pool = HostedPool(
            workers, WORKER_CLASS, [self._queue.name],
            environ=environ, log=folder / "naive-workers.log", kills=0,
        )  # fmt: skip
        try:
            with pool:
                return self._drive(list(steps), time.monotonic() + limit_seconds)
        finally:
            self._queue.delete(delete_jobs=True)
            self._redis.close()

    def _drive(self, steps: list[Step], end_at: float) -> bool:
        waiting = list(steps)
        while waiting or self._open():
            if time.monotonic() >= end_at:
                return False
            while waiting and self._open() < WINDOW:
                self._begin(waiting.pop(0))
            self._tell(len(steps), len(steps) - len(waiting))
            self._pause.wait(TICK_SECONDS)
        self._tell(len(steps), len(steps))
        return True

    def _begin(self, step: Step) -> None:
        seconds = self._schedule.answer_seconds(step.name)
        job_id = f"{self._queue.name}-{step.name}"
        if seconds:
            first_key = request_key(step.intent_id, job_id, RETRIES)
            self._provider.answer_late(step.lane, first_key, seconds)
        job = self._enqueue(step, job_id)
        if step.name not in self._schedule.impatient:
            return
        self._pause.wait(PATIENCE_SECONDS)
        if job.get_status(refresh=True) not in _ENDED:
            self._enqueue(step, f"{job_id}-again")

    def _enqueue(self, step: Step, job_id: str) -> Job:
        job = self._queue.enqueue_call(
            call_tool,
            args=(f"{self._provider.url}/{step.lane}", step.intent_id, dict(step.args)),
            retry=Retry(max=RETRIES),
            result_ttl=_KEEP_SECONDS,
            failure_ttl=_KEEP_SECONDS,
            job_id=job_id,
        )
        self._jobs.append(job)
        return job

    def _open(self) -> int:
        return sum(job.get_status(refresh=True) not in _ENDED for job in self._jobs)

    def _tell(self, steps: int, begun: int) -> None:
        self._show(Snapshot(max(0, begun - self._open()), steps, len(self._kill_plan.fired())))
