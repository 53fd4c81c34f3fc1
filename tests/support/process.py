"""One worker process's parts inside the test's own process, and tools that count their effects."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ackbox.outbox.commands import MarkSend, Record
from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.errors import StoreUnavailable
from ackbox.outbox.intent import Terms, content_of, draft_of
from ackbox.outbox.shell.attempt_store import AttemptStore
from ackbox.outbox.shell.bell import Bell
from ackbox.outbox.shell.claim_store import Incarnation
from ackbox.tool_adapters.function import FunctionTool, tool
from ackbox.tool_adapters.registry import Tools
from ackbox.workers.shell.lane_drainer import ProcessDrainer
from ackbox.workers.shell.runner import Runner
from ackbox.workers.shell.slots import LaneSlots
from ackbox.workers.shell.tool_driver import ToolDriver

from .seed import Seeded

CALL_LIMIT_SECONDS = 300.0
"""Of tools whose limit no test waits for."""


class Counting(AttemptStore):
    """The real store, which counts its batches and can be told to be away."""

    away: Callable[[], bool] = staticmethod(lambda: False)
    batches: Counter[str]

    def mark(self, batch: Sequence[MarkSend], owner: uuid.UUID) -> Any:
        """Mark, and count the batch."""
        self.batches["mark"] += 1
        return super().mark(batch, owner)

    def record(self, batch: Sequence[Record]) -> Any:
        """Record, unless the store is away."""
        self.batches["record"] += 1
        if self.away():
            raise StoreUnavailable("away", next_step="wait")
        return super().record(batch)


class Process:
    """One worker process's parts, in this process."""

    def __init__(self, url: str, tools: list[Any], slots: int = 8) -> None:
        self.outbox = Seeded(url)
        self.owner = uuid.uuid4()
        self.doubtful = False
        registry = Tools(*tools)
        contracts = self.outbox.claims.served_ids(registry.served())
        self.lanes = ("default", "slow", *registry.lanes())
        self.outbox.claims.register(
            Incarnation(self.owner, "worker", "here", 1, tuple(contracts), self.lanes)
        )
        # Nobody beats for this process: it lives for as long as a test does not say otherwise.
        self.outbox.sql("UPDATE {schema}.worker SET beat_at = beat_at + interval '5 minutes'")
        self.store = Counting(self.outbox.database, self.outbox.statements, DEFAULTS)
        self.store.batches = Counter()
        self.slots = LaneSlots(slots)
        self.bell = Bell(None)
        self.tools = ToolDriver(registry, DEFAULTS)
        self.runner = Runner(
            self.store, self.tools, self.slots, self.bell,
            owner=self.owner, is_doubtful=lambda: self.doubtful,
            threads=slots * len(set(self.lanes)),
        )  # fmt: skip
        self.drainer = ProcessDrainer(
            self.outbox.claims, self.runner, self.slots,
            outbox="default", lanes=self.lanes, owner=self.owner, contracts=contracts,
        )  # fmt: skip

    def put(self, tool_name: str, count: int, lane: str = "default", **args: Any) -> list[int]:
        """Put calls of a tool and return their seqs."""
        drafts = [
            draft_of(
                content_of(tool_name, 1, lane, {**args, "n": n}), Terms(),
                intent_id=f"{tool_name}-{lane}-{n}",
            )
            for n in range(count)
        ]  # fmt: skip
        answers = self.outbox.run(lambda c: self.outbox.planner.put(c, drafts))
        return [answer.seq for answer in answers]  # type: ignore[union-attr]

    def drain(self, lane: str = "default", limit: int = 100) -> int:
        """Run what a wake token runs."""
        return self.drainer.drain("default", lane, limit, 2.0)

    def states(self) -> Counter[str]:
        """Return how many rows are in each state."""
        rows = self.outbox.sql(
            "SELECT state, count(*) AS rows FROM {schema}.intent_state GROUP BY state"
        )
        return Counter({row["state"]: row["rows"] for row in rows})

    def close(self) -> None:
        """End the threads."""
        self.drainer.stop_claiming()
        self.runner.close()
        self.bell.close()
        self.tools.close()
        self.outbox.database.dispose()


def counting_tool(name: str = "work") -> tuple[FunctionTool, list[int]]:
    """Return a tool, and the list of effects that it has had."""
    effects: list[int] = []

    @tool(name, timeout_seconds=CALL_LIMIT_SECONDS, settle_seconds=1)
    def work(_call: Any, *, n: int) -> int:
        effects.append(n)
        return n

    return work, effects


def waiting_tool(
    gate: threading.Event,
    name: str = "wait",
    timeout_seconds: float = CALL_LIMIT_SECONDS,
    lane: str = "default",
) -> tuple[FunctionTool, list[int]]:
    """Return a tool whose effect happens at once and whose answer waits for the gate."""
    effects: list[int] = []

    @tool(name, timeout_seconds=timeout_seconds, settle_seconds=1, lane=lane)
    def wait(_call: Any, *, n: int) -> int:
        effects.append(n)
        gate.wait(CALL_LIMIT_SECONDS)
        return n

    return wait, effects
