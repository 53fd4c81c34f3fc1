"""Tries a planted bug: runs a script, or explores a small world, and says which rules broke.

A script is a trace whose events are only wishes: what is impossible in the changed world is left
out, and what the trace expects to be refused is tried in earnest. May import `explore` and `trace`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .explore import Explorer, Plant, SmallWorld
from .invariants import Monitors
from .process import ROLES, Forest
from .running import carry_out, unfinished
from .trace import Trace
from .verbs import VERBS, choice_of
from .world import Choice, World
from .world_values import Impossible


@dataclass(frozen=True, slots=True)
class Tried:
    """What a trial has shown. `cost` is stated in events of a script, or in states."""

    rules: frozenset[str]
    cost: int


def try_script(trace: Trace, plant: Plant, roles: Mapping[str, Any] | None = None) -> Tried:
    """Run a trace's events as far as they are possible in the changed world."""
    forest = Forest(remember=False, roles={**ROLES, **(roles or {})})
    world = World(trace.world, forest=forest)
    plant(world)
    monitors = Monitors(world)
    for event in trace.events:
        try:
            _wish(world, event)
        except Impossible:
            continue
        if event["do"] == "settle":
            for text in unfinished(world):
                monitors.stuck(world, text)
    return Tried(frozenset(one.rule for one in monitors.violations), len(trace.events))


def _wish(world: World, event: Mapping[str, Any]) -> None:
    verb = event["do"]
    if verb == "expect":
        return
    if verb == "refused":
        fields: Choice = choice_of(event)[3:]
        world.apply((event["event"], *fields))
    elif VERBS[verb].composite:
        carry_out(world, event, world.apply)
    else:
        world.apply(choice_of(event))


def try_world(
    small: SmallWorld, plant: Plant, roles: dict[str, Any] | None, max_states: int
) -> Tried:
    """Explore a small world until the first violation, or to its end."""
    explored = Explorer(small, plant=plant, roles=roles).run(max_states=max_states, first=True)
    return Tried(frozenset(one.violation.rule for one in explored.broken), explored.states)
