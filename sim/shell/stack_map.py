"""Maps a trace to what can be done to real processes: acts, faults of the provider, fault points.

The events of a trace say what happens between two commands; the stack offers named fault points,
signals, and a provider that answers badly on demand. What has no counterpart among those raises
`NotMapped` with the reason. The trace is run in memory beside it, so that each act knows in which
state it has to find its row. May import `sim`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..running import carry_out
from ..tool_specs import ToolSpec
from ..trace import Trace
from ..trace_run import new_world
from ..verbs import VERBS, choice_of
from .stack_tools import endpoint_of

POINTS = {"MarkSend": "before_send", "Exchange": "after_mark", "arrived": "after_effect",
          "Record": "before_settle"}  # fmt: skip
"""How far an attempt has come, and the fault point that stands there."""
FATES = {
    "ok": "none", "too_many_requests": "too_many_requests", "refused": "refused",
    "error_before_effect": "error_before_effect", "stored_error": "stored_error",
    "stored_refusal": "stored_refusal", "error_after_effect": "error_after_effect",
    "empty_success": "empty_success", "cut_success": "cut_success", "garbage": "garbage",
}  # fmt: skip
"""Fates of a request, and the provider's fault that makes it meet the same."""
SWITCHES: Mapping[str, dict[str, Any]] = {
    "accepted": {"accepts": True},
    "no_echo": {"echo": "none"},
}
"""Fates that the provider meets with every request."""
OPEN_SECONDS = 1.8
"""How long the provider keeps a call open for what has to happen during it."""
LATE_SECONDS = 0.3
_TERMS = {"held_for": "a gate", "deadline_seconds": "a deadline", "not_before_seconds": "a start",
          "read_set": "a read set"}  # fmt: skip
_BY_THEMSELVES = ("wait", "pass", "expect")
_LONG_SECONDS = 60.0


class NotMapped(Exception):
    """The stack has no counterpart to an event."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing to do. `state` is the one in which the step's row has to be before."""

    do: str
    step: str = ""
    who: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None


@dataclass(slots=True)
class StackPlan:
    """What a trace means for the stack."""

    lanes: dict[str, str] = field(default_factory=dict)
    """Lane of each step that is put."""
    switches: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[tuple[str, int, str, float]] = field(default_factory=list)
    """(step, generation, fault, seconds) in the order of the requests."""
    points: list[dict[str, str]] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)


@dataclass(slots=True)
class _Attempt:
    """What is known of a worker's open attempt."""

    step: str
    generation: int
    first: bool
    reached: str = ""
    is_cut: bool = False
    ends: str = ""
    """"kill", "stop": what a fault point does to the process; "midway": killed while it waits."""


def map_trace(trace: Trace) -> StackPlan:
    """Return what to do on the stack. Raises NotMapped."""
    return _Mapping(trace).plan()


class _Mapping:
    """Walks through one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._specs = {spec.name: spec for spec in trace.world.tools}
        self._world = new_world(trace)
        self._plan = StackPlan()
        self._open: dict[str, _Attempt] = {}
        self._running: set[str] = set()
        self._tools: dict[str, ToolSpec] = {}
        self._attempts: dict[str, int] = {}
        self._rest: tuple[Mapping[str, Any], ...] = ()

    def plan(self) -> StackPlan:
        """Map every event."""
        self._check_world()
        handlers: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "put": self._put, "ask_again": self._ask_again, "claim": self._claim,
            "run": self._run, "crash": self._crash, "cut": self._cut, "lose": self._lose,
            "arrive": self._arrive, "freeze": self._freeze, "thaw": self._thaw,
            "late": self._late, "restart": self._restart, "settle": self._settle,
            "supersede": self._asks, "cancel": self._asks, "compensate": self._asks,
            "says": self._says, "refused": self._refused, "start": self._start,
        }  # fmt: skip
        for number, event in enumerate(self._trace.events):
            self._rest = self._trace.events[number + 1 :]
            verb = event["do"]
            if verb in handlers:
                handlers[verb](event)
            elif verb not in _BY_THEMSELVES:
                raise NotMapped(f"{verb} has no counterpart")
            self._happen(event)
        return self._plan

    def _happen(self, event: Mapping[str, Any]) -> None:
        if VERBS[event["do"]].composite:
            carry_out(self._world, event, self._world.apply)
        else:
            self._world.apply(choice_of(event))

    def _check_world(self) -> None:
        world = self._trace.world
        if world.throttled:
            raise NotMapped("the workers do not ask budget and breaker yet")
        if world.limits != type(world.limits)():
            raise NotMapped("it sets limits that the stack's short ones replace")
        if world.unserved:
            raise NotMapped("a tool that nobody serves waits for an hour")
        for spec in world.tools:
            if spec.lag_seconds or spec.forgets_after_seconds or not spec.replays:
                raise NotMapped("a tool's memory lags for longer than the stack's limits")
            if spec.key_window_seconds is not None:
                raise NotMapped("a key window lasts longer than the stack's limits")
            if spec.key == "client_id":
                raise NotMapped("the fake provider has no client-chosen identities")
            changes = {
                **({} if spec.honours_key else {"honours_key": False}),
                **({} if spec.keeps_marker else {"keeps_marker": False}),
                **({} if spec.echoes else {"echo": "none"}),
            }
            if changes:
                self._switch(spec, changes)

    def _switch(self, spec: ToolSpec, changes: Mapping[str, Any]) -> None:
        self._plan.switches.setdefault(endpoint_of(spec, self._specs), {}).update(changes)

    def _act(self, do: str, step: str = "", who: str = "", state: str | None = None,
             **fields: Any) -> None:  # fmt: skip
        self._plan.acts.append(Act(do, step, who, fields, state))

    def _state(self, step: str) -> str:
        return self._world.store.tables.rows[self._world.row_of(step)].state.value

    # -- planners and people ---------------------------------------------------------------------

    def _put(self, event: Mapping[str, Any]) -> None:
        for name, what in _TERMS.items():
            if name in event:
                raise NotMapped(f"{what} has no moment of its own on the stack")
        step, tool = event["step"], event["tool"]
        self._tools[step] = self._specs[tool]
        self._plan.lanes[step] = step
        self._act("put", step, tool=tool, args=event.get("args", {}))

    def _ask_again(self, event: Mapping[str, Any]) -> None:
        step = event["step"]
        new = f"{step}-retry" if event.get("mint") else step
        self._tools[new] = self._tools[step]
        self._plan.lanes[new] = new
        self._act("ask_again", step, new=new)

    def _asks(self, event: Mapping[str, Any]) -> None:
        step, state = event["step"], self._reachable(event["step"])
        fields = {name: event[name] for name in ("args", "generation") if name in event}
        self._act(event["do"], step, state=state, **fields)

    def _reachable(self, step: str) -> str:
        """Return the row's state now. Raises NotMapped where the stack would not stand still."""
        state, spec = self._state(step), self._tools.get(step)
        is_settled_by_itself = spec is not None and (spec.key, spec.probe) != ("none", "none")
        if state == "indeterminate" and is_settled_by_itself:
            raise NotMapped("the reconciler settles the unknown row before somebody acts on it")
        if state == "queued" and self._running:
            raise NotMapped("a running worker claims the queued row before somebody acts on it")
        if state in ("executing", "held"):
            raise NotMapped(f"a row does not stay {state} for an act between two commands")
        return state

    def _says(self, event: Mapping[str, Any]) -> None:
        what = event["what"]
        if what not in ("not_landed", "landed", "requeue", "undone") or "fence" in event:
            raise NotMapped(f"saying {what} depends on the numbers of the run")
        if event.get("generation") is not None or event.get("may_duplicate"):
            raise NotMapped("a statement about an earlier generation waits for its passes")
        self._act("says", event["step"], state=self._reachable(event["step"]), what=what)

    def _refused(self, event: Mapping[str, Any]) -> None:
        if event["event"] != "put":
            raise NotMapped(f"a refused {event['event']} depends on the moment")
        step, tool, args = event["with"][:3]
        self._act("refused_put", step, tool=tool, args=args, code=event["code"])

    # -- attempts --------------------------------------------------------------------------------

    def _claim(self, event: Mapping[str, Any]) -> None:
        who, step = event["who"], event.get("step")
        if event.get("lost") or step is None:
            raise NotMapped("the acknowledgement of a claim's COMMIT cannot be lost on purpose")
        claims = self._world.tally["claims"]
        mark = self._world.snapshot()
        self._happen(event)
        begins = self._world.tally["claims"] > claims
        self._world.restore(mark)
        if who not in self._running:
            self._running.add(who)
            self._act("start", step, who)
        if not begins:
            self._act("ring", step, who)
            return
        number = self._attempts.get(step, 0)
        self._attempts[step] = number + 1
        row = self._world.store.tables.rows[self._world.row_of(step)]
        self._open[who] = _Attempt(step, row.generation, first=number == 0)

    def _run(self, event: Mapping[str, Any]) -> None:
        who, until, fate = event["who"], event.get("until"), event.get("fate")
        if who in self._trace.world.reconcilers:
            self._run_look(until, fate)
            return
        attempt = self._open.get(who)
        if attempt is None:
            if who.partition(":")[0] in self._trace.world.workers and until is None:
                return
            raise NotMapped(f"{who} stops between two of its commands")
        if attempt.ends:
            # The zombie goes on by itself, or is dead.
            return
        if until is not None:
            if fate is not None:
                raise NotMapped("a call stays open and then goes wrong")
            attempt.reached = until
            return
        self._finish(who, attempt, fate)

    def _run_look(self, until: str | None, fate: str | None) -> None:
        if until is not None:
            raise NotMapped("a reconciler stops between two of its commands")
        if fate is not None:
            step = next(iter(self._tools))
            self._meet(_Attempt(step, 0, first=False), self._fate(step, fate), 0.0)

    def _finish(self, who: str, attempt: _Attempt, fate: str | None) -> None:
        del self._open[who]
        if attempt.is_cut:
            return
        if attempt.reached == "sent" and self._acted_since_sent(attempt.step):
            if fate not in (None, "ok"):
                raise NotMapped("a call stays open and then goes wrong")
            self._meet(attempt, "delay_before_effect", OPEN_SECONDS)
            return
        self._meet(attempt, self._fate(attempt.step, fate or "ok"), 0.0)

    def _acted_since_sent(self, step: str) -> bool:
        return any(act.step == step and act.state == "awaiting_ack" for act in self._plan.acts)

    def _fate(self, step: str, fate: str) -> str:
        if fate in SWITCHES:
            self._switch(self._tools[step], SWITCHES[fate])
            return "none"
        if fate not in FATES:
            raise NotMapped(f"the fake provider knows no {fate}")
        return FATES[fate]

    def _meet(self, attempt: _Attempt, fault: str, seconds: float) -> None:
        self._plan.faults.append((attempt.step, attempt.generation, fault, seconds))

    def _at(self, event: Mapping[str, Any]) -> _Attempt:
        attempt = self._open.get(event["who"].partition(":")[0])
        if attempt is None or not attempt.reached or attempt.ends:
            raise NotMapped(f"{event['do']} meets no attempt that a fault point can stop")
        return attempt

    def _point(self, attempt: _Attempt, action: str) -> None:
        if not attempt.first:
            raise NotMapped("a fault point is met by the first attempt of a step")
        point = POINTS.get(attempt.reached)
        if point is None:
            raise NotMapped(f"no fault point stands where an attempt has {attempt.reached}")
        attempt.ends = action
        self._plan.points.append({"point": point, "intent_id": attempt.step, "action": action})
        self._act("fired", attempt.step, point=point)

    def _crash(self, event: Mapping[str, Any]) -> None:
        who, attempt = event["who"], self._at(event)
        if self._is_late_for(attempt.step):
            self._point(attempt, "stop")
            self._running.discard(who)
            return
        if attempt.reached == "sent":
            attempt.ends = "midway"
            self._meet(attempt, "delay_before_effect", OPEN_SECONDS / 2)
            self._act("kill_midway", attempt.step, who)
        else:
            self._point(attempt, "kill")
            self._act("dead", attempt.step, who)
        self._running.discard(who)

    def _is_late_for(self, step: str) -> bool:
        return any(one["do"] == "late" and one["step"] == step and "says" not in one
                   for one in self._rest)  # fmt: skip

    def _late(self, event: Mapping[str, Any]) -> None:
        stopped = [(who, one) for who, one in self._open.items()
                   if one.ends == "stop" and one.step == event["step"]]  # fmt: skip
        if not stopped or "says" in event or event.get("fence") is not None:
            raise NotMapped("no process that was taken for dead can speak")
        if self._state(event["step"]) == "queued":
            raise NotMapped("the process that speaks late may claim the queued row first")
        who, attempt = stopped[0]
        attempt.ends = "spoken"
        self._act("continue", attempt.step, who, speaks=True)

    def _cut(self, event: Mapping[str, Any]) -> None:
        attempt = self._at(event)
        attempt.is_cut = True
        if attempt.reached == "arrived":
            self._meet(attempt, "drop_after_effect", 0.0)
        elif attempt.reached == "sent" and self._lands(event["who"]):
            self._meet(attempt, "late_commit", LATE_SECONDS)
        elif attempt.reached == "sent":
            self._meet(attempt, "drop_before_effect", 0.0)
        else:
            raise NotMapped("a connection that is not open cannot be cut")

    def _lands(self, who: str) -> bool:
        """Return whether a request without a listener arrives before it dies."""
        for event in self._rest:
            if event["do"] == "arrive" and event["who"].partition(":")[0] == who:
                return True
            if event["do"] == "wait" and event["seconds"] > _LONG_SECONDS:
                return False
        return True

    def _lose(self, event: Mapping[str, Any]) -> None:
        attempt = self._at(event)
        if attempt.reached != "sent":
            raise NotMapped("a request that has arrived cannot be lost")
        attempt.is_cut = True
        self._meet(attempt, "drop_before_effect", 0.0)

    def _arrive(self, event: Mapping[str, Any]) -> None:
        attempt = self._open.get(event["who"].partition(":")[0])
        alone = attempt is None or attempt.is_cut or attempt.ends == "midway"
        if not alone or "fate" in event:
            raise NotMapped("a call stays open while time passes")

    def _freeze(self, event: Mapping[str, Any]) -> None:
        self._point(self._at(event), "stop")
        self._running.discard(event["who"])

    def _thaw(self, event: Mapping[str, Any]) -> None:
        attempt = self._open.get(event["who"])
        if attempt is None or attempt.ends != "stop":
            raise NotMapped("the process that thaws was not stopped at a fault point")
        attempt.ends = "spoken"
        state = self._state(attempt.step)
        final = state if state in ("committed", "failed", "queued") else None
        if final == "queued" and self._running:
            final = None
        self._act("continue", attempt.step, event["who"], state=final, moved=True)

    def _restart(self, event: Mapping[str, Any]) -> None:
        self._open.pop(event["who"], None)

    def _start(self, event: Mapping[str, Any]) -> None:
        if event["role"] != "reconcile":
            raise NotMapped(f"a pass of {event['role']} stops between two of its commands")

    def _settle(self, event: Mapping[str, Any]) -> None:
        for who, attempt in self._open.items():
            if attempt.ends == "stop":
                self._act("continue", attempt.step, who)
            elif not attempt.ends and not attempt.is_cut and attempt.reached not in ("", "sent"):
                raise NotMapped("an attempt is left where no fault point stands")
        self._act("serve")
