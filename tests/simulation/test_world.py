"""Worlds, forks and seeds: the same choices give the same state, and monitors can fail."""

from dataclasses import replace

import pytest

from ackbox.outbox import guards, transitions
from ackbox.outbox.commands import MarkSend
from ackbox.sim.choices import Bounds, Search
from ackbox.sim.invariants import RULES, Monitors
from ackbox.sim.process import Forest
from ackbox.sim.records import Frozen
from ackbox.sim.running import carry_out, unfinished
from ackbox.sim.seeded import KINDS, SeededRun, seeded_plan, seeded_spec
from ackbox.sim.shipped import shipped, shipped_names
from ackbox.sim.speed import seeded_steps
from ackbox.sim.tool_specs import ToolSpec
from ackbox.sim.trace import TraceError
from ackbox.sim.trace_run import run_trace
from ackbox.sim.world import World
from ackbox.sim.world_spec import WorldSpec
from ackbox.sim.world_values import Impossible

KEYLESS = WorldSpec((ToolSpec("tool"),))
PUT = ("put", "s", "tool", Frozen(title="x"))


def test_a_fork_goes_its_own_way_and_back() -> None:
    """A restored world is the one that was marked, and both ways lead to what they did before."""
    world = World(KEYLESS)
    world.apply(PUT)
    world.apply(("claim", "w1", "s"))
    mark, key = world.snapshot(), world.key()
    carry_out(world, {"do": "run", "who": "w1"}, world.apply)
    committed = world.key()
    world.restore(mark)
    assert world.key() == key
    world.apply(("crash", "w1"))
    assert world.key() not in (key, committed)
    world.restore(mark)
    carry_out(world, {"do": "run", "who": "w1"}, world.apply)
    assert world.key() == committed


def test_a_process_is_rebuilt_from_its_replies() -> None:
    """A node whose generator went another way is fed its log again, and waits for the same."""
    forest = Forest()
    root = forest.start("reap", 50, 10)
    first = forest.advance(root, (1,))
    ends = forest.advance(root, ())
    again = forest.advance(first, (("lapse", "l"),))
    other = forest.advance(first, ())
    assert (ends.result, other.result) == (0, 0)
    assert forest.advance(again, True).result == 1
    assert forest.advance(root, (1,)) is first
    assert again.replies() == [(1,), (("lapse", "l"),)]


def test_an_impossible_choice_changes_nothing() -> None:
    """Whatever is refused leaves the state as it was."""
    world = World(KEYLESS)
    world.apply(PUT)
    key = world.key()
    for choice in (
        ("step", "w1"), ("arrive", "w1"), ("answer", "w1"), ("cut", "w1"), ("lose", "w1"),
        ("restart", "w1"), ("thaw", "w1"), ("crash", "nobody"), ("start", "nobody"),
        ("wait", -1.0), ("says", "s", "landed"), ("decide", "s", "approved"),
        ("supersede", "t"), ("put", "s", "tool", Frozen(title="y")), ("no_such_event",),
    ):  # fmt: skip
        with pytest.raises(Impossible):
            world.apply(choice)
    assert world.key() == key


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_rule_breaks_in_bad_weather(kind: str) -> None:
    """Crashes, freezes, lost and cut requests, odd answers, supersedes, cancels and undos."""
    for seed in range(25):
        run = SeededRun(seeded_spec(kind, 2), seed, seeded_plan(seed, 3))
        outcome = run.run()
        assert outcome.violations == (), f"seed {seed}"
        assert unfinished(run.world) == []


def test_a_seed_gives_the_same_run() -> None:
    """Choices, states and counters are equal to the last one."""
    first, second = (
        SeededRun(seeded_spec("keyed", 3), 11, seeded_plan(11, 5)) for _ in range(2)
    )  # fmt: skip
    assert first.run() == second.run()
    assert first.recorder.events() == second.recorder.events()
    assert seeded_steps(5, 1) == seeded_steps(5, 1)


def test_a_seeded_run_is_a_trace() -> None:
    """The recorded events lead to the pinned end without the seed."""
    run = SeededRun(seeded_spec("probed", 2), 4, seeded_plan(4, 3))
    trace = run.trace(run.run(), "recorded")
    assert run_trace(trace).complaints == ()


def explore(search: Search, limit: int = 60_000) -> tuple[int, list[str]]:
    """Walk a small world to its end; return the count of states and the rules that broke."""
    seen, todo, broken = {search.key()}, [search.snapshot()], set[str]()
    while todo:
        mark = todo.pop()
        search.restore(mark)
        for choice in search.choices():
            search.restore(mark)
            if not search.apply(choice):
                continue
            broken |= {one.rule for one in search.violations}
            key = search.key()
            if key not in seen:
                assert len(seen) < limit, "the world is not small"
                seen.add(key)
                todo.append(search.snapshot())
    return len(seen), sorted(broken)


def test_a_small_world_is_explored_to_its_end() -> None:
    """Every order of events of one keyless step with one crash: nothing breaks."""
    bounds = Bounds(plan=(PUT,), crashes=1, losses=1, waits=4)
    states, broken = explore(Search(KEYLESS, bounds))
    assert broken == []
    assert states > 500


def test_the_search_meets_a_planners_bug() -> None:
    """A planner that mints an id on its time-out doubles the effect, in some order."""
    bounds = Bounds(plan=(PUT, ("ask_again", "s", True)), waits=0)
    _, broken = explore(Search(KEYLESS, bounds))
    assert broken == ["one_effect_per_step"]


# -- monitors that can fail ------------------------------------------------------------------------


def without(monkeypatch: pytest.MonkeyPatch, edge: str, *names: str) -> None:
    """Take guards out of an edge of the shipped table."""
    table = transitions.EDGE
    kept = tuple(guard for guard in table[edge].guards if guard.name not in names)
    assert len(kept) < len(table[edge].guards)
    monkeypatch.setitem(table, edge, replace(table[edge], guards=kept))


MISSING_GUARDS = [
    ("send", ("undiverged", "live", "wanted"), "only_wanted_rows_move_on"),
    ("send", ("own_fence", "own_claim"), "no_send_without_mark"),
    ("resend", ("key_trusted",), "resend_is_safe"),
    ("refuse.person", ("quiet",), "failed_means_nothing"),
    ("claim", ("live", "wanted"), "only_wanted_rows_move_on"),
    ("release", ("earlier_called_off",), "one_effect_per_step"),
]


def broken_rules() -> set[str]:
    """Run every shipped trace and a few seeds; return the rules that break beyond expectation."""
    broken: set[str] = set()
    for name in shipped_names():
        trace = shipped(name)
        try:
            broken |= set(run_trace(trace).rules_broken) - set(trace.expected.violations)
        except TraceError:
            broken.add("a trace cannot happen any more")
    for kind in KINDS:
        for seed in range(12):
            run = SeededRun(seeded_spec(kind, 2), seed, seeded_plan(seed, 3))
            broken |= set(run.run().rules_broken)
    return broken


@pytest.mark.parametrize(("edge", "names", "rule"), MISSING_GUARDS)
def test_a_guard_that_is_missing_is_noticed(
    monkeypatch: pytest.MonkeyPatch, edge: str, names: tuple[str, ...], rule: str
) -> None:
    """Without the guard some rule breaks, or a trace that rests on it cannot happen."""
    without(monkeypatch, edge, *names)
    broken = broken_rules()
    assert rule in broken or "a trace cannot happen any more" in broken


def test_a_bind_that_ignores_the_generation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The monitor looks at the row, not at the guard that was taken out."""
    kept = tuple(guard for guard in transitions.BIND.guards if guard is not guards.live)
    monkeypatch.setattr("ackbox.sim.store_planner.BIND", replace(transitions.BIND, guards=kept))
    assert "binds_live_rows_once" in broken_rules()


def test_a_send_without_a_mark_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that answers "marked" without writing it sends nothing unseen."""
    from ackbox.outbox.commands import Marked
    from ackbox.sim import driver

    monkeypatch.setitem(driver._ANSWERS, MarkSend, lambda w, t, c, f: _pretend(w, t, Marked()))
    world = World(KEYLESS)
    monitors = Monitors(world)
    world.apply(PUT)
    world.apply(("claim", "w1", "s"))
    carry_out(world, {"do": "run", "who": "w1", "until": "sent"}, world.apply)
    assert "no_send_without_mark" in {one.rule for one in monitors.violations}


def _pretend(world: World, task: object, reply: object) -> object:
    from ackbox.sim.driver import _start_send

    _start_send(world, task)  # type: ignore[arg-type]
    return reply


def test_every_rule_has_a_sentence() -> None:
    """A rule's name is what a violation is reported under; its docstring says what must hold."""
    assert len(set(RULES)) == len(RULES) >= 15
