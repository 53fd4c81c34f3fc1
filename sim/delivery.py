"""Tokens, bindings, hand-overs and plans of compensations in a virtual world.

What the planner's consumer does with callbacks is done here with a log of what was handed over.
May import the pure core and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..outbox.bind import BindTogether
from ..outbox.commands import (
    BindAnswer,
    BindBatch,
    FindBound,
    HandOverBatch,
    PlanCompensation,
    Ring,
)
from ..tool_adapters.compensating import plan_compensation
from .records import Frozen
from .tables import BOUND, SETTLED
from .world_values import WAITING, Task

if TYPE_CHECKING:
    from .world import World

BIND_LEASE_SECONDS = 30.0
HAND_OVER_LEASE_SECONDS = 60.0


def _ring(world: World, task: Task, command: Ring, fault: str | None) -> bool:
    if command.lane not in world.tokens:
        world.tokens = (*world.tokens, command.lane)
    return True


def _plan(world: World, task: Task, command: PlanCompensation, fault: str | None) -> Any:
    return plan_undo(world, command.owner)


def plan_undo(world: World, seq: int) -> Any:
    """Ask a row's adapter how its effect is undone."""
    found = world.store.compensations.undo_target(seq)
    assert found is not None, "rows are never deleted"
    plan = plan_compensation(world.tools.registry, found.tool, found.version, found.target)
    content = getattr(plan, "content", None)
    if content is None:
        return plan
    return replace(plan, content=replace(content, args=Frozen(content.args)))


def _bind_batch(world: World, task: Task, command: BindBatch, fault: str | None) -> BindAnswer:
    binding = world.store.binding
    batch = binding.take(command.batch_id, SETTLED, BIND_LEASE_SECONDS)
    if batch is None:
        return BindAnswer()
    reply = binding.bind_rows(batch.seqs, _handed_tools(world))
    binding.finish(command.batch_id, batch, (), 0.0)
    return _count_binds(world, batch.seqs, reply)


def _bind_together(
    world: World, task: Task, command: BindTogether, fault: str | None
) -> BindAnswer:
    batches = world.store.tables.batches
    seqs = [seq for one in command.batch_ids if one in batches for seq in batches[one].seqs]
    return _count_binds(world, seqs, world.store.binding.bind_together(command.batch_ids))


def _count_binds(world: World, seqs: Any, reply: BindAnswer) -> BindAnswer:
    for name in ("bound", "stale", "duplicate"):
        world.tally[name] += getattr(reply, name)
    world.journal.append(("binding", tuple(seqs)))
    return reply


def _handed_tools(world: World) -> tuple[str, ...]:
    return tuple(world.tools.adapters) if world.spec.hands_over else ()


def _find_bound(world: World, task: Task, command: FindBound, fault: str | None) -> Any:
    return world.store.binding.due(BOUND, command.limit)


def _hand_over(world: World, task: Task, command: HandOverBatch, fault: str | None) -> Any:
    binding = world.store.binding
    batch = binding.take(command.batch_id, BOUND, HAND_OVER_LEASE_SECONDS)
    if batch is None:
        return 0
    leased = [seq for seq in batch.seqs if binding.lease_hand_over(seq, HAND_OVER_LEASE_SECONDS)]
    if fault == "callback_raises":
        for seq in leased:
            binding.hand_later(seq)
        leased = []
    for seq in leased:
        world.bound_log = (*world.bound_log, (seq, world.store.tables.rows[seq].state.value))
    world.tally["handed"] += len(leased)
    if fault == "dies_after_callback":
        del world.tasks[task.name]
        return WAITING
    for seq in leased:
        binding.handed(seq)
    binding.finish(command.batch_id, batch, binding.unhanded(batch.seqs), 1.0)
    return len(leased)


ANSWERS: dict[type[Any], Callable[[Any, Task, Any, str | None], Any]] = {
    Ring: _ring,
    PlanCompensation: _plan,
    BindBatch: _bind_batch,
    BindTogether: _bind_together,
    FindBound: _find_bound,
    HandOverBatch: _hand_over,
}
