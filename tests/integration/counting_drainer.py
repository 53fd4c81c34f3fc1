"""A drainer that a worker process of a test loads: it writes down each call, one line a call.

Loaded in the worker's process by `ACKBOX_DRAINER=counting_drainer:build`. It claims nothing real;
files named in the environment hold a drain, or the wait for calls in flight, until they appear.
"""

import os
import threading
from pathlib import Path

from ackbox.outbox.errors import StoreUnavailable
from ackbox.workers.shell.drain import UnknownLane

CALLS = "PROBE_CALLS"
DRAIN_GATE = "PROBE_DRAIN_GATE"
IDLE_GATE = "PROBE_IDLE_GATE"
BAD_LANE = "broken"
UNSERVED_LANE = "unserved"
STORELESS_LANE = "storeless"


class CountingDrainer:
    """Counts by appending lines to a file, which survives the process."""

    def drain(self, outbox: str, lane: str, limit: int, _seconds: float) -> int:
        """Write the call down; hold while a gate is closed; refuse three lanes by name."""
        self._write(f"drain {outbox} {lane} {limit}")
        if lane == UNSERVED_LANE:
            raise UnknownLane(lane)
        if lane == STORELESS_LANE:
            raise StoreUnavailable("the database is away", next_step="start it")
        if lane == BAD_LANE:
            raise RuntimeError("this lane always breaks")
        self._pass_gate(DRAIN_GATE, 60)
        self._write(f"drained {outbox} {lane}")
        return 1

    def stop_claiming(self) -> None:
        """Write the call down."""
        self._write("stop_claiming")

    def wait_idle(self, grace_seconds: float) -> bool:
        """Write the call down; hold while the gate is closed, at most for the grace."""
        self._write(f"wait_idle {grace_seconds:g}")
        is_idle = self._pass_gate(IDLE_GATE, grace_seconds)
        self._write(f"idle {is_idle}")
        return is_idle

    def _pass_gate(self, variable: str, seconds: float) -> bool:
        gate = os.environ.get(variable)
        tick = threading.Event()
        waited = 0.0
        while gate and not Path(gate).exists() and waited < seconds:
            tick.wait(0.02)
            waited += 0.02
        return not gate or Path(gate).exists()

    def _write(self, line: str) -> None:
        with Path(os.environ[CALLS]).open("a") as calls:
            calls.write(line + "\n")


def build() -> CountingDrainer:
    """Build the drainer, as a worker process asks for it."""
    return CountingDrainer()
