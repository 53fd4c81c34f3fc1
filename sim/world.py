"""A virtual world: the shipped procedures, the in-memory outbox, virtual tools, and all faults.

The world is a state and a list of things that may happen to it, one at a time (`apply`). Nothing
happens by itself: no step is taken, no request arrives and no time passes unless it is chosen. What
a choice means stands in `driver` (the procedures' commands) and `planning` (planners and people);
which choices there are stands in `choices`, and who chooses is up to a trace, a seed or a search.

    world = World(spec)
    world.apply(("put", "step-1", "tickets", Frozen(title="x")))
    fork = world.snapshot()          # cheap, immutable, any number of them
    world.apply(("claim", "w1", "step-1"))
    world.restore(fork)
    world.key()                      # hashable; equal keys may be treated as one state

A choice is a tuple: the verb, then its fields in the order of `verbs.VERBS`; missing ones at the
end are None. `apply` raises `Impossible` for what cannot happen now, and changes nothing then.
May import the pure core, `workers` and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import UUID

from ..outbox.identity import DEFAULT_NAMESPACE
from ..tool_adapters.contract import Call
from ..workers.throttle import Throttle
from . import driver, planning, wire
from .clock import BEGINNING, VirtualClock
from .lives import PASS_ARGUMENTS
from .local_steps import ask_adapter, local_steps
from .process import Forest
from .store import MemoryStore
from .tables import served_name
from .tools import VirtualTools
from .world_spec import WorldSpec
from .world_values import Counts, Flight, Impossible, Process, Task, altered

Choice: TypeAlias = tuple[Any, ...]


class World:
    """One world and its forks. `draw` returns the random shares of back-offs."""

    def __init__(
        self,
        spec: WorldSpec,
        *,
        draw: Callable[[], float] = lambda: 1.0,
        forest: Forest | None = None,
    ) -> None:
        self.spec = spec
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock, spec.limits, draw)
        self.tools = self.open_tools()
        self.forest = forest or Forest()
        self.draw = draw
        self.processes: dict[str, Process] = {}
        self.tasks: dict[str, Task] = {}
        self.flights: dict[str, Flight] = {}
        self.tokens: tuple[str, ...] = ()
        """Wake tokens by lane. The order is not kept by anybody, and losing one is harmless."""
        self.broken: frozenset[tuple[str, str]] = frozenset()
        """(tool, command) whose adapter raises now."""
        self.plan: dict[str, str] = {}
        """The plan's step that each intent stands for: what the planner means, not what it put."""
        self.allowed = Counts()
        """Effects of a step that somebody asked for knowingly, or caused by a false statement."""
        self.bound_log: tuple[tuple[int, str], ...] = ()
        """What the planner was handed: (seq, state), in order."""
        self.sent: frozenset[tuple[int, int]] = frozenset()
        """(seq, fence) of every request that left a process."""
        self.throttles: tuple[tuple[str, Throttle], ...] = ()
        """Budget and breaker by tool; stays empty where nothing asks them."""
        self.tally = Counts()
        self.journal: list[tuple[Any, ...]] = []
        """Facts of the last choice, for monitors: ("left", flight), ("bound", seq) and such."""
        self.observers: list[Callable[[World, Choice], None]] = []
        self._contracts = self._declare()
        for number, name in enumerate((*spec.workers, *spec.reconcilers), start=1):
            self._born(name, number, 1)
        for name in PASS_ARGUMENTS:
            self.processes[name] = Process(name, None)
        self.store.tables.dirty.clear()

    def open_tools(self) -> VirtualTools:
        """Return the tools of this world; a world of other tools answers with those."""
        return VirtualTools(self.spec.tools, self.clock)

    def ask(self, process: str, command: Any, call: Call) -> Any:
        """Ask a tool's adapter on behalf of a process; nothing shared is touched by it."""
        return ask_adapter(self, process, command, call)

    # -- forks -----------------------------------------------------------------------------------

    def snapshot(self) -> tuple[Any, ...]:
        """Return a value from which `restore` makes the world what it is now."""
        own = (
            self.processes.copy(), self.tasks.copy(), self.flights.copy(), self.plan.copy(),
            self.allowed.copy(), self.tally.copy(),
        )  # fmt: skip
        plain = (self.tokens, self.broken, self.bound_log, self.sent, self.throttles)
        return (self.clock.now, self.store.snapshot(), self.tools.snapshot(), own, plain)

    def restore(self, snapshot: tuple[Any, ...]) -> None:
        """Go back to a snapshot, which stays usable."""
        self.clock.now, store, tools, own, plain = snapshot
        self.store.restore(store)
        self.tools.restore(tools)
        (
            self.processes, self.tasks, self.flights, self.plan, self.allowed, self.tally,
        ) = [value.copy() for value in own]  # fmt: skip
        self.tokens, self.broken, self.bound_log, self.sent, self.throttles = plain
        self.journal = []
        self.store.tables.dirty.clear()

    def key(self) -> Hashable:
        """Return what tells this state from others: no history, times only as passed or not."""
        now = self.clock.now
        tasks = [
            (t.name, t.node.number, t.flight, t.lost, t.send_by is None or t.send_by < now)
            for t in self.tasks.values()
        ]
        flights = [(f.name, f.answer, f.awaited) for f in self.flights.values()]
        processes = [(p.name, p.incarnation, p.alive, p.frozen) for p in self.processes.values()]
        return (
            self.store.key(), self.tools.key(), tuple(sorted(tasks, key=_first)),
            tuple(sorted(flights, key=_first)), tuple(processes), self.broken,
            tuple(sorted(self.allowed.items())), self.throttles,
        )  # fmt: skip

    # -- what may happen -------------------------------------------------------------------------

    def apply(self, choice: Choice) -> None:
        """Let one thing happen. Raises Impossible where it cannot."""
        self.journal = []
        tables = self.store.tables
        tables.dirty.clear()
        tables.recent.clear()
        handler = HANDLERS.get(choice[0])
        if handler is None:
            raise Impossible(f"there is no event {choice[0]!r}")
        handler(self, *choice[1:])
        self.tally["steps"] += 1
        for observe in self.observers:
            observe(self, choice)

    # -- processes and tasks -----------------------------------------------------------------------

    def _declare(self) -> dict[str, int]:
        tables = self.store.tables
        return {
            served_name(adapter.contract.tool, adapter.contract.version): tables.contract_id(
                adapter.contract
            )
            for adapter in self.tools.adapters.values()
        }

    def knows(self, process: str, tool: str) -> bool:
        """Return whether a process has the tool's adapter."""
        return tool in self.tools.adapters and tool not in self.spec.unserved.get(process, ())

    def contracts_of(self, process: str) -> dict[str, int]:
        """Return the contract ids that a process stamps on what it claims."""
        hidden = self.spec.unserved.get(process, ())
        if not hidden:
            return self._contracts
        return {k: v for k, v in self._contracts.items() if k.partition("@")[0] not in hidden}

    def _born(self, name: str, number: int, incarnation: int) -> None:
        owner = UUID(int=number * 1000 + incarnation)
        self.processes[name] = Process(name, owner, incarnation)
        self.register(name, owner)

    def register(self, name: str, owner: UUID) -> None:
        """Write the heartbeat row of a process's incarnation."""
        role = "worker" if name in self.spec.workers else "reconciler"
        self.store.claims.register(owner, self.contracts_of(name), role)

    def process(self, name: str) -> Process:
        """Return a process by name."""
        found = self.processes.get(name)
        if found is None:
            raise Impossible(f"there is no process {name!r}", "who")
        return found

    def running(self, name: str) -> Process:
        """Return a process that may take a step."""
        found = self.process(name)
        if not found.runs:
            raise Impossible(f"{name} is {'frozen' if found.alive else 'dead'}", "who")
        return found

    def task(self, who: str) -> Task:
        """Return a task by its name, or the one task of a process."""
        found = self.tasks.get(who)
        if found is not None:
            return found
        own = [task for task in self.tasks.values() if task.process == who]
        if len(own) != 1:
            raise Impossible(f"{who} runs {len(own)} tasks, not one", "who")
        return own[0]

    def begin(self, process: str, role: str, name: str, *arguments: Any, **more: Any) -> None:
        """Start a procedure; it runs to its first command that touches anything shared.

        A procedure that ended on the way is forgotten at once.
        """
        node = local_steps(self, process, self.forest.start(role, *arguments))
        if node.ended:
            self.journal.append(("ended", name, node.result))
            return
        self.tasks[name] = Task(name, process, role, node, **more)

    def go_on(self, name: str, reply: Any) -> None:
        """Hand a reply to a task, which goes on to its next shared command or is forgotten."""
        task = self.tasks[name]
        node = local_steps(self, task.process, self.forest.advance(task.node, reply))
        if node.ended:
            del self.tasks[name]
            self.journal.append(("ended", name, node.result))
            return
        self.tasks[name] = altered(task, node=node, flight=None, lost=False)

    def flight(self, who: str) -> Flight:
        """Return a request by its name, or the latest of a task or process."""
        if who in self.flights:
            return self.flights[who]
        own = [f for f in self.flights.values() if f.task == who or f.task.startswith(f"{who}:")]
        if not own:
            raise Impossible(f"no request of {who} is on its way", "who")
        return own[-1]

    # -- time ------------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Let time pass: exchanges meet their limits, lost requests die, living processes beat."""
        if not seconds > 0:
            raise Impossible("time only moves forwards", "seconds")
        until = self.clock.now + timedelta(seconds=seconds)
        for flight in list(self.flights.values()):
            limit = timedelta(seconds=self._contract(flight).call_limit_seconds)
            if flight.awaited and flight.left_at + limit <= until:
                wire.cut(self, flight.name)
            if flight.name in self.flights and flight.answer is None and flight.dies_at <= until:
                wire.lose(self, flight.name)
        self.clock.now = until
        for process in self.processes.values():
            if process.runs and process.owner is not None:
                self.store.claims.beat(process.owner)

    def _contract(self, flight: Flight) -> Any:
        return self.tools.adapters[flight.claim.tool].contract

    def seconds_until(self, moment: Any) -> float:
        """Return how long it is until a moment; never negative."""
        seconds: float = (moment - self.clock.now).total_seconds()
        return max(seconds, 0.0)

    # -- names -----------------------------------------------------------------------------------

    def row_of(self, step: str, generation: int | None = None) -> int:
        """Return the seq of a step's live row, or of one generation."""
        tables = self.store.tables
        seqs = tables.names.get((DEFAULT_NAMESPACE, step))
        if seqs is None:
            raise Impossible(f"nothing is stored under {step!r}", "step")
        for seq in seqs:
            row = tables.rows[seq]
            if row.live if generation is None else row.generation == generation:
                return seq
        raise Impossible(f"{step} has no generation {generation}", "generation")

    def plan_step(self, seq: int) -> str:
        """Return the plan's step that a row stands for."""
        name = self.store.tables.intents[seq].intent_id
        return self.plan.get(name, name)

    def rows_by_step(self) -> Iterator[tuple[str, int]]:
        """Yield (intent_id, seq) of every row."""
        for seq, intent in self.store.tables.intents.items():
            yield intent.intent_id, seq

    def counters(self) -> dict[str, int]:
        """Return every counter of the world."""
        tally = self.tally
        tally["external_commits"] = self.tools.happened
        tally["outbox_rows"] = len(self.store.tables.rows)
        tally["requests"] = self.tools.requests
        tally["undone"] = self.tools.undone
        tally["seconds"] = int((self.clock.now - BEGINNING).total_seconds())
        return dict(tally)


def _first(pair: tuple[Any, ...]) -> Any:
    return pair[0]


def _wait(world: World, seconds: float) -> None:
    world.wait(seconds)


HANDLERS: dict[str, Callable[..., None]] = {**driver.HANDLERS, **planning.HANDLERS, "wait": _wait}
