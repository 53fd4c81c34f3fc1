"""The bus in memory, as a test types it: the shipped core, a virtual clock, real tool functions.

Decides nothing: planners stand on `links`, work is done by `engine`, callbacks by `callbacks`.
Composition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from ...outbox.defaults import DEFAULTS, Limits
from ...outbox.errors import ConfigError
from ...outbox.identity import DEFAULT_NAMESPACE
from ...outbox.intent import StepName, TypedName
from ...outbox.told import ToldOutcome
from ...outbox.type_variables import R
from ...planner.plan import Plan, tool_name
from ...planner.shell.async_planner import AsyncPlanner
from ...planner.shell.operations import Operations
from ...planner.shell.planner import Planner
from ...tool_adapters.contract import Adapter
from ...tool_adapters.registry import Tools
from .answers import Answers, Script
from .bounds import Sessions
from .callbacks import MemoryCallbacks
from .engine import Engine
from .ledger import Effect
from .links import AsyncMemoryLink, MemoryLink, MemoryParts
from .people import People
from .rows import MemorySteps, MemoryUndoOrders
from .staging import Transactions
from .tools import checked_tools


class MemoryBus:
    """A whole bus without a server: outbox, worker, reconciler, consumer and your tools.

    `planner` and `async_planner` are what an application is given in production. Nothing happens
    by itself: `drain` does what is due, `advance` lets time pass, and a planner's `wait` does both
    at once, in virtual time. The tools' functions really run, in this process, unless `answer`
    says what comes of them. The same seed gives the same run.
    """

    planner: Planner
    """The planner for threads; `on=` takes a Session or Connection of any engine."""
    async_planner: AsyncPlanner
    """The planner for event loops; `on=` takes an AsyncSession or AsyncConnection."""
    people: People
    """What people say about steps, and how gates are decided."""

    def __init__(
        self,
        tools: Tools | Adapter | Iterable[Adapter],
        plan: Plan | None = None,
        *,
        limits: Limits = DEFAULTS,
        seed: int = 0,
        namespace: str = DEFAULT_NAMESPACE,
        session_factory: Callable[[], Any] | None = None,
        async_session_factory: Callable[[], Any] | None = None,
        now: datetime | None = None,
    ) -> None:
        """Open nothing: lifespans open at the first call of a tool, and `close` closes them.

        The session factories give `bound.session` of `def` and of `async def` on_bound callbacks.
        `now` is what the virtual clock shows first, the present by default.
        """
        registry = checked_tools(_registry(tools), limits)
        self._answers = Answers()
        self._engine = Engine(registry, limits, seed, self._answers, now or datetime.now(UTC))
        store = self._engine.world.store
        self._transactions = Transactions(store, self._locked)
        self._engine.before_work = self._transactions.refuse_changes
        operations = Operations(MemorySteps(store), MemoryUndoOrders(store), limits, namespace)
        parts = MemoryParts(operations, self._engine, self._transactions)
        link = MemoryLink(self._engine, self._transactions)
        self.planner = Planner._over(parts, link)
        self.async_planner = AsyncPlanner._over(parts, AsyncMemoryLink(link))
        self.people = People(self._engine, operations)
        sessions = Sessions(session_factory, async_session_factory)
        self._callbacks = MemoryCallbacks(self._engine, plan or Plan(), sessions, limits)

    def __repr__(self) -> str:
        return f"MemoryBus(namespace={self.planner.namespace!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the tools' lifespans and the callbacks' loop."""
        self._callbacks.close()
        self._engine.close()

    def _locked(self, work: Callable[[], None]) -> None:
        with self._engine.locked():
            work()

    # -- what happens to it ------------------------------------------------------------------------

    def answer(
        self,
        tool: object,
        answer: Any,
        times: int | None = 1,
        *,
        took_effect: bool | None = None,
    ) -> None:
        """Say what comes of a tool's next sends, instead of running its function.

        `answer` is an error to be raised, an outcome, a value to be returned, or a function that
        runs in the tool's place; for a tool that speaks HTTP an HttpAnswer. Answers are taken in
        order; `times=None` stands for all sends that have no other. `took_effect` says what really
        happened where the answer leaves it open; None: nobody knows, and no probe finds out.
        """
        name = tool_name(tool)
        if self._engine.registry.latest(name) is None:
            raise ConfigError(f"the bus has no tool {name}", next_step="give it to MemoryBus(...)")
        self._answers.add(name, Script(answer, took_effect), times)

    def crash(self, point: str, tool: object = None) -> None:
        """Have the worker die when its next attempt, of that tool or of any, comes to a point.

        before_send: claimed, nothing sent. after_mark: marked, nothing on the wire. after_effect:
        the tool has answered, nobody has read it. before_settle: read, and not stored.
        """
        self._engine.crash(point, None if tool is None else tool_name(tool))

    # -- what it does ------------------------------------------------------------------------------

    def drain(self) -> None:
        """Do everything that is due now, the plan's callbacks included; no time passes."""
        with self._engine.working():
            self._engine.drain()

    def advance(self, seconds: float) -> None:
        """Let time pass, and do what becomes due on the way: leases lapse, unknowns are looked at.

        Raises ValueError for a time that runs backwards.
        """
        if not seconds >= 0:
            raise ValueError("time does not run backwards")
        with self._engine.working():
            self._engine.move_to(self._engine.now + timedelta(seconds=seconds))

    # -- what is known -----------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """What the virtual clock shows."""
        return self._engine.now

    def told(self, name: TypedName[R]) -> ToldOutcome[R] | None:
        """Return what the planner would be told of a step now; nothing is drained for it."""
        return self.planner.get(name)

    def effects(self, tool: object = None) -> list[Effect]:
        """Return every effect at the tools, or at one, in order: the truth, not what is told.

        A tool that declares a key has one effect for each key, as it promises.
        """
        return self._engine.ledger.effects(None if tool is None else tool_name(tool))

    def history(self, name: StepName) -> list[str]:
        """Return the names of everything that happened to a step, in order."""
        return self.people.history(name)


def _registry(tools: Tools | Adapter | Iterable[Adapter]) -> Tools:
    if isinstance(tools, Tools):
        return tools
    return Tools(tools) if isinstance(tools, Adapter) else Tools(*tools)
