"""The processes of the acceptance tests, and the nursery that starts them.

    support_process.py worker LANE...      our RQ worker class on these lanes
    support_process.py roles ROLE...       background roles: relay, reaper, reconciler, consumer
    support_process.py pool COUNT LANE...  a supervised pool of such workers
    support_process.py consumer PLAN       the consumer role as it ships, with this plan
    support_process.py nursery             starts any of these as its children, when told to

The nursery has imported everything and opened nothing, so that a child costs a fork and not a
second. It reads one JSON request a line and answers with one line for each start and each end.
"""

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from redis import Redis
from rq import Queue

from ackbox.app import worker_process
from ackbox.app.consumer_process import load_plan
from ackbox.app.environment import running_services
from ackbox.app.logging import configure_logging
from ackbox.app.parts import Parts, build_parts
from ackbox.app.roles import Role, start_reaper, start_reconciler, start_relay
from ackbox.app.roles import start_consumer as shipped_consumer
from ackbox.app.settings import load_settings
from ackbox.outbox.shell.redis_bus import queue_name
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.workers.shell.pool import PoolLimits, WorkerPool
from ackbox.workers.shell.rq_worker import AckboxWorker

LOOK_SECONDS = 0.02
Start = Callable[[Parts, threading.Event], Role]
PREPARED = (worker_process,)
"""Imported before any fork: a worker finds its drainer by a dotted name."""


def work(lanes: list[str]) -> int:
    """Run one worker on these lanes until it is told to end; 0 for an orderly end."""
    url = load_settings().redis_url
    assert url is not None
    connection = Redis.from_url(url.reveal())
    queues = [Queue(queue_name(lane), connection=connection) for lane in lanes]
    AckboxWorker(queues, connection=connection).work(logging_level="INFO")
    return 0


def run_roles(names: list[str]) -> int:
    """Run background roles until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    settings = running_services(load_settings())
    configure_logging(settings.log_level, settings.log_format)
    stop = threading.Event()
    starts: dict[str, Start] = {
        "relay": start_relay, "reaper": start_reaper, "reconciler": start_reconciler,
        "consumer": start_consumer,
    }  # fmt: skip
    started = [starts[name](build_parts(settings, name=name), stop) for name in names]
    signal.sigwait([signal.SIGTERM])
    stop.set()
    for role in started:
        role.close()
    return 0


def start_consumer(parts: Parts, stop: threading.Event) -> Role:
    """Bind results by poll, with a plan that has no callbacks."""
    consumer = ResultConsumer(parts.database, limits=parts.limits)
    thread = threading.Thread(target=consumer.run, args=(stop,), daemon=True)
    thread.start()
    return Role("consumer", [thread], parts.database.dispose)


def run_consumer(arguments: list[str]) -> int:
    """Run the consumer role as it ships, with the plan that is named, until SIGTERM."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    settings = running_services(load_settings())
    configure_logging(settings.log_level, settings.log_format)
    stop = threading.Event()
    (place,) = arguments
    role = shipped_consumer(build_parts(settings, name="consumer"), stop, load_plan(place))
    signal.sigwait([signal.SIGTERM])
    stop.set()
    role.close()
    return 0


def run_pool(arguments: list[str]) -> int:
    """Run a supervised pool; its children are started as programs of their own."""
    configure_logging("info", "json")
    count, *lanes = arguments
    command = [sys.executable, __file__, "worker", *lanes]
    pool = WorkerPool(int(count), command, limits=PoolLimits(grace_seconds=10, young_seconds=0.5))
    try:
        return pool.run()
    finally:
        pool.close()


class Nursery:
    """Forks children on request, and tells of each one's end."""

    def __init__(self) -> None:
        self._living: set[int] = set()
        self._unread = b""

    def serve(self) -> dict[str, Any] | None:
        """Serve until the requests end (None); in a child return what it must become."""
        while True:
            if select.select([0], [], [], LOOK_SECONDS)[0]:
                data = os.read(0, 65536)
                if not data:
                    self._kill_all()
                    return None
                *lines, self._unread = (self._unread + data).split(b"\n")
                for line in lines:
                    request: dict[str, Any] = json.loads(line)
                    if self._fork():
                        return request
            self._reap()

    def _fork(self) -> bool:
        """Fork; True in the child."""
        pid = os.fork()
        if pid == 0:
            os.setsid()
            return True
        self._living.add(pid)
        _tell({"started": pid})
        return False

    def _reap(self) -> None:
        for pid in list(self._living):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._living.discard(pid)
                _tell({"ended": pid, "code": os.waitstatus_to_exitcode(status)})

    def _kill_all(self) -> None:
        for pid in self._living:
            # Its whole session: a child may have started programs of its own.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _tell(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def become(request: dict[str, Any]) -> int:
    """Turn this child into what was asked for; returns its exit code."""
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, log), (2, log)):
        os.dup2(source, target)
    os.environ.update(request["environ"])
    return run(request["command"])


def run(command: list[str]) -> int:
    """Run what the command line names; returns the exit code."""
    name, *arguments = command
    if name == "nursery":
        request = Nursery().serve()
        return 0 if request is None else become(request)
    ways = {"worker": work, "roles": run_roles, "pool": run_pool, "consumer": run_consumer}
    return ways[name](arguments)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    import support_tools  # type: ignore[import-not-found]

    assert support_tools
    sys.exit(run(sys.argv[1:]))
