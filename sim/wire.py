"""Requests on their way: they leave a process, arrive or are lost, and their answers come or not.

A request travels by itself once it has left: its process may die, or give up, and it still arrives.
May import the pure core, `workers` and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..tool_adapters.contract import HttpEvidence, NotWritten, Phase
from ..workers.commands import Exchange, Fetch
from .tools import FATES, HAPPENS, NO_ANSWER, UNREACHABLE
from .world_values import WAITING, Flight, Impossible, Task, altered

if TYPE_CHECKING:
    from .world import World

_CUT = HttpEvidence(Phase.SENDING, error="WriteError: broken pipe")


def exchange(world: World, task: Task, command: Exchange, fault: str | None) -> Any:
    """Send the effect's request, before the send deadline or not at all."""
    if task.send_by is None or world.clock.now > task.send_by:
        return NotWritten()
    if fault is not None:
        return UNREACHABLE if fault == "unreachable" else _CUT
    claim, now = command.claim, world.clock.now
    contract = world.tools.adapters[claim.tool].contract
    name = f"{task.name}#{claim.fence}"
    lives = timedelta(seconds=contract.call_limit_seconds + contract.settle_seconds)
    flight = Flight(name, task.name, claim, command.request, now, now + lives)  # type: ignore[arg-type]
    world.flights[name] = flight
    world.tasks[task.name] = altered(task, flight=name)
    again = (claim.seq, claim.fence) in world.sent
    world.sent = world.sent | {(claim.seq, claim.fence)}
    world.journal.append(("left", flight, world.process(task.process).owner, again))
    return WAITING


def arrive(world: World, who: str, fate: str | None = None) -> None:
    """Let a request reach its tool; `fate` says what becomes of it there."""
    flight, fate = world.flight(who), fate or HAPPENS
    if flight.answer is not None:
        raise Impossible(f"the request of {flight.name} has arrived already", "who")
    if fate not in FATES:
        raise Impossible(f"a tool knows no fate {fate!r}", "fate")
    answer = world.tools.arrive(flight.claim.tool, flight.claim.seq, flight.request, fate)
    world.journal.append(("arrived", flight))
    if flight.awaited:
        world.flights[flight.name] = altered(flight, answer=answer)
    else:
        del world.flights[flight.name]


def answer(world: World, who: str) -> None:
    """Let the tool's answer reach the process that waits for it."""
    flight = world.flight(who)
    if flight.answer is None or not flight.awaited:
        raise Impossible(f"no answer of {flight.name} is on its way", "who")
    world.running(world.tasks[flight.task].process)
    del world.flights[flight.name]
    world.go_on(flight.task, flight.answer)


def cut(world: World, who: str) -> None:
    """Break the connection: the process is left without an answer, the request may travel on."""
    flight = world.flight(who)
    if not flight.awaited:
        raise Impossible(f"nobody waits for {flight.name}", "who")
    give_up(world, flight)
    world.go_on(flight.task, NO_ANSWER)


def give_up(world: World, flight: Flight) -> None:
    """Wait for a request's answer no more; the request itself travels on."""
    if flight.answer is not None:
        del world.flights[flight.name]
    else:
        world.flights[flight.name] = altered(flight, awaited=False)


def lose(world: World, who: str) -> None:
    """Lose a request before it arrives: it never takes effect."""
    flight = world.flight(who)
    if flight.answer is not None:
        raise Impossible(f"the request of {flight.name} has arrived already", "who")
    del world.flights[flight.name]
    if flight.awaited:
        world.go_on(flight.task, NO_ANSWER)


def fetch(world: World, task: Task, command: Fetch, fault: str | None) -> Any:
    """Make one harmless read."""
    if fault is not None:
        return UNREACHABLE
    return world.tools.read(command.claim.tool, command.request)  # type: ignore[arg-type]


HANDLERS: dict[str, Callable[..., None]] = {
    "arrive": arrive,
    "answer": answer,
    "cut": cut,
    "lose": lose,
}
