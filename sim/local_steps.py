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
from ..tool_adapters.contract import Call
from ..workers.calling import call_of
from ..workers.commands import Build, Classify, Encode, NoTool, Prepare, Probe, Raised
from .process import Node
from .records import Frozen

if TYPE_CHECKING:
    from .world import World

LOCAL = (Build, Prepare, Encode, Classify, Probe, RingResults)
"""A ring for results changes nothing that a world looks at: the consumer's pass looks at rows."""


def local_steps(world: World, process: str, node: Node) -> Node:
    """Answer adapter commands until the process waits for something shared, or has ended."""
    start = node
    if start.local is not None and not world.broken and not world.spec.unserved:
        return start.local
    claim: Claimed | None = None
    call: Any = None
    while isinstance(node.command, LOCAL):
        command, reply = node.command, True
        world.tally["local_steps"] += 1
        if not isinstance(command, RingResults):
            if command.claim is not claim:
                claim, call = command.claim, call_of(command.claim)
            reply = world.ask(process, command, call)
        node = world.forest.advance(node, reply)
    if world.forest.remember and not world.broken and not world.spec.unserved:
        start.local = node
    return node


def ask_adapter(world: World, process: str, command: Any, call: Call) -> Any:
    """Return what the tool's adapter says; whatever it raises is the reply `Raised`."""
    claim: Claimed = command.claim
    if not world.knows(process, claim.tool):
        return NoTool()
    if (claim.tool, type(command).__name__) in world.broken:
        return Raised("RuntimeError")
    adapter = world.tools.adapters[claim.tool]
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
