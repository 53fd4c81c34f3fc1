"""What goes wrong in a demo run: drawn from the seed, within the plan, at every kind of point."""

import pytest

from ackbox.app.demo.outbox_side import LIMITS, shared_out
from ackbox.app.demo.plan import KEYLESS, LANES, plan_steps
from ackbox.app.demo.schedule import KEYLESS_POINTS, POINTS, aim, draw_schedule, most_kills
from ackbox.app.demo.tools import demo_tools
from ackbox.outbox.contract import KeyKind, ProbeStrength
from ackbox.outbox.defaults import Limits, broken_constraints
from ackbox.outbox.shell import fault_points
from ackbox.tool_adapters.registry import Tools

SIZES = [(6, 1), (12, 3), (60, 15), (60, 38), (200, 100), (60, 0)]


def test_the_plan_uses_three_tools_and_names_its_steps_for_ever() -> None:
    """A planner that starts again mints the same ids, and no two steps share one."""
    steps = plan_steps("r1", 60)
    assert [one.tool for one in steps[:3]] == list(LANES)
    assert {one.tool for one in steps} == set(LANES)
    assert len({one.intent_id for one in steps}) == 60
    assert [one.intent_id for one in plan_steps("r1", 60)] == [one.intent_id for one in steps]
    assert not {one.intent_id for one in plan_steps("r2", 60)} & {one.intent_id for one in steps}


@pytest.mark.parametrize(("count", "kills"), SIZES)
@pytest.mark.parametrize("seed", range(1, 6))
def test_a_schedule_fits_its_plan(count: int, kills: int, seed: int) -> None:
    """Kills, slow answers and supersedes hit different steps, none of them in the reserve."""
    steps = {one.name: one for one in plan_steps("r1", count)}
    schedule = draw_schedule(list(steps.values()), kills, seed)
    groups = [set(schedule.kills), schedule.impatient, schedule.superseded, set(schedule.reserve)]
    assert len(set().union(*groups)) == sum(map(len, groups))
    assert set().union(*groups) <= set(steps)
    assert len(schedule.kills) == kills
    assert schedule.superseded
    assert not [name for name in schedule.superseded if steps[name].is_keyless]
    assert bool(schedule.reserve) == bool(kills)


def test_the_seed_alone_decides() -> None:
    """Two runs with one seed meet the same; another seed meets something else."""
    steps = plan_steps("r1", 60)
    assert draw_schedule(steps, 15, 1) == draw_schedule(steps, 15, 1)
    assert draw_schedule(steps, 15, 1) != draw_schedule(steps, 15, 2)


@pytest.mark.parametrize("seed", range(1, 6))
def test_every_run_kills_between_effect_and_answer(seed: int) -> None:
    """The default run hits each point, and bare RQ is bound to double something."""
    schedule = draw_schedule(plan_steps("r1", 60), 15, seed)
    assert set(schedule.kills.values()) == set(POINTS)
    assert schedule.impatient


def test_a_kill_of_a_keyless_call_seldom_leaves_it_unknown() -> None:
    """At most one in five kills of the keyless tool is a person's turn."""
    victims = [one for one in plan_steps("r1", 30) if one.is_keyless][:10]
    aimed = list(aim(victims).values())
    assert aimed.count("after_effect") == 2
    assert "after_mark" not in aimed


def test_the_points_are_those_of_the_worker() -> None:
    """A renamed point would be a kill that never comes."""
    assert {*POINTS, *KEYLESS_POINTS} <= set(fault_points.POINTS)


def test_more_kills_than_the_plan_has_room_for_are_refused() -> None:
    """Nothing is silently left out."""
    with pytest.raises(ValueError, match="room for"):
        draw_schedule(plan_steps("r1", 12), most_kills(12) + 1, 1)


@pytest.mark.parametrize("count", range(6, 80))
def test_the_most_kills_can_be_drawn(count: int) -> None:
    """What the command line allows, the schedule can do."""
    steps = plan_steps("r1", count)
    for kills in range(most_kills(count) + 1):
        assert len(draw_schedule(steps, kills, 1).kills) == kills


def test_the_limits_of_a_run_contradict_nothing() -> None:
    """The short limits satisfy the constraints that are checked at start."""
    limits = Limits(**LIMITS)  # type: ignore[arg-type]
    assert broken_constraints(limits) == []
    assert Tools(*demo_tools("http://127.0.0.1:1")).problems(limits) == []


def test_the_tools_promise_three_different_things() -> None:
    """One honours its key, one can only be probed, one can do neither and is the keyless one."""
    contracts = {one.tool: one for one in (tool.contract for tool in demo_tools("http://h:1"))}
    assert set(contracts) == set(LANES)
    assert sum(one.key.kind is KeyKind.IDEMPOTENT for one in contracts.values()) == 1
    helpless = [
        one.tool
        for one in contracts.values()
        if one.key.kind is KeyKind.NONE and one.probe is ProbeStrength.NONE
    ]
    assert helpless == [KEYLESS]
    assert all(one.lane == LANES[one.tool] for one in contracts.values())


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_every_lane_is_served_by_the_workers_asked_for(workers: int) -> None:
    """No lane is left out; the keyless tool shares a process only where there is one alone."""
    shares = shared_out(workers)
    assert sum(processes for processes, _ in shares) == workers
    assert sorted(lane for _, lanes in shares for lane in lanes) == sorted(LANES.values())
    alone = [lanes for _, lanes in shares if lanes == [LANES[KEYLESS]]]
    assert len(alone) == (0 if workers == 1 else 1)
