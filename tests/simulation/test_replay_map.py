"""What of a trace has a counterpart on real processes, and why the rest has none."""

import json

import pytest

from ackbox.sim.shell.stack_map import NotMapped, StackPlan, map_trace
from ackbox.sim.shipped import shipped, shipped_names
from ackbox.sim.trace import Trace, read_trace


def _mapped(name: str) -> StackPlan | str:
    try:
        return map_trace(shipped(name))
    except NotMapped as reason:
        return str(reason)


def _trace(*events: dict[str, object], **tool: object) -> Trace:
    return read_trace(
        json.dumps(
            {"ackbox_trace": 1, "name": "n", "world": {"tools": {"t": tool}}, "events": events}
        )
    )


PUT: dict[str, object] = {"do": "put", "step": "s", "tool": "t"}
CLAIM: dict[str, object] = {"do": "claim", "who": "w1", "step": "s"}


def test_many_traces_are_mapped_and_the_rest_says_why() -> None:
    """At least thirty; every other one names its reason in one line."""
    found = {name: _mapped(name) for name in shipped_names()}
    reasons = {name: one for name, one in found.items() if isinstance(one, str)}
    assert len(found) - len(reasons) >= 30
    assert all(reason and "\n" not in reason for reason in reasons.values())


@pytest.mark.parametrize(
    ("until", "point"),
    [("MarkSend", "before_send"), ("Exchange", "after_mark"), ("arrived", "after_effect"),
     ("Record", "before_settle")],
)  # fmt: skip
def test_a_crash_is_a_kill_at_the_fault_point_it_stands_at(until: str, point: str) -> None:
    """The process dies there by itself; nobody sends a signal."""
    run: dict[str, object] = {"do": "run", "who": "w1", "until": until}
    plan = map_trace(_trace(PUT, CLAIM, run, {"do": "crash", "who": "w1"}, {"do": "settle"}))
    assert plan.points == [{"point": point, "intent_id": "s", "action": "kill"}]
    assert [act.do for act in plan.acts] == ["put", "start", "fired", "dead", "serve"]


def test_the_answer_of_a_dead_attempt_is_spoken_by_a_stopped_process() -> None:
    """The essay's good trace: stopped after the effect, continued for the late answer."""
    plan = map_trace(shipped("essay_good"))
    assert plan.points[0]["action"] == "stop"
    done = [act.do for act in plan.acts]
    assert done.index("fired") < done.index("ask_again") < done.index("continue")


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([{"do": "run", "who": "w1", "fate": "stored_error"}], "stored_error"),
        ([{"do": "run", "who": "w1", "until": "arrived"}, {"do": "cut", "who": "w1"}],
         "drop_after_effect"),
        ([{"do": "run", "who": "w1", "until": "sent"}, {"do": "lose", "who": "w1"}],
         "drop_before_effect"),
        ([{"do": "run", "who": "w1", "until": "sent"}, {"do": "cut", "who": "w1"}], "late_commit"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_request_is_a_fault_of_the_provider(
    events: list[dict[str, object]], fault: str
) -> None:
    """Each for the wire key of its own step."""
    plan = map_trace(_trace(PUT, CLAIM, *events, {"do": "settle"}))
    assert [(step, what) for step, _, what, _ in plan.faults] == [("s", fault)]


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([{**PUT, "deadline_seconds": 9}], "a deadline has no moment"),
        ([PUT, {**CLAIM, "lost": True}], "cannot be lost on purpose"),
        ([PUT, {"do": "pause", "tool": "t"}], "pause has no counterpart"),
        ([PUT, CLAIM, {"do": "cancel", "step": "s"}], "does not stay executing"),
    ],
)
def test_what_has_no_counterpart_is_refused(events: list[dict[str, object]], reason: str) -> None:
    """With the reason, and before any process is started."""
    with pytest.raises(NotMapped, match=reason):
        map_trace(_trace(*events))


def test_a_throttled_world_is_refused() -> None:
    """The workers of the stack would send what the trace puts off."""
    with pytest.raises(NotMapped, match="budget and breaker"):
        map_trace(shipped("budget_puts_off"))
