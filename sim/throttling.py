"""Answers for a tool's throttle in a virtual world: one for all processes, each question whole.

What the rules are stands in `workers.throttle`. May import the pure core and `workers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..workers import throttle as throttles
from ..workers.throttle import Admit, Answer, NoteSend, PutOff, Throttle
from .world_values import Task

if TYPE_CHECKING:
    from .world import World


def _throttle(world: World, tool: str) -> Throttle:
    return dict(world.throttles).get(tool, Throttle())


def _keep(world: World, tool: str, throttle: Throttle) -> None:
    world.throttles = tuple(sorted({**dict(world.throttles), tool: throttle}.items(), key=_name))


def _name(pair: tuple[str, Throttle]) -> str:
    return pair[0]


def _admit(world: World, task: Task, command: Admit, fault: str | None) -> Answer:
    tool = command.claim.tool
    throttle, answer = throttles.admit(
        _throttle(world, tool), command.again, world.draw(), world.clock.now, world.spec.limits
    )
    _keep(world, tool, throttle)
    if isinstance(answer, PutOff):
        world.tally[answer.reason] += 1
    return answer


def _note(world: World, task: Task, command: NoteSend, fault: str | None) -> None:
    tool, now = command.tool, world.clock.now
    _keep(world, tool, throttles.note(_throttle(world, tool), command, now, world.spec.limits))


ANSWERS: dict[type[Any], Callable[[Any, Task, Any, str | None], Any]] = {
    Admit: _admit,
    NoteSend: _note,
}
