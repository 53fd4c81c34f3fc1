"""Explores a small world to the end: every order of events and every crash point, by state.

Breadth first, so that the first violation has one of the shortest ways to it. What is kept of a
state is its key and how it was come to; the worlds themselves are kept as long as they wait for
their turn. From every end of a schedule the world then runs on without faults: each row has to
become final, or a person's turn. Since every state leads to some end, that holds for all of them.

May import `explore_offers`, `explore_graph`, `choices` and `trace`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .choices import Bounds, Mark, Search
from .explore_graph import count_schedules, ends, places
from .explore_offers import Faults, Offers
from .invariants import STUCK, Violation
from .process import ROLES, Forest
from .running import carry_out, unfinished
from .trace import Expected, Trace
from .verbs import event_of
from .world import Choice, World
from .world_spec import WorldSpec
from .world_values import Impossible

Plant: TypeAlias = Callable[[World], None]
"""Changes one world before anything happens in it: how a bug is planted."""
REPORT_EVERY = 500


def plant_nothing(world: World) -> None:
    """Leave the world as it ships."""


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """A world with bounds, small enough to be explored."""

    name: str
    about: str
    spec: WorldSpec
    plan: tuple[Choice, ...]
    faults: Faults = field(default_factory=Faults)
    statements: tuple[Choice, ...] = ()

    def bounds(self) -> Bounds:
        """Return the bounds of its search."""
        return self.faults.bounds(self.plan, self.statements)


@dataclass(frozen=True, slots=True)
class Broken:
    """One way in which a rule broke: the choices that led there, the last one included."""

    violation: Violation
    path: tuple[Choice, ...]
    settles: bool = False
    """It broke while the world ran on from the end of the path."""


@dataclass(frozen=True, slots=True)
class Explored:
    """What a search has found. `complete` False: it was cut at a number of states."""

    world: SmallWorld
    states: int
    transitions: int
    schedules: int
    ends: int
    broken: tuple[Broken, ...]
    violations: int
    """Transitions and ends at which a rule broke."""
    complete: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the result with stable keys; the number of schedules may have many digits."""
        rules = sorted({one.violation.rule for one in self.broken})
        return {
            "world": self.world.name,
            "states": self.states,
            "schedules": str(self.schedules) if self.complete else None,
            "violations": self.violations,
            "rules_broken": rules,
            "transitions": self.transitions,
            "ends": self.ends,
            "complete": self.complete,
        }


class Explorer:
    """One search. `progress` is told (states found, states that wait) now and then."""

    def __init__(
        self,
        world: SmallWorld,
        *,
        plant: Plant = plant_nothing,
        roles: dict[str, Any] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._world = world
        self._plant = plant
        self._roles = {**ROLES, **(roles or {})}
        self._progress = progress
        self._search = self._new_search()
        self._offers = Offers(self._search, world.faults)
        self._numbers: dict[Hashable, int] = {}
        self._came_from: list[tuple[int, Choice]] = []
        self._graph: list[list[int]] = []
        self._waiting: deque[Mark] = deque()
        self._broken: list[Broken] = []
        self._violations = 0
        self._transitions = 0

    def _new_search(self) -> Search:
        forest = Forest(remember=True, roles=self._roles)
        search = Search(self._world.spec, self._world.bounds(), forest=forest)
        self._plant(search.world)
        return search

    def run(self, *, max_states: int | None = None, first: bool = False) -> Explored:
        """Explore to the end. `first`: stop at the first violation."""
        self._meet(self._offers.key(), -1, ())
        while self._waiting and not (first and self._broken):
            if max_states is not None and len(self._numbers) >= max_states:
                break
            self._expand(self._waiting.popleft())
        complete = not self._waiting
        schedules = last = 0
        if complete:
            place = places(self._graph)
            schedules = count_schedules(self._graph, place)
            last_states = ends(self._graph, place)
            last = len(last_states)
            self._run_on(last_states, first)
        return Explored(
            self._world, len(self._numbers), self._transitions, schedules, last,
            tuple(self._broken), self._violations, complete,
        )  # fmt: skip

    # -- states ----------------------------------------------------------------------------------

    def _meet(self, key: Hashable, before: int, choice: Choice) -> int:
        """Return the state's number; a new one is put in line."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._came_from.append((before, choice))
            self._waiting.append(self._search.snapshot())
            if self._progress is not None and number % REPORT_EVERY == 0:
                self._progress(number, len(self._waiting))
        return number

    def _expand(self, mark: Mark) -> None:
        search, offers, own = self._search, self._offers, len(self._graph)
        search.restore(mark)
        following: list[int] = []
        is_here = True
        for choice in offers.choices():
            if not is_here:
                search.restore(mark)
            is_here = False
            if offers.apply(choice):
                self._transitions += 1
                if search.violations:
                    self._note(own, choice)
                if offers.changed_nothing(choice):
                    is_here = True
                    continue
                number = self._meet(offers.key(), own, choice)
                if number != own:
                    following.append(number)
        self._graph.append(following)

    def _note(self, state: int, choice: Choice) -> None:
        """Keep the first way to each broken rule; the others are counted."""
        self._violations += 1
        known = {one.violation.rule for one in self._broken}
        for violation in self._search.violations:
            if violation.rule not in known:
                self._broken.append(Broken(violation, (*self.path(state), choice)))

    def path(self, state: int) -> tuple[Choice, ...]:
        """Return the choices by which a state was first come to."""
        taken: list[Choice] = []
        while self._came_from[state][0] >= 0:
            state, choice = self._came_from[state]
            taken.append(choice)
        return tuple(taken[::-1])

    # -- ends ------------------------------------------------------------------------------------

    def _run_on(self, last_states: list[int], first: bool) -> None:
        """Let the world run on from every end; what is settled there already is left alone."""
        for state in last_states:
            if first and self._broken:
                return
            search = self._go(self.path(state))
            if not unfinished(search.world):
                continue
            violations = _settle(search)
            if violations:
                self._violations += 1
                known = {one.violation.rule for one in self._broken}
                if violations[0].rule not in known:
                    self._broken.append(Broken(violations[0], self.path(state), settles=True))

    def _go(self, path: tuple[Choice, ...]) -> Search:
        search = self._search_again()
        offers = Offers(search, self._world.faults)
        for choice in path:
            offers.apply(choice)
        return search

    def _search_again(self) -> Search:
        search = Search(self._world.spec, self._world.bounds(), forest=self._search.world.forest)
        self._plant(search.world)
        return search

    def trace(self, broken: Broken) -> Trace:
        """Return the way to a violation as a trace: primitive events, and a run-on where needed."""
        search = self._search_again()
        taken: list[Choice] = []
        search.world.observers.append(lambda world, choice: taken.append(choice))
        offers = Offers(search, self._world.faults)
        for choice in broken.path:
            offers.apply(choice)
        events = tuple(event_of(choice) for choice in taken)
        if broken.settles:
            events = (*events, {"do": "settle"})
        rule = broken.violation.rule
        about = f"Found by exploring {self._world.name}: {broken.violation.text}."
        return Trace(rule, about, self._world.spec, events, Expected(violations=(rule,)))


def _settle(search: Search) -> list[Violation]:
    """Run on without faults; return what broke on the way, and what came to rest unfinished."""
    world, broken = search.world, list[Violation]()

    def apply(choice: Choice) -> None:
        search.violations.clear()
        world.apply(choice)
        broken.extend(search.violations)

    try:
        carry_out(world, {"do": "settle"}, apply)
    except Impossible as restless:
        return [*broken, Violation(STUCK, str(restless), world.tally["steps"])]
    return [*broken, *(Violation(STUCK, one, world.tally["steps"]) for one in unfinished(world))]
