"""Brings ackbox up for one run and down again: roles as threads here, workers as processes.

Everything stands in a schema and under an outbox name of the run's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ...outbox.shell.fault_points import PLAN_VARIABLE
from ...outbox.shell.redis_bus import TokenBus, queue_name
from ...planner.shell.planner import Planner
from ...tool_adapters.registry import Tools
from ..parts import Parts, build_parts
from ..roles import background_roles
from ..rq_process import child_environ
from ..settings import Settings
from ..urls import revealed
from .plan import KEYLESS, LANES
from .processes import GRACE_SECONDS, HostedPool
from .tokens import TokenThief, UnreliableRinger
from .tools import PROVIDER_VARIABLE, TOOLS_PLACE, demo_tools

WORKER_CLASS = "ackbox.workers.shell.rq_worker.AckboxWorker"
POLL_SECONDS = 0.2
IN_FLIGHT_MAX = 1
"""Open attempts per lane and process: a kill cuts at most one neighbour's call."""
LIMITS: dict[str, float | int] = {
    "prepare_limit_seconds": 1.0,
    "clock_allowance_seconds": 1.0,
    "claim_lease_seconds": 4.0,
    "heartbeat_seconds": 0.5,
    "dead_after_seconds": 2.0,
    "backoff_base_seconds": 0.2,
    "backoff_cap_seconds": 2.0,
    "term_grace_seconds": GRACE_SECONDS,
}


@dataclass(frozen=True, slots=True)
class OutboxSide:
    """A running outbox, as the demo's driver sees it."""

    parts: Parts
    planner: Planner
    ringer: UnreliableRinger
    thief: TokenThief
    pools: tuple[HostedPool, ...]

    @property
    def deaths(self) -> int:
        """How many worker processes have died and were replaced."""
        return sum(pool.deaths for pool in self.pools)

    @property
    def has_given_up(self) -> bool:
        """Whether a pool has ended by itself."""
        return any(pool.has_given_up for pool in self.pools)


def run_settings(settings: Settings, name: str, workers: int) -> Settings:
    """Return the settings of one run: its own schema and outbox, and short limits."""
    return settings.model_copy(
        update={
            "schema_name": name,
            "outbox": name,
            "lanes": tuple(sorted(LANES.values())),
            "tools": (),
            "worker_processes": workers,
            "in_flight_max": IN_FLIGHT_MAX,
            "poll_seconds": POLL_SECONDS,
            "limits": LIMITS,
        }
    )


@contextmanager
def outbox_side(
    settings: Settings, provider_url: str, folder: Path, fault_plan: Path, *, seed: int, kills: int
) -> Iterator[OutboxSide]:
    """Run pool, roles and consumer until the block ends, however it ends."""
    parts = build_parts(settings, name="ackbox demo")
    parts = replace(parts, registry=Tools(*demo_tools(provider_url)))
    redis_url = revealed(settings.redis_url)
    with ExitStack() as stack:
        stack.callback(parts.database.dispose)
        ringer = UnreliableRinger(TokenBus(redis_url, settings.outbox), seed)
        stack.callback(ringer.close)
        thief = TokenThief(redis_url, settings.outbox, settings.lanes)
        stack.callback(thief.close)
        stack.enter_context(background_roles(parts))
        planner = stack.enter_context(Planner(parts.database, limits=parts.limits, bus=ringer))
        environ = _worker_environ(settings, provider_url, fault_plan)
        pools = tuple(
            HostedPool(
                processes,
                WORKER_CLASS,
                [queue_name(lane, settings.outbox) for lane in lanes],
                environ=environ,
                log=folder / "workers.log",
                kills=kills,
            )
            for processes, lanes in shared_out(settings.worker_processes)
        )
        for pool in pools:
            stack.enter_context(pool)
        yield OutboxSide(parts, planner, ringer, thief, pools)


def shared_out(workers: int) -> list[tuple[int, list[str]]]:
    """Return how many processes serve which lanes.

    The keyless tool has a process of its own, since a call of it that a neighbour's death cuts off
    would be a person's turn. A single worker serves all.
    """
    own = LANES[KEYLESS]
    others = sorted(lane for lane in LANES.values() if lane != own)
    if workers == 1:
        return [(1, [*others, own])]
    return [(workers - 1, others), (1, [own])]


def _worker_environ(settings: Settings, provider_url: str, fault_plan: Path) -> dict[str, str]:
    """Return the environment of the worker processes; URLs stand on no command line."""
    own = settings.model_copy(update={"tools": (TOOLS_PLACE,), "log_format": "json"})
    return {
        **child_environ(own),
        "RQ_REDIS_URL": revealed(settings.redis_url),
        PROVIDER_VARIABLE: provider_url,
        PLAN_VARIABLE: str(fault_plan),
    }
