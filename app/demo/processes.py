"""A supervised pool of RQ workers, hosted by a thread of the demo, with its output in a log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from ...workers.shell.pool import PoolLimits, WorkerPool

GRACE_SECONDS = 10.0
# The shell replaces itself by the worker, so the pool watches the worker's own process.
_INTO_LOG = 'log="$1"; shift; exec "$@" >>"$log" 2>&1'


class HostedPool:
    """A pool of `rq worker` processes; a context manager that stops it."""

    def __init__(
        self,
        processes: int,
        worker_class: str,
        queues: Sequence[str],
        *,
        environ: Mapping[str, str],
        log: Path,
        kills: int,
    ) -> None:
        """Plan the pool. `kills` planned deaths alone never make it give up."""
        worker = [sys.executable, "-m", "rq.cli", "worker", "-w", worker_class]
        command = [*worker, "--serializer", "json", *queues]
        limits = PoolLimits(
            grace_seconds=GRACE_SECONDS,
            young_seconds=3.0,
            max_young_deaths=kills + 3 * processes,
            backoff_base_seconds=0.05,
            backoff_cap_seconds=0.5,
        )
        self._pool = WorkerPool(
            processes,
            ["/bin/sh", "-c", _INTO_LOG, "worker", str(log), *command],
            limits=limits,
            environ=environ,
        )
        self._thread = threading.Thread(target=self._pool.run, name="demo-pool", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.stop()
        self._thread.join()
        self._pool.close()

    @property
    def deaths(self) -> int:
        """How many processes have died and were replaced."""
        return self._pool.replaced

    @property
    def has_given_up(self) -> bool:
        """Whether the pool has ended by itself."""
        return not self._thread.is_alive()
