"""A pool of worker processes that are started as programs, watched, and replaced when they die.

Decides when a pool has failed: too many processes in a row that died young. Nothing is forked
while a connection is open, and no child outlives its pool for longer than its grace, even when
the pool is killed. Shell. Imports the standard library only.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType

from .signals import PARENT_FD_VARIABLE, WakePipe

_log = logging.getLogger("ackbox.pool")

STOPPED = 0
FAILED = 1
PATROL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """When a pool replaces a process, gives up, or stops to wait. Durations are seconds."""

    grace_seconds: float = 40.0
    young_seconds: float = 12.0
    """Below the silence after which a dead process counts as dead: poisoned rows kill no pool."""
    max_young_deaths: int = 5
    backoff_base_seconds: float = 0.1
    backoff_cap_seconds: float = 5.0


@dataclass(slots=True)
class _Seat:
    """One place in the pool: its process, or the time at which the next one starts."""

    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    deaths: int = 0
    has_grown_up: bool = field(default=False)


class WorkerPool:
    """Keeps `processes` copies of `command` running until told to stop.

    Each child inherits the reading end of a pipe, named in `ACKBOX_PARENT_FD`; it ends by itself
    when the pool is gone (`signals.watch_parent`, which the RQ worker class calls).
    """

    def __init__(
        self,
        processes: int,
        command: Sequence[str],
        *,
        limits: PoolLimits | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Plan the pool; `run` starts it.

        Raises:
            ValueError: fewer than one process, or an empty command.
        """
        if processes < 1 or not command:
            raise ValueError("a pool needs at least one process and a command")
        self._command = list(command)
        self._limits = limits or PoolLimits()
        self._environ = dict(os.environ if environ is None else environ)
        self._seats = [_Seat() for _ in range(processes)]
        self._wake = WakePipe()
        self._alive_read_fd, self._alive_write_fd = os.pipe()
        self._stops = 0
        self._young_deaths = 0
        self.replaced = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the children that run now."""
        processes = [seat.process for seat in self._seats]
        return tuple(p.pid for p in processes if p is not None and p.returncode is None)

    def run(self) -> int:
        """Run the pool; return its exit code.

        0: stopped by SIGTERM, SIGINT or `stop`, and every child ended within the grace.
        1: the children could not be kept alive, or had to be killed after the grace.
        May run in any thread; only the main thread can take the signals.
        """
        before = self._take_signals()
        try:
            has_failed = self._keep_running()
            has_ended = self._end_children()
        finally:
            self._kill_rest()
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        return STOPPED if has_ended and not has_failed else FAILED

    def stop(self) -> None:
        """Ask the pool to stop, from any thread; a second call ends the grace."""
        self._stops += 1
        self._wake.wake()

    def close(self) -> None:
        """Close the pool's pipes, after `run` has returned."""
        self._wake.close()
        os.close(self._alive_write_fd)
        os.close(self._alive_read_fd)

    def _take_signals(self) -> dict[int, signal._HANDLER]:
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGTERM, signal.SIGINT)
        }

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        self.stop()

    def _keep_running(self) -> bool:
        """Start and replace children until told to stop (False) or given up (True)."""
        while self._stops == 0:
            for seat in self._seats:
                self._attend(seat)
            if self._young_deaths >= self._limits.max_young_deaths:
                _log.error("pool gives up: %d processes died young", self._young_deaths)
                return True
            self._wake.wait(PATROL_SECONDS)
        return False

    def _attend(self, seat: _Seat) -> None:
        now = monotonic()
        if seat.process is None:
            if now >= seat.start_at:
                self._start(seat, now)
        elif seat.process.poll() is not None:
            self._note_death(seat, now)
        elif not seat.has_grown_up and now - seat.started_at >= self._limits.young_seconds:
            seat.has_grown_up = True
            seat.deaths = 0
            self._young_deaths = 0

    def _start(self, seat: _Seat, now: float) -> None:
        seat.process = subprocess.Popen(
            self._command,
            env={**self._environ, PARENT_FD_VARIABLE: str(self._alive_read_fd)},
            pass_fds=(self._alive_read_fd,),
            process_group=0,  # Ctrl-C reaches the pool alone, which asks each child once
        )
        seat.started_at = now
        seat.has_grown_up = False
        _log.info("pool started process %d", seat.process.pid)

    def _note_death(self, seat: _Seat, now: float) -> None:
        assert seat.process is not None
        _log.warning("process %d ended (%s)", seat.process.pid, seat.process.returncode)
        if not seat.has_grown_up:
            self._young_deaths += 1
        ceiling = self._limits.backoff_base_seconds * 2.0 ** min(seat.deaths, 16)
        seat.process = None
        seat.start_at = now + min(ceiling, self._limits.backoff_cap_seconds)
        seat.deaths += 1
        self.replaced += 1

    def _end_children(self) -> bool:
        """Ask every child to end and wait; False if one outlives the grace."""
        stops_before = max(self._stops, 1)
        for seat in self._seats:
            self._signal(seat, signal.SIGTERM)
        deadline = monotonic() + self._limits.grace_seconds
        while self._any_alive():
            if monotonic() >= deadline or self._stops > stops_before:
                return False
            self._wake.wait(PATROL_SECONDS)
        return True

    def _any_alive(self) -> bool:
        processes = [seat.process for seat in self._seats]
        return any(p is not None and p.poll() is None for p in processes)

    def _kill_rest(self) -> None:
        for seat in self._seats:
            self._signal(seat, signal.SIGKILL)
            if seat.process is not None:
                seat.process.wait()

    def _signal(self, seat: _Seat, number: signal.Signals) -> None:
        if seat.process is not None and seat.process.poll() is None:
            seat.process.send_signal(number)
