"""Makes a trace smaller while it still breaks the same rule: what is left is what matters.

Greedy: events are taken out in ever smaller runs as long as the run ends, and breaks the rule.
May import `trace` and `trace_run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from .trace import Trace, TraceError
from .trace_run import Outcome, WorldMaker, new_world, run_trace

Events: TypeAlias = tuple[Mapping[str, Any], ...]


def shrink(trace: Trace, rule: str | None = None, make: WorldMaker = new_world) -> Trace:
    """Return a smaller trace that breaks `rule`, the first one that breaks by default.

    The result pins its own outcome. Raises TraceError where the trace breaks no rule.
    """
    outcome = _outcome(trace, trace.events, make)
    broken = () if outcome is None else outcome.rules_broken
    wanted = rule or (outcome.violations[0].rule if outcome and outcome.violations else None)
    if wanted is None or wanted not in broken:
        raise TraceError(f"it does not break {wanted or 'any rule'}", 1, "events")

    def breaks(events: Events) -> bool:
        found = _outcome(trace, events, make)
        return found is not None and wanted in found.rules_broken

    events = _smaller(trace.events, breaks)
    last = _outcome(trace, events, make)
    assert last is not None, "the last try has been run"
    return replace(trace, events=events, expected=last.expected(), lines=())


def _outcome(trace: Trace, events: Events, make: WorldMaker) -> Outcome | None:
    try:
        return run_trace(replace(trace, events=events, lines=()), make)
    except TraceError:
        return None


def _smaller(events: Events, breaks: Callable[[Events], bool]) -> Events:
    length = max(len(events) // 2, 1)
    while length >= 1:
        at = 0
        while at < len(events):
            fewer = events[:at] + events[at + length :]
            if fewer and breaks(fewer):
                events = fewer
            else:
                at += length
        length //= 2
    return events
