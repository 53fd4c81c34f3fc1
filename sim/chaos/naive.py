"""The naive arm: workers that send again after whatever looks like an error. No outbox at all.

The deliveries of an intent start together. In each of three rounds every unfinished delivery makes
one call, in delivery order, which meets the intent's next try. It sends to the same virtual tool as
the other arms, without a key, and the tool counts. May import `sim`.
"""

from __future__ import annotations

import json

from ...tool_adapters.contract import HttpRequest
from ..clock import VirtualClock
from ..tool_specs import BASE_URL, ToolSpec
from ..tools import HAPPENS, VirtualTools
from .case import REFUSAL, TOOL
from .figures import Figures
from .schedule import ERROR, OK, Schedule

ROUNDS = 3
ROUND_SECONDS = 0.1


def run_naive(schedule: Schedule, intents: int) -> Figures:
    """Run the arm for one seed."""
    clock = VirtualClock()
    tools = VirtualTools([ToolSpec(TOOL)], clock)
    finished = [_run_intent(schedule, intent, tools, clock) for intent in range(intents)]
    return Figures(
        intents=intents,
        deliveries=sum(schedule.deliveries(f"intent-{n}") for n in range(intents)),
        attempts=tools.requests,
        effects=tools.happened,
        duplicates=sum(max(0, count - 1) for count in tools.standing.values()),
        resolved=sum(finished),
        failed=intents - sum(finished),
    )


def _run_intent(schedule: Schedule, intent: int, tools: VirtualTools, clock: VirtualClock) -> bool:
    """Return whether some delivery of the intent was answered."""
    name = f"intent-{intent}"
    body = json.dumps({"title": name}).encode()
    request = HttpRequest("POST", f"{BASE_URL}/{TOOL}", body=body)
    unfinished, number, answered = schedule.deliveries(name), 0, False
    for _ in range(ROUNDS):
        calls = unfinished
        for _ in range(calls):
            number += 1
            fault = schedule.fault(name, number)
            tools.arrive(TOOL, intent, request, REFUSAL if fault == ERROR else HAPPENS)
            unfinished -= fault == OK
            answered = answered or fault == OK
        clock.advance(ROUND_SECONDS)
    return answered
