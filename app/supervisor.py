"""Keeps the roles and the worker pool of one `ackbox up` running, and ends them in good order.

Decides when a set-up has failed: a role's thread died, or the pool gave up. Signals only set a
flag here; what is on the wire is waited for. Part of the composition root.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType

from ..outbox.errors import AckboxError
from ..workers.shell.pool import STOPPED, PoolLimits, WorkerPool
from ..workers.shell.signals import WakePipe
from .consumer_process import load_plan
from .embedded import EmbeddedServices
from .parts import Parts, build_parts
from .roles import Role, start_consumer, start_reaper, start_reconciler, start_relay
from .rq_process import COMMAND, child_environ
from .settings import Settings
from .stores import checked_limits

WORKER = "worker"
BACKGROUND_ROLES = ("relay", "reaper", "reconciler", "consumer")
ROLES = (*BACKGROUND_ROLES, WORKER)
LOOK_SECONDS = 0.5
END_LOOK_SECONDS = 0.1
SERVERS_EVERY_SECONDS = 2.0
POOL_SLACK_SECONDS = 5.0
FAILED = 1
Say = Callable[[str], None]

_START: dict[str, Callable[[Parts, threading.Event], Role]] = {
    "relay": start_relay,
    "reaper": start_reaper,
    "reconciler": start_reconciler,
    "consumer": lambda parts, stop: start_consumer(parts, stop, load_plan(parts.settings.plan)),
}


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP as a count that a loop may wait on; set before anything starts."""

    def __init__(self) -> None:
        self.count = 0
        self._pipe = WakePipe()

    def wait(self, seconds: float) -> None:
        """Wait for a signal, at most that long."""
        self._pipe.wait(seconds)

    @contextmanager
    def taken(self) -> Iterator[StopSignals]:
        """Take the signals for a while; in the main thread only."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, self._note) for number in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            self._pipe.close()

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1
        self._pipe.wake()


class Supervisor:
    """The running parts of one process. `say` prints one line for a person."""

    def __init__(
        self,
        settings: Settings,
        roles: Sequence[str],
        *,
        signals: StopSignals,
        say: Say,
        services: EmbeddedServices | None = None,
    ) -> None:
        """Plan what runs; `run` starts it. Roles are names of `ROLES`."""
        self._settings = settings
        self._roles = [role for role in ROLES if role in roles]
        self._signals = signals
        self._say = say
        self._services = services
        self._stop = threading.Event()
        self._limits = checked_limits(settings)
        self._looked_at = time.monotonic()

    def run(self) -> int:
        """Run until a signal, or until a part has died; return the exit code.

        Raises AckboxError where a part cannot be started; what was started before is ended.
        """
        with ExitStack() as ending:
            started = [self._start(role, ending) for role in self._roles if role != WORKER]
            pool = _PoolThread(self._settings, self._limits.term_grace_seconds)
            if WORKER in self._roles:
                pool.start()
            self._say("ready; Ctrl-C stops it")
            failure = self._watch(started, pool)
            self._say(self._farewell(failure, pool))
            clean = self._end_pool(pool)
            self._stop.set()
        return STOPPED if failure is None and clean else FAILED

    def _start(self, name: str, ending: ExitStack) -> Role:
        # Parts of its own: a role is seen, and missed, by a heartbeat row of its own.
        parts = build_parts(self._settings, name=f"ackbox {name}")
        ending.callback(parts.database.dispose)
        role = _START[name](parts, self._stop)
        ending.callback(role.close)
        ending.callback(self._stop.set)
        return role

    def _watch(self, roles: Sequence[Role], pool: _PoolThread) -> str | None:
        """Wait for a signal (None) or for the name of a part that has died."""
        while self._signals.count == 0:
            dead = next((role.name for role in roles if not role.is_alive()), None)
            if dead is not None:
                return f"the {dead}"
            if pool.code is not None:
                return "the worker pool"
            self._keep_servers()
            self._signals.wait(LOOK_SECONDS)
        return None

    def _keep_servers(self) -> None:
        """Start an embedded server again that has died; its clients connect again by themselves."""
        now = time.monotonic()
        if self._services is None or now < self._looked_at + SERVERS_EVERY_SECONDS:
            return
        self._looked_at = now
        try:
            for title in self._services.ensure_running():
                self._say(f"{title} had died and was started again")
        except AckboxError as error:
            self._say(str(error))

    def _farewell(self, failure: str | None, pool: _PoolThread) -> str:
        if failure is not None:
            return f"failed: {failure} has ended by itself; everything else is stopped now"
        if not pool.is_running():
            return "stopping"
        grace = f"{self._limits.term_grace_seconds:g} s"
        return (
            f"stopping: nothing more is claimed; what is on the wire gets up to {grace} "
            "(Ctrl-C again ends that, and leaves it to the reaper)"
        )

    def _end_pool(self, pool: _PoolThread) -> bool:
        pool.stop()
        asked = self._signals.count
        while pool.is_running():
            self._signals.wait(END_LOOK_SECONDS)
            if self._signals.count > asked:
                asked = self._signals.count
                pool.stop()
        return pool.code in (None, STOPPED)


class _PoolThread:
    """A worker pool in a thread, whose end can be looked at."""

    def __init__(self, settings: Settings, grace_seconds: float) -> None:
        self.code: int | None = None
        limits = PoolLimits(grace_seconds=grace_seconds + POOL_SLACK_SECONDS)
        self._pool = WorkerPool(
            settings.worker_processes, COMMAND, limits=limits, environ=child_environ(settings)
        )
        self._thread = threading.Thread(target=self._run, name="ackbox-pool")

    def start(self) -> None:
        """Start the processes."""
        self._thread.start()

    def is_running(self) -> bool:
        """Return whether the pool still has to be waited for."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to end; a second time: at once."""
        if self._thread.is_alive():
            self._pool.stop()

    def _run(self) -> None:
        try:
            code = self._pool.run()
        finally:
            self._pool.close()
        self.code = code
