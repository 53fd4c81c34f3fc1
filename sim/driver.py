"""Answers the procedures' commands in a virtual world, one at a time, or lets a fault happen.

What the production driver does with connections, threads and sockets is done here with values: the
same commands, the same replies. May import the pure core, `workers` and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..outbox.commands import (
    Claimed,
    HandOverBatch,
    Marked,
    MarkSend,
    NotMarked,
    Record,
    Resend,
)
from ..workers.attempt import OWNER_DOUBTFUL, SHUTDOWN
from ..workers.commands import Exchange, Fetch
from . import delivery, lives, throttling, wire
from .world_values import WAITING, Impossible, Task, altered

if TYPE_CHECKING:
    from .world import World

LOST = "lost_commit"
NOT_COMMITTED = "no_commit"
FAULTS: dict[type[Any], tuple[str, ...]] = {
    MarkSend: (LOST, NOT_COMMITTED, SHUTDOWN, OWNER_DOUBTFUL),
    Resend: (LOST, NOT_COMMITTED),
    Record: (LOST,),
    Exchange: ("unreachable", "request_cut"),
    Fetch: ("unreachable",),
    HandOverBatch: ("callback_raises", "dies_after_callback"),
}
"""What a step may meet instead of its plain answer, by the command that waits."""
Answerer = Callable[[Any, Task, Any, str | None], Any]


def step(world: World, who: str, fault: str | None = None) -> None:
    """Answer the command that a task waits for, and let it go on to its next."""
    task = world.task(who)
    world.running(task.process)
    if task.flight is not None:
        raise Impossible(f"{task.name} waits for an answer", "who")
    command = task.node.command
    if fault is not None and fault not in FAULTS.get(type(command), ()):
        raise Impossible(f"{type(command).__name__} cannot meet {fault!r}", "fault")
    if fault in (LOST, NOT_COMMITTED):
        _lose_commit(world, task, command, committed=fault == LOST)
        return
    handler: Answerer = _ANSWERS.get(type(command), _ask_store)
    reply = handler(world, world.tasks[task.name], command, fault)
    if reply is not WAITING:
        world.go_on(task.name, reply)


def _lose_commit(world: World, task: Task, command: Any, *, committed: bool) -> None:
    """The connection dies at COMMIT: the process does not learn whether it was kept."""
    if task.lost:
        raise Impossible("a second lost COMMIT in a row sends nothing", "fault")
    if committed:
        handler: Answerer = _ANSWERS.get(type(command), _ask_store)
        handler(world, task, command, None)
    kept = world.tasks[task.name]
    world.tasks[task.name] = altered(kept, lost=True, send_by=kept.send_by or _send_by(world, kept))


def _ask_store(world: World, task: Task, command: Any, fault: str | None) -> Any:
    return world.store.answer(command, world.process(task.process).owner)


def _send_by(world: World, task: Task) -> Any:
    contract = world.tools.adapters[task.node.command.claim.tool].contract
    return world.clock.now + timedelta(seconds=contract.send_deadline_seconds)


def _start_send(world: World, task: Task) -> Task:
    """Start the send deadline, before the mark is asked for."""
    started = task if task.send_by and task.lost else altered(task, send_by=_send_by(world, task))
    world.tasks[task.name] = started
    return started


def _mark(world: World, task: Task, command: MarkSend, fault: str | None) -> Any:
    if fault in (SHUTDOWN, OWNER_DOUBTFUL):
        return NotMarked(fault)
    _start_send(world, task)
    owner = world.process(task.process).owner
    assert owner is not None, "attempts run in processes that hold rows"
    if task.lost:
        reply = world.store.attempts.mark_again(command, owner)
    else:
        reply = world.store.attempts.mark([command], owner)[0]
    if isinstance(reply, Marked):
        world.tasks[task.name] = altered(world.tasks[task.name], marked=True)
        world.tally["sends"] += 1
    return reply


def _resend(world: World, task: Task, command: Resend, fault: str | None) -> Any:
    _start_send(world, task)
    owner = world.process(task.process).owner
    assert owner is not None, "reconcilers are processes that hold rows"
    unknowns = world.store.unknowns
    take = unknowns.resend_again if task.lost else unknowns.resend
    reply = take(command, owner)
    if isinstance(reply, Claimed):
        world.tasks[task.name] = altered(world.tasks[task.name], marked=True)
        world.tally["resends"] += 1
    return reply


def _record(world: World, task: Task, command: Record, fault: str | None) -> Any:
    if not world.store.tables.rows[command.claim.seq].live and not task.lost:
        world.tally["rejected_stale"] += 1
    world.journal.append(("recorded", command))
    return world.store.attempts.record([command])[0]


_ANSWERS: dict[type[Any], Answerer] = {
    MarkSend: _mark,
    Resend: _resend,
    Record: _record,
    Exchange: wire.exchange,
    Fetch: wire.fetch,
    **delivery.ANSWERS,
    **throttling.ANSWERS,
}
HANDLERS: dict[str, Callable[..., None]] = {"step": step, **wire.HANDLERS, **lives.HANDLERS}
