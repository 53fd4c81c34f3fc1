"""Runs a bus in memory: the simulator's world over the shipped procedures, one step at a time.

Decides when what is due is done, and where a worker that is to crash dies. What runs next is
decided by the simulator, what happens then by the shipped core. User code is called with the store
unlocked, so that it may put. Composition.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from ...outbox.commands import MarkSend, Record
from ...outbox.defaults import Limits
from ...outbox.errors import ConfigError, ProtocolViolation
from ...sim.process import Forest
from ...sim.running import LONGEST_RUN, next_plain_choice, waited_for
from ...sim.tables import served_name
from ...sim.world import Choice, World
from ...sim.world_spec import WorldSpec
from ...sim.world_values import Task
from ...tool_adapters.contract import Call
from ...tool_adapters.registry import Tools
from ...workers.commands import Exchange, Fetch
from .answers import Answers
from .ledger import Ledger
from .tools import INSIDE, BusDriver, BusTools

WORKER = "worker"
RECONCILER = "reconciler"
STEPS_PER_ROW = 1000
"""Steps of a drain for each row, beyond which the bus counts as stuck."""
CRASH_POINTS = ("before_send", "after_mark", "after_effect", "before_settle")
"""In order: claimed and built; marked, nothing on the wire; the tool has answered; the outcome is
known, not stored. The names are those of a process's fault points."""


class BusWorld(World):
    """The simulator's world with a user's tools in it."""

    def __init__(
        self, registry: Tools, limits: Limits, seed: int, ask: Callable[[Any], Any]
    ) -> None:
        self._registry = registry
        self._ask = ask
        spec = WorldSpec((), (WORKER,), (RECONCILER,), limits, throttled=False)
        draw = random.Random(seed).random
        super().__init__(spec, draw=draw, forest=Forest(remember=False))

    def open_tools(self) -> BusTools:
        """Return the user's tools."""
        return BusTools(self._registry, self.clock)

    def ask(self, process: str, command: Any, call: Call) -> Any:
        """Ask the user's adapters, as a worker process does."""
        return self._ask(command)

    def _declare(self) -> dict[str, int]:
        contract_id = self.store.tables.contract_id
        served = self._registry.served().items()
        return {served_name(*name): contract_id(contract) for name, contract in served}


class Engine:
    """One bus at work. Its methods may be called by several threads; one at a time drains."""

    def __init__(
        self, registry: Tools, limits: Limits, seed: int, answers: Answers, now: datetime
    ) -> None:
        self.ledger = Ledger()
        self.registry = registry
        self._limits = limits
        self._answers = answers
        self._driver: BusDriver | None = None
        self._lock = threading.RLock()
        self._at_work = threading.Lock()
        self._crashes: list[tuple[str, str | None]] = []
        self.world = BusWorld(registry, limits, seed, lambda command: self.driver.ask(command))
        self.world.wait((now - self.world.clock.now).total_seconds())
        self.bind: Callable[[], None] | None = None
        """Binds instead of the world, where a plan has callbacks."""
        self.tell: Callable[[], bool] = lambda: False
        self.tell_at: Callable[[], Iterator[datetime]] = lambda: iter(())
        self.before_work: Callable[[], None] = lambda: None

    @property
    def driver(self) -> BusDriver:
        """The driver, whose lifespans open at the first call."""
        if self._driver is None:
            self._driver = BusDriver(self.registry, self._limits, self._answers, self.ledger)
        return self._driver

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return self.world.clock.now

    def close(self) -> None:
        """Close the lifespans, and end the threads of tools."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None

    @contextmanager
    def locked(self) -> Iterator[World]:
        """Look at the store, or change it, while nobody else does."""
        with self._lock:
            yield self.world

    # -- running -----------------------------------------------------------------------------------

    @contextmanager
    def working(self) -> Iterator[None]:
        """Be the one that drains. Raises ConfigError inside a tool's function or a callback."""
        if INSIDE.get():
            raise ConfigError(
                "the bus is at work: it is what called this function",
                next_step="put and get here; drain, advance and wait in the test",
            )
        with self._at_work:
            self.before_work()
            yield

    def drain(self) -> None:
        """Do everything that is due now; the caller is `working`."""
        with self._lock:
            longest = LONGEST_RUN + STEPS_PER_ROW * len(self.world.store.tables.rows)
        for _ in range(longest):
            if not self.take_step():
                return
        raise ProtocolViolation("the bus does not come to rest", next_step="ackbox doctor")

    def take_step(self) -> bool:
        """Do one thing that is due now; False where nothing is."""
        with self._lock:
            choice = next_plain_choice(self.world)
        if choice is not None and choice[0] != "wait":
            self._take(choice)
            return True
        return self.tell()

    def move_to(self, moment: datetime) -> None:
        """Move the clock on, stopping to work wherever something is due."""
        while True:
            self.drain()
            following = self.next_moment()
            if following is None or following > moment:
                break
            self.pass_time(following)
        self.pass_time(moment)
        self.drain()

    def next_moment(self) -> datetime | None:
        """Return when something is due next by itself, None where nothing ever is."""
        with self._lock:
            now = self.now
            moments = [one for one in waited_for(self.world) if one > now]
            moments += [one for one in self.tell_at() if one > now]
        return min(moments, default=None)

    def pass_time(self, moment: datetime) -> None:
        """Let time pass; nothing may be due before."""
        with self._lock:
            seconds = (moment - self.now) / timedelta(seconds=1)
            if seconds > 0:
                self.world.wait(seconds)

    # -- one step ----------------------------------------------------------------------------------

    def _take(self, choice: Choice) -> None:
        verb, who = choice[0], choice[1]
        if verb in ("step", "arrive", "answer") and self._dies(self._task_of(verb, who)):
            self._apply(("crash", WORKER))
        elif verb == "arrive":
            flight = self.world.flights[who]
            self._answer(self.driver.effect(flight.claim, flight.request, self.now), choice)
        elif verb == "step" and isinstance(command := self.world.tasks[who].node.command, Fetch):
            self._answer(self.driver.read(command.claim, command.request), choice)
        elif choice == ("start", "bind") and self.bind is not None:
            self.bind()
        elif verb == "claim":
            self._claim(who)
        else:
            self._apply(choice)

    def _answer(self, evidence: Any, choice: Choice) -> None:
        tools = self.world.tools
        assert isinstance(tools, BusTools)
        tools.answer = evidence
        self._apply(choice)

    def _claim(self, who: str) -> None:
        """Give a worker a token of the first lane in which something is ready."""
        with self._lock:
            lanes = self.world.store.reaper.ready_lanes(LONGEST_RUN)
            self.world.tokens = (lanes[0].lane,)
            self.world.apply(("claim", who))

    def _apply(self, choice: Choice) -> None:
        with self._lock:
            self.world.apply(choice)

    # -- crashes -----------------------------------------------------------------------------------

    def crash(self, point: str, tool: str | None) -> None:
        """Have a worker die when its next attempt comes to a point."""
        if point not in CRASH_POINTS:
            raise ConfigError(
                f"a worker does not crash at {point!r}",
                next_step=f"name one of: {', '.join(CRASH_POINTS)}",
            )
        self._crashes.append((point, tool))

    def _task_of(self, verb: str, who: str) -> Task | None:
        name = who if verb == "step" else self.world.flights[who].task
        return self.world.tasks.get(name)

    def _dies(self, task: Task | None) -> bool:
        """Return whether the task's process is to die now, and forget that it was to."""
        if task is None or task.process != WORKER or not self._crashes:
            return False
        point, tool = self._point_of(task), task.node.command.claim.tool
        for planned in self._crashes:
            if planned[0] == point and planned[1] in (None, tool):
                self._crashes.remove(planned)
                return True
        return False

    def _point_of(self, task: Task) -> str | None:
        command = task.node.command
        if isinstance(command, Exchange):
            if task.flight is None:
                return "after_mark"
            answered = self.world.flights[task.flight].answer is not None
            return "after_effect" if answered else None
        if isinstance(command, MarkSend):
            return "before_send"
        return "before_settle" if isinstance(command, Record) else None
