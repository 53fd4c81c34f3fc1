"""Processes of a virtual world: they die, stand still, start again, and begin work.

May import the pure core, `workers` and `wire`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ..workers.reconcile import Draw
from .wire import give_up
from .world_values import Impossible, altered

if TYPE_CHECKING:
    from .world import World

PASS_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "relay": (10,),
    "reap": (50, 10),
    "hold": (50, 10),
    "gate": (50,),
    "bind": (50,),
}
"""The roles that hold no rows, with the limits of a pass."""
LOOK_LIMIT = 8
_ATTEMPTS = {False: "attempt", True: "throttled_attempt"}


def crash(world: World, who: str) -> None:
    """Kill a process: no cleanup runs. Its requests travel on, and nobody hears their answers."""
    process = world.process(who)
    if not process.alive:
        raise Impossible(f"{who} is dead already", "who")
    world.tally["crashes"] += 1
    for task in [task for task in world.tasks.values() if task.process == who]:
        if task.flight is not None:
            give_up(world, world.flights[task.flight])
        del world.tasks[task.name]
    # A role that holds no rows is simply run again, by this process or by another one.
    world.processes[who] = altered(process, alive=process.owner is None, frozen=False)


def restart(world: World, who: str) -> None:
    """Start a dead process again, as a new incarnation."""
    process = world.process(who)
    if process.alive or process.owner is None:
        raise Impossible(f"{who} lives", "who")
    incarnation = process.incarnation + 1
    owner = UUID(int=process.owner.int + 1)
    world.processes[who] = altered(process, owner=owner, incarnation=incarnation, alive=True)
    world.register(who, owner)


def freeze(world: World, who: str) -> None:
    """Stop a process without killing it: it takes no step and its heart stands still."""
    world.processes[who] = altered(world.running(who), frozen=True)


def thaw(world: World, who: str) -> None:
    """Let a frozen process go on where it stood."""
    process = world.process(who)
    if not process.frozen:
        raise Impossible(f"{who} is not frozen", "who")
    world.processes[who] = altered(process, frozen=False)


def break_adapter(world: World, tool: str, command: str) -> None:
    """Have a tool's adapter raise in one of its methods from now on, or mend it again."""
    if tool not in world.tools.adapters:
        raise Impossible(f"there is no tool {tool!r}", "tool")
    world.broken = world.broken ^ {(tool, command)}


# -- work begins ---------------------------------------------------------------------------------


def claim(
    world: World,
    who: str,
    step: str | None = None,
    limit: int | None = None,
    lost: bool | None = None,
) -> None:
    """Give a worker a wake token: it claims ready rows of the step's lane, and begins on them.

    `lost`: the COMMIT of the claim was kept and its acknowledgement lost, so that nobody begins.
    """
    owner = world.running(who).owner
    if owner is None:
        raise Impossible(f"{who} claims no rows", "who")
    lane = _lane(world, step)
    if lane in world.tokens:
        at = world.tokens.index(lane)
        world.tokens = (*world.tokens[:at], *world.tokens[at + 1 :])
    claims, contracts = world.store.claims, world.contracts_of(who)
    taken = claims.claim(lane, limit or 1, owner, contracts)
    if not taken and claims.suspect_ready(lane) and not _unmarked(world, who):
        taken = claims.claim(lane, 1, owner, contracts, alone=True)
    if not taken:
        world.tally["refused_claims"] += 1
        world.tally["rejected_stale"] += 1
    for one in taken:
        world.tally["claims"] += 1
        if not lost:
            world.begin(who, _ATTEMPTS[world.spec.throttled], f"{who}:{one.seq}", one)


def _lane(world: World, step: str | None) -> str:
    if step is not None:
        return world.store.tables.rows[world.row_of(step)].lane
    if not world.tokens:
        raise Impossible("no token waits", "step")
    return world.tokens[0]


def _unmarked(world: World, who: str) -> bool:
    return any(task.process == who and not task.marked for task in world.tasks.values())


def start(world: World, role: str, who: str | None = None) -> None:
    """Begin one pass of a role; `reconcile` begins one look for each unknown row that is due."""
    if role == "reconcile":
        _start_looks(world, who or world.spec.reconcilers[0])
        return
    if role not in world.processes or world.processes[role].owner is not None:
        raise Impossible(f"there is no role {role!r}", "role")
    if role in world.tasks:
        raise Impossible(f"{role} is under way", "role")
    world.begin(role, role, role, *PASS_ARGUMENTS[role])


def _start_looks(world: World, who: str) -> None:
    world.running(who)
    draw = Draw(world.draw(), world.spec.limits, world.spec.throttled)
    for unresolved in world.store.unknowns.find_unknown(LOOK_LIMIT):
        name = f"{who}:{unresolved.claim.seq}"
        if name not in world.tasks:
            world.begin(who, "reconcile", name, unresolved, draw)


HANDLERS: dict[str, Callable[..., None]] = {
    "crash": crash,
    "restart": restart,
    "freeze": freeze,
    "thaw": thaw,
    "break": break_adapter,
    "claim": claim,
    "start": start,
}
