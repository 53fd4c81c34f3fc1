"""What the other side runs: a plain RQ job that calls the tool, and RQ's own forking worker.

A careful-looking job, as it is often written: one HTTP call, an error for anything but a 2xx, and
`Retry` outside. Imported by stock `rq worker`; standard library and rq only.
"""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from rq import Queue, Worker, get_current_job
from rq.executions import Execution
from rq.job import Job

from ...outbox.shell.fault_points import FaultPoints
from ...workers.shell.signals import watch_parent

RETRIES = 3
CALL_SECONDS = 10.0
KEY_SEPARATOR = "."


def request_key(intent_id: str, job_id: str, retries_left: int) -> str:
    """Return the key of one run: fresh for each, and beginning with the step's id to count by."""
    return KEY_SEPARATOR.join((intent_id, job_id, str(retries_left)))


def call_tool(url: str, intent_id: str, args: dict[str, Any]) -> str:
    """Send one request to the tool; RQ runs this again where it did not end well."""
    faults = FaultPoints.from_environment()
    job = get_current_job()
    assert job is not None
    key = request_key(intent_id, job.id, job.retries_left or 0)
    faults.reach("before_send", intent_id)
    faults.reach("after_mark", intent_id)
    created = _post(url, key, args)
    faults.reach("after_effect", intent_id)
    return created


def _post(url: str, key: str, args: dict[str, Any]) -> str:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=CALL_SECONDS)
    with closing(connection):
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        connection.request("POST", place.path, json.dumps(args), headers)
        answer = connection.getresponse()
        if answer.status not in (200, 201):
            raise RuntimeError(f"the tool answered {answer.status}")
        return str(json.loads(answer.read())["id"])


class NaiveWorker(Worker):
    """RQ's worker as it is: a work horse per job. It only follows its pool into its death."""

    def work(self, *args: Any, **kwargs: Any) -> bool:
        """Work as RQ does."""
        watch_parent(grace_seconds=5)
        return bool(super().work(*args, **kwargs))

    def perform_job(self, job: Job, queue: Queue, execution: Execution) -> bool:
        """Run the job in the horse; the last point lies after RQ has stored its result."""
        has_worked = super().perform_job(job, queue, execution)
        FaultPoints.from_environment().reach("after_settle", str(job.args[1]))
        return has_worked
