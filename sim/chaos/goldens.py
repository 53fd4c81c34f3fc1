"""Twenty-four pinned cases: effects, requests and end state of each, for three kinds of tools.

The knobs are those of sluice's published goldens; what has to come out is said in the states of
ackbox. The events that each case logs are kept in the results, where a change shows. May import
`scenario` and the scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .acts import approve, attempt_of, deliver_all, die_at, let_lapse, run_until, start_gate_clock
from .case import Case
from .scenario import (
    KEYED,
    KEYLESS,
    NEVER_SENT,
    ONCE,
    PROBED,
    UNKNOWN,
    End,
    Scenario,
    complaints,
    run_case,
)
from .scenarios_delivery import results_were_dropped
from .schedule import ERROR, TIMEOUT, Schedule

GATE_SECONDS = 60.0
CALL_SECONDS = 60.0
_KINDS = (KEYED, PROBED, KEYLESS)
_AGAIN = End("committed", 1, 2)


def deliver_times(case: Case, *, deliveries: int, over_limit: bool = False) -> None:
    """Deliver each intent a number of times."""
    case.over_limit = over_limit
    for intent in range(case.planned):
        deliver_all(case, case.put(intent), deliveries)


def die_once(case: Case, *, point: str) -> None:
    """Have a worker die at a point; the token comes again after the lapse."""
    for intent in range(case.planned):
        step = case.put(intent)
        die_at(case, "w1", step, point)
        let_lapse(case)
        case.deliver("w2", step)


def die_twice(case: Case) -> None:
    """Have both workers die before the mark, one after the other."""
    for intent in range(case.planned):
        step = case.put(intent)
        for worker in ("w1", "w2"):
            _die_unsent(case, worker, step)
        case.deliver("w1", step)


def _die_unsent(case: Case, worker: str, step: str) -> None:
    die_at(case, worker, step, "MarkSend")
    case.apply(("wait", 25.0))
    case.carry("pass", role="reap")
    case.apply(("wait", 2.0))


def die_behind_gate(case: Case, *, crashes: int, before: bool) -> None:
    """Have the pass die before the approval, or workers behind it."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        if before:
            case.apply(("start", "hold"))
            case.apply(("crash", "hold"))
        approve(case, step)
        case.carry("pass", role="hold")
        for number in range(crashes):
            _die_unsent(case, ("w1", "w2")[number % 2], step)
        case.deliver("w1", step)


def stall(case: Case, *, seconds: float) -> None:
    """Have a worker stand still before its mark while another one gets the token."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, "MarkSend")
        case.apply(("freeze", "w1"))
        case.apply(("wait", seconds))
        case.carry("pass", role="reap")
        case.apply(("wait", 2.0))
        case.deliver("w2", step)
        case.apply(("thaw", "w1"))
        case.carry("run", who=attempt_of(case, "w1", step))


def decide_twice(case: Case, *, first: str, second: str) -> None:
    """Have two people decide one gate, or let its limit pass before the second."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        start_gate_clock(case)
        if first:
            approve(case, step, first)
        else:
            case.apply(("wait", GATE_SECONDS + 0.001))
            case.carry("pass", role="gate")
        case.refused("gate_decided", "decide", step, second)


def _case(
    number: int,
    about: str,
    script: Any,
    ends: Mapping[str, End] | End,
    faults: tuple[str, ...],
    **more: Any,
) -> Scenario:
    if isinstance(ends, End):
        ends = dict.fromkeys(_KINDS, ends)
    return Scenario(f"{number:02}", faults, about, script, ends, **{"intents": 1, **more})


_PROOF = {KEYED: _AGAIN, PROBED: ONCE, KEYLESS: UNKNOWN}
_LOSES = Schedule(overrides={1: TIMEOUT})
_REFUSES = Schedule(overrides=dict.fromkeys(range(1, 7), ERROR))
_ONCE_MORE, _FIVE = partial(deliver_times, deliveries=2), partial(deliver_times, deliveries=5)
_THRICE = partial(deliver_times, deliveries=3)
_SINGLE = partial(deliver_times, deliveries=1)
_LARGE = partial(deliver_times, deliveries=3, over_limit=True)
_GATE = {"limits": {"gate_limit_seconds": GATE_SECONDS}}
_SLOW = {"tool": {"call_limit_seconds": CALL_SECONDS}}


def _slow(seconds: float, **more: Any) -> Schedule:
    return Schedule(latency_range=(seconds, seconds), slow_tries=1, **more)


GOLDENS: tuple[Scenario, ...] = (
    _case(1, "two deliveries", _ONCE_MORE, ONCE, ("F1",)),
    _case(2, "five deliveries", _FIVE, ONCE, ("F1",)),
    _case(3, "three deliveries, 250 ms", _THRICE, ONCE, ("F1",), schedule=_slow(0.25)),
    _case(4, "three deliveries, an answer over the limit", _LARGE, ONCE, ("F10",),
          check=results_were_dropped),
    _case(5, "the answer is lost", _ONCE_MORE, _PROOF, ("F2",), schedule=_LOSES),
    _case(6, "the answer is lost, 500 ms", _ONCE_MORE, _PROOF, ("F2",),
          schedule=_slow(0.5, overrides={1: TIMEOUT})),
    _case(7, "the answer is lost, two intents", _ONCE_MORE, _PROOF, ("F2",), schedule=_LOSES,
          intents=2),
    _case(8, "the worker dies after the effect", partial(die_once, point="arrived"), _PROOF,
          ("F3",)),
    _case(9, "the worker dies after the effect, two intents", partial(die_once, point="arrived"),
          _PROOF, ("F3",), intents=2),
    _case(10, "the worker dies before the mark", partial(die_once, point="MarkSend"), ONCE,
          ("F4",)),
    _case(11, "two workers die before the mark", die_twice, ONCE, ("F4",)),
    _case(12, "the worker dies before the mark, behind a gate",
          partial(die_behind_gate, crashes=1, before=False), ONCE, ("F4", "F5")),
    _case(13, "the pass dies before the approval, one worker after it",
          partial(die_behind_gate, crashes=1, before=True), ONCE, ("F5",)),
    _case(14, "the pass dies before the approval, two workers after it",
          partial(die_behind_gate, crashes=2, before=True), ONCE, ("F5",)),
    _case(15, "one refusal, then an answer", _SINGLE, _AGAIN, ("F7",),
          schedule=Schedule(overrides={1: ERROR})),
    _case(16, "three refusals, three sends allowed", _SINGLE, End("failed", 0, 3), ("F7",),
          schedule=_REFUSES, tool={"max_sends": 3}),
    _case(17, "six refusals, six sends allowed", _SINGLE, End("failed", 0, 6), ("F7",),
          schedule=_REFUSES, tool={"max_sends": 6}),
    _case(18, "the worker stands still within its lease", partial(stall, seconds=15.0), ONCE,
          ("F8",)),
    _case(19, "the worker stands still far beyond its lease", partial(stall, seconds=60.001), ONCE,
          ("F8",)),
    _case(20, "45 s, within the call's limit", _SINGLE, ONCE, ("F15",), schedule=_slow(45.0),
          **_SLOW),
    _case(21, "90 s, beyond the call's limit", _SINGLE, _PROOF, ("F15",), schedule=_slow(90.0),
          **_SLOW),
    _case(22, "approved, then rejected", partial(decide_twice, first="approved", second="rejected"),
          ONCE, ("F6",), **_GATE),
    _case(23, "rejected, then approved", partial(decide_twice, first="rejected", second="approved"),
          NEVER_SENT, ("F6",), **_GATE),
    _case(24, "approved after the wait has ended", partial(decide_twice, first="",
          second="approved"), NEVER_SENT, ("F6", "F12"), **_GATE),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """One golden with one kind of tool."""

    golden: Scenario
    kind: str
    effects: int
    attempts: int
    states: tuple[str, ...]
    events: tuple[str, ...]
    """What the outbox logged for the first intent, in order."""
    broken: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the result with stable keys."""
        return {
            "golden": self.golden.name,
            "about": self.golden.about,
            "tool": self.kind,
            "limits": self.golden.stated_limits(),
            "effects": self.effects,
            "attempts": self.attempts,
            "states": list(self.states),
            "events": list(self.events),
            "passed": not self.broken,
            "broken": list(self.broken),
        }


def run_goldens() -> Iterator[GoldenResult]:
    """Run every golden for every kind of tool, in order."""
    for golden in GOLDENS:
        for kind in golden.ends:
            yield run_golden(golden, kind)


def run_golden(golden: Scenario, kind: str) -> GoldenResult:
    """Run one golden for one kind of tool."""
    case = run_case(golden, kind, 1)
    logged = case.world.store.tables.events[case.world.row_of(case.intents[0])]
    return GoldenResult(
        golden=golden,
        kind=kind,
        effects=sum(case.effects_of(step) for step in case.intents),
        attempts=sum(case.tries(step) for step in case.intents),
        states=tuple(case.state(step) for step in case.intents),
        events=tuple(event.name for event in logged),
        broken=tuple(complaints(golden, kind, case)),
    )
