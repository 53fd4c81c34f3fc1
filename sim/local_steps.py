"""The steps of a procedure that touch nothing shared: an adapter is asked, and answers at once.

Replies are those of the production driver: whatever an adapter raises is the reply `Raised`. May
import the pure core, `workers` and `tool_adapters`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..outbox.commands import Claimed, RingResults
from ..outbox.errors import AckboxError
from ..outbox.outcome import NotApplied
from ..workers.calling import call_of
from ..workers.commands import Build, Classify, Encode, NoTool, Prepare, Probe, Raised
from .process import Node
from .records import Frozen
from .world_values import Task

if TYPE_CHECKING:
    from .world import World

LOCAL = (Build, Prepare, Encode, Classify, Probe, RingResults)
"""A ring for results changes nothing that a world looks at: the consumer's pass looks at rows."""


def local_steps(world: World, task: Task, node: Node) -> Node:
    """Answer adapter commands until the process waits for something shared, or has ended."""
    start = node
    if start.local is not None and not world.broken and not world.spec.unserved:
        return start.local
    while isinstance(node.command, LOCAL):
        world.tally["local_steps"] += 1
        node = world.forest.advance(node, _ask(world, task, node.command))
    if world.forest.remember and not world.broken and not world.spec.unserved:
        start.local = node
    return node


def _ask(world: World, task: Task, command: Any) -> Any:
    if isinstance(command, RingResults):
        return True
    claim: Claimed = command.claim
    if not world.knows(task.process, claim.tool):
        return NoTool()
    if (claim.tool, type(command).__name__) in world.broken:
        return Raised("RuntimeError")
    adapter, call = world.tools.adapters[claim.tool], call_of(claim)
    try:
        match command:
            case Build():
                return adapter.build(call)
            case Prepare(answers=answers):
                return adapter.prepare(call, answers)
            case Encode(handle=handle):
                return adapter.encode(call, handle)
            case Classify(evidence=evidence, follow_ups=follow_ups):
                return frozen(adapter.classify(call, evidence, follow_ups))
            case _:
                return frozen(adapter.probe(call, command.answers))
    except NotApplied as outcome:
        return Raised("NotApplied", outcome=outcome)
    except (AckboxError, ValueError, TypeError, LookupError) as error:
        return Raised(type(error).__name__)


def frozen(answer: Any) -> Any:
    """Return an adapter's answer with a result that may stand in a reply log."""
    result = getattr(answer, "result", None)
    return replace(answer, result=Frozen(result)) if isinstance(result, dict) else answer
