"""Builds what one worker process runs on: the drainer that wake tokens call.

Part of the composition root; RQ workers find `build_drainer` by its dotted name.
"""

from __future__ import annotations

import atexit

from ..outbox.shell.attempt_store import AttemptStore
from ..outbox.shell.claim_store import ClaimStore
from ..outbox.shell.fault_points import FaultPoints
from ..outbox.shell.pooler import refuse_undeclared
from ..workers.shell.heartbeat import Heartbeat
from ..workers.shell.lane_drainer import ProcessDrainer
from ..workers.shell.runner import Runner
from ..workers.shell.slots import LaneSlots
from ..workers.shell.tool_driver import ToolDriver
from .environment import running_services
from .logging import configure_logging
from .parts import Parts, build_parts
from .settings import load_settings

ROLE = "worker"


class WorkerProcess:
    """Everything that one worker process holds; closed in the reverse order of its making."""

    def __init__(self, parts: Parts, lanes: tuple[str, ...]) -> None:
        self._parts = parts
        claims = ClaimStore(parts.database, parts.statements)
        contracts = claims.served_ids(parts.registry.served())
        in_flight = parts.settings.in_flight_max
        self._slots = LaneSlots(in_flight)
        self._bell = parts.bell()
        self._tools = ToolDriver(parts.registry, parts.limits)
        self._beats = parts.own_database("ackbox heartbeat")
        beats = ClaimStore(self._beats, parts.statements)
        self._heartbeat = Heartbeat(
            beats, parts.incarnation(ROLE, lanes), parts.limits, self._overrunning
        )
        self._runner = Runner(
            AttemptStore(parts.database, parts.statements, parts.limits),
            self._tools,
            self._slots,
            self._bell,
            owner=parts.worker_id,
            is_doubtful=self._heartbeat.is_doubtful,
            threads=in_flight * len(lanes),
            faults=FaultPoints.from_environment(),
        )
        self._heartbeat.start()
        self.drainer = ProcessDrainer(
            claims,
            self._runner,
            self._slots,
            outbox=parts.settings.outbox,
            lanes=lanes,
            owner=parts.worker_id,
            contracts=contracts,
        )

    def _overrunning(self) -> tuple[int, ...]:
        self._runner.hanging()
        return self._runner.overrunning()

    def close(self) -> None:
        """End the threads and the heartbeat row; attempts in flight are the reaper's now."""
        self.drainer.stop_claiming()
        self._runner.close()
        self._heartbeat.stop()
        self._beats.dispose()
        self._bell.close()
        self._tools.close()
        self._parts.database.dispose()


def worker_lanes(parts: Parts) -> tuple[str, ...]:
    """Return the lanes that a worker serves: those of the settings and of its tools."""
    return tuple(sorted({*parts.settings.lanes, *parts.registry.lanes()}))


def build_drainer() -> ProcessDrainer:
    """Build this process's drainer from its settings. Raises AckboxError where it cannot."""
    settings = running_services(load_settings())
    configure_logging(settings.log_level, settings.log_format)
    parts = build_parts(settings, name="ackbox worker")
    # Before anything is claimed: later the heart fails first, and then nothing moves.
    refuse_undeclared(parts.database)
    process = WorkerProcess(parts, worker_lanes(parts))
    atexit.register(process.close)
    return process.drainer
