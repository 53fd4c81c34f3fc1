"""One workload in one world: requests travel by a schedule, everything else goes on by itself.

A script puts intents, delivers tokens, kills and stalls processes; between its acts the world runs
on. Every request meets the fault and the latency that the schedule holds for that try of its
intent, whoever sends it. May import `sim`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ...outbox.defaults import DEFAULTS, Limits
from ...workers.commands import Fetch
from ..invariants import Monitors
from ..process import Forest
from ..records import Frozen
from ..running import carry_out, next_plain_choice, told_word, unfinished
from ..tool_specs import ToolSpec
from ..tools import HAPPENS
from ..world import Choice, World
from ..world_spec import WorldSpec
from ..world_values import Flight, Impossible, altered
from .draws import share, stream
from .schedule import ERROR, LOST, TIMEOUT, Schedule

TOOL = "tool"
LONGEST_RUN = 10_000
REFUSAL = "too_many_requests"
"""How the virtual tool says that it did nothing: the one answer every classifier trusts."""


@dataclass(frozen=True, slots=True)
class Trip:
    """What the schedule holds for one request."""

    number: int
    """Which try of its intent it is."""
    fault: str
    due_at: datetime


class Case:
    """One world under one schedule. `tool` is the tool under test, `others` are its company."""

    def __init__(
        self,
        tool: Mapping[str, Any],
        schedule: Schedule,
        *,
        limits: Limits = DEFAULTS,
        others: tuple[ToolSpec, ...] = (),
        intents: int = 0,
        throttled: bool = False,
    ) -> None:
        self.schedule = schedule
        self.planned = intents
        """How many intents a script has to put."""
        tools = (ToolSpec(TOOL, **tool), *others)
        spec = WorldSpec(tools, limits=limits, throttled=throttled)
        jitter = stream(schedule.seed, "jitter:w1")
        self.world = World(spec, draw=lambda: next(jitter), forest=Forest(remember=False))
        self.monitors = Monitors(self.world)
        self.intents: list[str] = []
        """Steps that were put, in order."""
        self.deliveries = 0
        self.reads = 0
        self.complaints: list[str] = []
        """What the script itself found to be otherwise than it has to be."""
        self.fates: dict[tuple[str, int], str] = {}
        """What becomes of (intent, try) at the tool instead of the plain effect."""
        self.refusal = REFUSAL
        """What the tool answers where the schedule says `error`."""
        self.over_limit = False
        """The tool's answers are larger than the transport keeps."""
        self._trips: dict[str, Trip] = {}
        self._tries: Counter[str] = Counter()

    # -- acts of a script ------------------------------------------------------------------------

    def put(self, intent: int, **terms: Any) -> str:
        """Store an intent and return its step's name."""
        step = f"intent-{intent}"
        values = [terms.get(name) for name in ("held_for", "deadline_seconds")]
        self.apply(("put", step, TOOL, Frozen(title=step), *values))
        self.intents.append(step)
        return step

    def deliver(self, worker: str, step: str) -> bool:
        """Hand a worker a wake token for a step; returns whether it got the row."""
        before = self.world.tally["claims"]
        self.deliveries += 1
        self.apply(("claim", worker, step))
        return self.world.tally["claims"] > before

    def apply(self, choice: Choice) -> None:
        """Let one thing happen; a request that a script moves meets its schedule too."""
        choice = self._as_scheduled(choice)
        task = self.world.tasks.get(choice[1]) if choice[0] == "step" else None
        self.reads += task is not None and isinstance(task.node.command, Fetch)
        self.world.apply(choice)
        for name in [name for name in self.world.flights if name not in self._trips]:
            self._trips[name] = self._trip(self.world.flights[name])

    def _as_scheduled(self, choice: Choice) -> Choice:
        flight = self.world.flights.get(choice[1]) if len(choice) == 2 else None
        if flight is None or choice[0] not in ("arrive", "answer"):
            return choice
        trip = self._trips[flight.name]
        if choice[0] == "arrive":
            return self._arrival(flight, trip)
        return ("cut" if trip.fault == TIMEOUT else "answer", flight.name)

    def carry(self, verb: str, **fields: Any) -> None:
        """Carry out a composite event of a trace, such as `run` or `pass`."""
        carry_out(self.world, {"do": verb, **fields}, self.apply)

    def refused(self, code: str, event: str, *fields: Any) -> None:
        """Do what has to be refused with a code; anything else is a complaint."""
        try:
            self.apply(("refused", event, code, *fields))
        except Impossible as otherwise:
            self.complaints.append(f"{event} {fields[0]}: {otherwise}")

    def expect(self, step: str, state: str, told: str | None = None) -> None:
        """Complain unless a step's live row stands so, and is told so."""
        found, word = self.state(step), told_word(self.world, step)
        if found != state:
            self.complaints.append(f"{step} is {found} where it has to be {state}")
        if told is not None and word != told:
            self.complaints.append(f"{step} is told {word} where it has to be {told}")

    def draw(self, label: str) -> float:
        """Return the schedule's share of a label."""
        return share(self.schedule.seed, label)

    # -- the world goes on -----------------------------------------------------------------------

    def settle(self) -> None:
        """Run on until the world is quiet."""
        for _ in range(LONGEST_RUN):
            choice = self.next_choice()
            if choice is None:
                return
            self.apply(choice)
        self.complaints.append("the world does not come to rest")

    def run_for(self, seconds: float) -> None:
        """Run on until some seconds have passed."""
        end = self.world.clock.now + timedelta(seconds=seconds)
        for _ in range(LONGEST_RUN):
            choice = self.next_choice()
            left = (end - self.world.clock.now).total_seconds()
            if choice is None or (choice[0] == "wait" and choice[1] >= left):
                if left > 0:
                    self.apply(("wait", left))
                return
            self.apply(choice)

    def next_choice(self) -> Choice | None:
        """Return what happens next, None where the world is quiet."""
        travel = next(self._travels(), None)
        if travel is not None:
            return travel
        choice = next_plain_choice(self.world, travels=False)
        if choice is not None and choice[0] != "wait":
            return choice
        moments = [m for m in self._moments() if m > self.world.clock.now]
        waits = [(m - self.world.clock.now).total_seconds() for m in moments]
        waits += [choice[1]] if choice is not None else []
        return ("wait", min(waits)) if waits else None

    def _travels(self) -> Iterator[Choice]:
        world = self.world
        for flight in world.flights.values():
            trip = self._trips[flight.name]
            if flight.answer is None and trip.due_at <= world.clock.now:
                yield self._arrival(flight, trip)
            elif flight.answer is not None and self._is_heard(flight):
                yield ("answer", flight.name)

    def _arrival(self, flight: Flight, trip: Trip) -> Choice:
        if trip.fault == LOST:
            return ("lose", flight.name)
        return ("arrive", flight.name, self.fate_of(flight, trip))

    def fate_of(self, flight: Flight, trip: Trip) -> str:
        """Return what becomes of a request at the tool."""
        if trip.fault == ERROR:
            return self.refusal
        return self.fates.get((flight.claim.intent_id, trip.number), HAPPENS)

    def _is_heard(self, flight: Flight) -> bool:
        task = self.world.tasks.get(flight.task)
        if self.over_limit and flight.answer is not None and flight.answer.body is not None:
            large = replace(flight.answer, body=None, over_limit=True)
            self.world.flights[flight.name] = altered(flight, answer=large)
        return task is not None and self.world.processes[task.process].runs

    def _moments(self) -> Iterator[datetime]:
        """Yield when requests arrive, and when their callers give up."""
        for flight in self.world.flights.values():
            if flight.answer is None:
                yield self._trips[flight.name].due_at
            if flight.awaited:
                contract = self.world.tools.adapters[flight.claim.tool].contract
                yield flight.left_at + timedelta(seconds=contract.call_limit_seconds)

    def _trip(self, flight: Flight) -> Trip:
        intent = flight.claim.intent_id
        self._tries[intent] += 1
        number = self._tries[intent]
        latency = timedelta(seconds=self.schedule.latency_seconds(intent, number))
        out = self.schedule.is_out(self.world.clock.elapsed_seconds)
        fault = self.schedule.outage if out else self.schedule.fault(intent, number)
        return Trip(number, fault, flight.left_at + latency)

    # -- what a check looks at -------------------------------------------------------------------

    def state(self, step: str) -> str:
        """Return the state of a step's live row."""
        return self.world.store.tables.rows[self.world.row_of(step)].state.value

    def tries(self, step: str) -> int:
        """Return how many requests for a step have left, lost ones included."""
        return self._tries[step]

    def is_parked(self, step: str) -> bool:
        """Return whether a step's live row, or the undo that it waits for, is a person's turn."""
        rows = self.world.store.tables.rows
        row, undo = rows[self.world.row_of(step)], self._undo_of(step)
        return row.parked_at is not None or (undo is not None and rows[undo].parked_at is not None)

    def is_being_undone(self, step: str) -> bool:
        """Return whether an undo of a step's effect was ordered and has not ended."""
        return self._undo_of(step) is not None

    def _undo_of(self, step: str) -> int | None:
        """Return the undo of what a live row stands for: its own effect or the adopted one."""
        rows = self.world.store.tables.rows
        row = rows[self.world.row_of(step)]
        return row.undo if row.adopted_from is None else rows[row.adopted_from].undo

    def told(self, step: str) -> str:
        """Return the word that a planner is told of a step."""
        return told_word(self.world, step)

    def effects_of(self, step: str) -> int:
        """Return the number of standing effects of a step, whoever asked for them."""
        world = self.world
        rows = [seq for _, seq in world.rows_by_step() if world.plan_step(seq) == step]
        return sum(world.tools.standing.get(seq, 0) for seq in rows)

    def left_over(self) -> list[str]:
        """Return the rows that nobody will move, although the world is quiet."""
        return unfinished(self.world)
