"""Replays a mapped trace on the whole stack, and compares where it ends with the run in memory.

Compared are the effects that the provider counted, the states and told words of every step, and the
counters that rows hold. The order of steps is the stack's own. May import `sim` and the roles.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...outbox.errors import AckboxError, Refused
from ...outbox.people import Denied, Said
from ...outbox.shell.redis_bus import TOKENS_PER_QUEUE
from ...sim.shell.postgres_replay import Replayed
from ...sim.shell.stack_map import Act, NotMapped, map_trace
from ...sim.trace import Trace
from ...sim.trace_run import Outcome, run_trace
from ..settings import Settings
from .stack_side import Late, StackSide, await_that, stack_side

END_SECONDS = 30.0
COUNTERS = ("external_commits", "undone", "outbox_rows", "parked", "divergences",
            "planner_timeouts")  # fmt: skip
"""What an end has, whatever the order was in which it came about."""


@contextmanager
def stack_replayer(settings: Settings) -> Iterator[Callable[[Trace], Replayed]]:
    """Give what replays a trace on the servers of these settings."""
    yield lambda trace: replay_on_stack(trace, settings)


def replay_on_stack(trace: Trace, settings: Settings) -> Replayed:
    """Replay one trace on an outbox of its own. Raises TraceError where it cannot be run at all."""
    expected = run_trace(trace)
    if not expected.passed:
        return Replayed(trace.name, expected.complaints)
    try:
        plan = map_trace(trace)
    except NotMapped as reason:
        return Replayed(trace.name, not_mapped=str(reason))
    specs = {spec.name: spec for spec in trace.world.tools}
    with stack_side(settings, plan, specs) as side:
        try:
            complaints = _Replay(side, expected).run()
        except (Late, AckboxError) as error:
            complaints = (f"{error}; {_stands(side)}",)
    return Replayed(trace.name, complaints)


def _stands(side: StackSide) -> str:
    rows = side.sql("SELECT * FROM {s}.intent_state ORDER BY seq")
    return f"rows stand at {[row['state'] for row in rows]}"


class _Replay:
    """One trace under way."""

    def __init__(self, side: StackSide, expected: Outcome) -> None:
        self._side = side
        self._expected = expected
        self._tools: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._met: dict[str, tuple[int, int, str]] = {}
        """(seq, fence, state) of the row at which a step met its fault point."""
        self._timeouts = 0
        self._do: dict[str, Callable[[Act], None]] = {
            "put": self._put, "ask_again": self._ask_again, "refused_put": self._refused_put,
            "start": self._start, "ring": self._ring, "fired": self._fired, "dead": self._dead,
            "kill_midway": self._kill_midway, "continue": self._continue, "serve": self._serve,
            "supersede": self._supersede, "cancel": self._cancel, "compensate": self._compensate,
            "says": self._says,
        }  # fmt: skip

    def run(self) -> tuple[str, ...]:
        """Do every act, wait for the end, end the workers, and compare. Raises Late."""
        self._prepare()
        for act in self._side.plan.acts:
            if act.state is not None and act.do != "continue":
                self._await_state(act)
            self._do[act.do](act)
        wanted = self._wanted()
        try:
            await_that("the expected end", lambda: self._found() == wanted, END_SECONDS)
        except Late:
            return self._complaints(wanted)
        # A zombie has done all it wanted before effects are counted.
        self._side.end_workers()
        return self._complaints(wanted)

    def _prepare(self) -> None:
        side = self._side
        if side.plan.switches:
            side.ask("/_switches", side.plan.switches)
        side.ask("/_faults", [
            {"wire_key": step if generation == 0 else f"{step}~g{generation}",
             **_rule(fault, seconds)}
            for step, generation, fault, seconds in side.plan.faults
        ])  # fmt: skip

    # -- planners and people ---------------------------------------------------------------------

    def _put(self, act: Act) -> None:
        tool, args = act.fields["tool"], act.fields["args"]
        self._tools[act.step] = (tool, args)
        self._side.planner.put(tool, args, intent_id=act.step, lane=self._side.plan.lanes[act.step])

    def _ask_again(self, act: Act) -> None:
        self._side.planner.note_timeout(act.step)
        self._timeouts += 1
        tool, args = self._tools[act.step]
        new = act.fields["new"]
        self._put(Act("put", new, fields={"tool": tool, "args": args}))

    def _refused_put(self, act: Act) -> None:
        try:
            self._put(act)
        except Refused as refused:
            if refused.code == act.fields["code"]:
                return
            raise
        raise Late(f"a put of {act.step} that is refused")

    def _supersede(self, act: Act) -> None:
        generation = self._side.live_row(act.step)["generation"]
        self._side.planner.supersede(act.step, generation, act.fields.get("args"))

    def _cancel(self, act: Act) -> None:
        self._side.planner.cancel(act.step)

    def _compensate(self, act: Act) -> None:
        self._side.planner.compensate(act.step, tools=self._side.parts.registry)

    def _says(self, act: Act) -> None:
        row, what, people = self._side.live_row(act.step), act.fields["what"], self._side.people
        said = Said(row["seq"], "ops", "looked at it", row["fence"])
        ways: dict[str, Callable[[], Any]] = {
            "landed": lambda: people.landed(said, "seen-by-a-person"),
            "not_landed": lambda: people.not_landed(said),
            "requeue": lambda: people.not_landed(said, requeue=True),
            "undone": lambda: people.undone(said),
        }
        await_that(f"saying {what}", lambda: not isinstance(ways[what](), Denied))

    # -- processes -------------------------------------------------------------------------------

    def _start(self, act: Act) -> None:
        self._side.start(act.who)

    def _ring(self, act: Act) -> None:
        bus = self._side.parts.bus
        assert bus is not None
        bus.ring(self._side.plan.lanes[act.step], TOKENS_PER_QUEUE)

    def _fired(self, act: Act) -> None:
        point = act.fields["point"]
        await_that(f"{act.step} reaches {point}", lambda: self._side.fired(point, act.step))
        row = self._side.live_row(act.step)
        self._met[act.step] = (row["seq"], row["fence"], row["state"])

    def _dead(self, act: Act) -> None:
        worker = self._side.workers[act.who]
        await_that(f"{act.who} is killed", lambda: worker.code == -signal.SIGKILL)

    def _kill_midway(self, act: Act) -> None:
        await_that("the tool has the request", lambda: any(
            rule["wire_key"] == act.step and rule["seen"]
            for rule in self._side.ask("/_faults")["rules"]
        ))  # fmt: skip
        self._side.workers[act.who].signal(signal.SIGKILL)
        self._dead(act)

    def _continue(self, act: Act) -> None:
        if act.state is not None:
            self._await_state(act)
        elif act.fields.get("moved"):
            await_that(f"{act.step} moves on", lambda: self._has_moved(act.step))
        self._side.workers[act.who].signal(signal.SIGCONT)
        if act.fields.get("speaks"):
            await_that(f"the late answer of {act.who}", lambda: self._has_spoken(act.step))

    def _has_moved(self, step: str) -> bool:
        row = self._side.live_row(step)
        return (row["seq"], row["fence"], row["state"]) != self._met[step]

    def _has_spoken(self, step: str) -> bool:
        seq, fence, _ = self._met[step]
        return bool(
            self._side.sql(
                "SELECT 1 FROM {s}.observation WHERE seq = :seq AND fence = :fence"
                " AND kind = 'attempt'", seq=seq, fence=fence,
            )
        )  # fmt: skip

    def _serve(self, act: Act) -> None:
        """Have at least one worker run that no fault has ended or stopped."""
        stopped = {who for who in self._side.workers if who in self._stopped()}
        alive = [who for who, one in self._side.workers.items() if one.code is None]
        if not set(alive) - stopped:
            self._side.start("spare")

    def _stopped(self) -> set[str]:
        continued = {act.who for act in self._side.plan.acts if act.do == "continue"}
        fired = {point["intent_id"] for point in self._side.plan.points
                 if point["action"] == "stop"}  # fmt: skip
        first = {act.who for act in self._side.plan.acts if act.do == "start" and act.step in fired}
        return first - continued

    # -- the end ---------------------------------------------------------------------------------

    def _await_state(self, act: Act) -> None:
        wanted = act.state
        await_that(
            f"{act.step} becomes {wanted} before {act.do}",
            lambda: self._side.live_row(act.step)["state"] == wanted,
        )

    def _wanted(self) -> dict[str, Any]:
        expected = self._expected
        return {
            "states": {step: list(states) for step, states in expected.states.items()},
            "told": dict(expected.told),
            "counters": {name: expected.counters[name] for name in COUNTERS},
        }

    def _found(self) -> dict[str, Any]:
        side = self._side
        states: dict[str, list[str]] = {}
        rows = side.sql("SELECT i.intent_id, s.* FROM {s}.intent i JOIN {s}.intent_state s"
                        " USING (seq) ORDER BY seq")  # fmt: skip
        for row in rows:
            states.setdefault(row["intent_id"], []).append(row["state"])
        told = {step: side.planner.get(step) for step in states}
        return {
            "states": states,
            "told": {step: one.word for step, one in told.items() if one is not None},
            "counters": self._counters(rows),
        }

    def _counters(self, rows: list[dict[str, Any]]) -> dict[str, int]:
        ledger = self._side.ask("/_ledger")
        opened = self._side.sql("SELECT 1 FROM {s}.event WHERE name = 'divergence'")
        return {
            "external_commits": _created(ledger["endpoints"]),
            "undone": sum(ledger["undone"].values()),
            "outbox_rows": len(rows),
            "parked": sum(row["parked_at"] is not None for row in rows),
            "divergences": len(opened),
            "planner_timeouts": self._timeouts,
        }

    def _complaints(self, wanted: dict[str, Any]) -> tuple[str, ...]:
        found = self._found()
        return tuple(
            f"{name} {key} is {found[name].get(key)!r}, not {wanted[name].get(key)!r}"
            for name in wanted
            for key in sorted({*wanted[name], *found[name]})
            if found[name].get(key) != wanted[name].get(key)
        )


def _created(endpoints: Mapping[str, Mapping[str, int]]) -> int:
    """Count what was created; the provider counts an undo as an effect of its own."""
    return sum(
        sum(counted.values()) for name, counted in endpoints.items() if not name.endswith(".delete")
    )


def _rule(fault: str, seconds: float) -> dict[str, Any]:
    """Return a rule of the provider; a request that meets nothing uses one up as well."""
    if fault == "none":
        return {"fault": "delay_before_effect", "seconds": 0.0}
    return {"fault": fault, "seconds": seconds or 0.1}
