"""The shipped traces end as they say, the essay's by its very counters; bad files are told."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from ackbox.app.sim.cli import sim_group
from ackbox.outbox.transitions import EDGES
from ackbox.sim.shipped import shipped, shipped_names, shipped_text
from ackbox.sim.show import mermaid, timeline
from ackbox.sim.shrink import shrink
from ackbox.sim.trace import TraceError, read_trace
from ackbox.sim.trace_run import run_trace
from ackbox.sim.verbs import VERBS, choice_of, event_of

ESSAY = {
    "essay_bad": {"external_commits": 2, "planner_timeouts": 1, "rejected_stale": 0,
                  "outbox_rows": 2},
    "essay_good": {"external_commits": 1, "planner_timeouts": 1, "rejected_stale": 1,
                   "outbox_rows": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_trace_ends_as_it_says(name: str) -> None:
    """Counters, states, told words and broken rules are those that the trace expects."""
    outcome = run_trace(shipped(name))
    assert outcome.complaints == ()
    assert run_trace(shipped(name)) == outcome


@pytest.mark.parametrize("name", sorted(ESSAY))
def test_the_essays_counters_are_printed_and_nothing_else(name: str) -> None:
    """The bad trace doubles the effect, the good one does not: one gate over both."""
    answer = CliRunner().invoke(sim_group, ["run", name, "--json"])
    assert answer.exit_code == 0
    assert json.loads(answer.stdout) == ESSAY[name]


def test_there_are_traces_for_every_hole_and_every_edge() -> None:
    """Each hole of the review that has a trace, each later one, and each edge of the table."""
    traces = [shipped(name) for name in shipped_names()]
    covered = {word for trace in traces for word in trace.covers}
    without_a_trace = {12, 28, 33, 34, 35, 36}
    holes = {f"review 1.{n}" for n in range(1, 37) if n not in without_a_trace}
    assert holes - covered == set()
    assert {f"review 6.{letter}" for letter in "ABCDEFGHI"} - covered == set()
    taken = {
        name
        for trace in traces
        for moment in run_trace(trace).moments
        for _, name, _ in moment.logged
    }
    assert {edge.name for edge in EDGES} - taken == set()
    assert len(traces) >= 30


def test_a_wrong_expectation_is_a_complaint() -> None:
    """The runner compares: another number is told, with exit code 1 on the command line."""
    text = shipped_text("essay_good").replace('"external_commits": 1', '"external_commits": 2')
    assert run_trace(read_trace(text)).complaints == ("external_commits is 1, not 2",)


BAD_FILES = {
    "no JSON": ('{"ackbox_trace": 1,', 1, ""),
    "version": ('{\n "ackbox_trace": 2}', 2, "ackbox_trace"),
    "missing": ('{"ackbox_trace": 1,\n "name": "x"}', 1, "world"),
    "unknown member": ('{"ackbox_trace": 1,\n "nam": "x"}', 2, "nam"),
    "tool option": (
        '{"ackbox_trace": 1, "name": "x", "events": [],\n "world": {"tools":\n {"t": {"kay": 1}}}}',
        3, "world.tools.t.kay",
    ),
    "unknown event": (
        '{"ackbox_trace": 1, "name": "x", "world": {"tools": {"t": {}}},\n "events": [\n'
        '  {"do": "wait", "seconds": 1},\n  {"do": "pray"}]}',
        4, "events.1.do",
    ),
    "field kind": (
        '{"ackbox_trace": 1, "name": "x", "world": {"tools": {"t": {}}},\n "events": [\n'
        '  {"do": "wait",\n   "seconds": "long"}]}',
        4, "events.0.seconds",
    ),
    "needed field": (
        '{"ackbox_trace": 1, "name": "x", "world": {"tools": {"t": {}}}, "events": [\n'
        '  {"do": "put", "step": "s"}]}',
        2, "events.0.tool",
    ),
    "counter": (
        '{"ackbox_trace": 1, "name": "x", "world": {"tools": {"t": {}}}, "events": [],\n'
        ' "expected": {"counters": {"luck": 1}}}',
        2, "expected.counters.luck",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(BAD_FILES))
def test_a_bad_file_is_told_with_line_and_member(kind: str) -> None:
    """Whoever writes a trace by hand is shown where it is wrong."""
    text, line, member = BAD_FILES[kind]
    with pytest.raises(TraceError) as told:
        read_trace(text)
    assert (told.value.line, told.value.member) == (line, member)


@pytest.mark.parametrize(
    ("event", "member"),
    [
        ('{"do": "claim", "who": "w9", "step": "s"}', "who"),
        ('{"do": "put", "step": "s", "tool": "unknown"}', "tool"),
        ('{"do": "put", "step": "r", "tool": "t", "args": {"a": "\\u0000"}}', "args"),
        ('{"do": "put", "step": "~r", "tool": "t"}', "step"),
        ('{"do": "says", "step": "nobody", "what": "landed"}', "step"),
        ('{"do": "arrive", "who": "w1"}', "who"),
        ('{"do": "expect", "step": "s", "row": {"state": "failed"}}', "row"),
    ],
)
def test_an_impossible_event_is_told_with_line_and_member(event: str, member: str) -> None:
    """The trace is well-formed, but this cannot happen there."""
    text = (
        '{"ackbox_trace": 1, "name": "x", "world": {"tools": {"t": {}}},\n "events": [\n'
        f'  {{"do": "put", "step": "s", "tool": "t"}},\n  {event}]}}'
    )
    with pytest.raises(TraceError) as told:
        run_trace(read_trace(text))
    assert (told.value.line, told.value.member) == (4, f"events.1.{member}")


def test_primitive_events_and_choices_are_the_same_thing() -> None:
    """What is recorded can be run again."""
    for name in shipped_names():
        for event in shipped(name).events:
            if not VERBS[event["do"]].composite and event["do"] != "refused":
                told = {name: value for name, value in event.items() if name != "note"}
                assert event_of(choice_of(event)) == told


def test_a_recorded_run_is_a_trace_with_the_same_end() -> None:
    """Composite events become primitive ones, and nothing else changes."""
    for name in ("essay_bad", "divergence_holds_the_next", "handed_over_again"):
        trace = shipped(name)
        moments = run_trace(trace).moments
        events = tuple(event_of(moment.choice) for moment in moments)
        again = read_trace(replace(trace, events=events).text())
        assert run_trace(again).complaints == ()


def test_shrinking_keeps_what_breaks_the_rule() -> None:
    """Of the flipped trace the put, the attempt, the minting and time's end are left."""
    small = shrink(shipped("essay_mint_flipped"))
    assert [event["do"] for event in small.events] == ["put", "claim", "run", "ask_again", "settle"]
    assert run_trace(small).rules_broken == ("one_effect_per_step",)
    with pytest.raises(TraceError):
        shrink(shipped("essay_good"))


def test_what_is_shown_names_effects_and_broken_rules() -> None:
    """A timeline for people, a diagram for a page."""
    outcome = run_trace(shipped("essay_bad"))
    assert "EFFECT create_ticket-2" in timeline(outcome)
    assert "BROKEN one_effect_per_step" in timeline(outcome)
    assert mermaid(outcome).startswith("sequenceDiagram\n  participant planner\n")


def test_the_commands_of_the_simulator() -> None:
    """Each has its help, an example, and an exit code that a script may rely on."""
    run = CliRunner()
    for name in ("run", "show", "record", "shrink"):
        assert f"$ ackbox sim {name}" in run.invoke(sim_group, [name, "--help"]).output
    assert run.invoke(sim_group, ["run", "nothing_like_it"]).exit_code == 2
    assert run.invoke(sim_group, ["shrink", "essay_good"]).exit_code == 1
    recorded = run.invoke(sim_group, ["record", "--seed", "3", "--tool", "probed"])
    assert run_trace(read_trace(recorded.stdout)).complaints == ()
    same = run.invoke(sim_group, ["record", "--seed", "3", "--tool", "probed"])
    assert same.stdout == recorded.stdout
