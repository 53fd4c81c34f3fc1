"""Worlds whose sends ask budget and breaker first: every rule holds, and they only put off (F7)."""

from collections import Counter
from dataclasses import replace

import pytest

from ackbox.outbox.defaults import DEFAULTS
from ackbox.sim.process import Forest
from ackbox.sim.records import Frozen
from ackbox.sim.running import carry_out, unfinished
from ackbox.sim.seeded import KINDS, SeededRun, seeded_plan, seeded_spec
from ackbox.sim.tool_specs import ToolSpec
from ackbox.sim.trace import TraceError, read_trace
from ackbox.sim.trace_run import run_trace
from ackbox.sim.world import Choice, World
from ackbox.sim.world_spec import WorldSpec
from ackbox.workers.breaker import Phase, phase
from ackbox.workers.throttle import BREAKER_OPEN, NO_BUDGET, Throttle

TIGHT = replace(
    DEFAULTS, retry_ratio=0.0, retry_burst=1, retry_floor_seconds=60.0, breaker_outcomes=2
)
"""Limits that are in the way all the time."""


def tight(kind: str) -> WorldSpec:
    """Return the seeded world of a kind, throttled."""
    return replace(seeded_spec(kind, 2), limits=TIGHT, throttled=True)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_rule_breaks_where_sends_are_put_off(kind: str) -> None:
    """Bad weather, and budgets that are empty and breakers that are open nearly all the time."""
    put_off = Counter[str]()
    for seed in range(25):
        run = SeededRun(tight(kind), seed, seeded_plan(seed, 6))
        outcome = run.run()
        assert outcome.violations == (), f"seed {seed}"
        assert unfinished(run.world) == [], f"seed {seed}"
        put_off += run.world.tally
    assert put_off[BREAKER_OPEN] > 0, "no breaker was ever in the way"
    assert put_off[NO_BUDGET] > 0, "no budget was ever in the way"


def throttled_world(spec: ToolSpec) -> World:
    """Return a throttled world with one tool."""
    world = WorldSpec((spec,), limits=TIGHT, throttled=True)
    return World(world, forest=Forest(remember=False))


def refused(world: World, step: str) -> None:
    """Have one send of a step be refused for now."""
    world.apply(("claim", "w1", step))
    carry_out(world, {"do": "run", "who": "w1", "fate": "too_many_requests"}, world.apply)


def put(world: World, *steps: str) -> None:
    """Store intents."""
    for step in steps:
        world.apply(("put", step, "tool", Frozen(title=step)))


def throttle_of(world: World) -> Throttle:
    """Return the tool's throttle."""
    return dict(world.throttles)["tool"]


def test_what_is_put_off_counts_as_no_send() -> None:
    """The row is queued with a later turn; claims go up, sends and the tool's requests do not."""
    world = throttled_world(ToolSpec("tool", key="idempotent"))
    put(world, "a", "b", "c")
    refused(world, "a")
    refused(world, "b")
    assert phase(throttle_of(world).breaker, world.clock.now) is Phase.OPEN
    world.apply(("claim", "w1", "c"))
    carry_out(world, {"do": "run", "who": "w1"}, world.apply)
    row = world.store.tables.rows[world.row_of("c")]
    assert (row.state.value, row.sends, row.attempts, world.tools.requests) == ("queued", 0, 1, 2)
    assert row.ready_at is not None
    assert row.ready_at >= world.clock.now
    assert row.unready_since is None


def test_a_trial_that_dies_is_followed_by_another() -> None:
    """The world comes to rest although the process with the trial was killed."""
    world = throttled_world(ToolSpec("tool", key="idempotent"))
    put(world, "a", "b")
    refused(world, "a")
    refused(world, "b")
    world.apply(("wait", TIGHT.breaker_open_seconds))
    put(world, "c")
    world.apply(("claim", "w1", "c"))
    carry_out(world, {"do": "run", "who": "w1", "until": "MarkSend"}, world.apply)
    assert throttle_of(world).breaker.trial_until is not None
    world.apply(("crash", "w1"))
    carry_out(world, {"do": "settle"}, world.apply)
    assert [row.state.value for row in world.store.tables.rows.values()] == ["committed"] * 3
    assert phase(throttle_of(world).breaker, world.clock.now) is Phase.CLOSED


def test_nothing_leaves_while_the_breaker_is_open() -> None:
    """Watched at every request of a storm: closed, or the one trial."""
    world = throttled_world(ToolSpec("tool", key="idempotent"))
    left = list[bool]()

    def watch(seen: World, choice: Choice) -> None:
        for fact in seen.journal:
            if fact[0] == "left":
                breaker = throttle_of(seen).breaker
                left.append(phase(breaker, seen.clock.now) is not Phase.OPEN)

    world.observers.append(watch)
    for number in range(30):
        put(world, f"s{number}")
        refused(world, f"s{number}")
    carry_out(world, {"do": "settle"}, world.apply)
    assert all(left)
    assert len(left) >= 30
    assert world.tally[BREAKER_OPEN] > 0


def test_a_deadline_ends_a_row_that_waits_for_a_breaker() -> None:
    """Nothing was sent, so it is withdrawn in time."""
    world = throttled_world(ToolSpec("tool"))
    put(world, "a", "b")
    refused(world, "a")
    refused(world, "b")
    world.apply(("put", "late", "tool", Frozen(title="late"), None, 20.0))
    carry_out(world, {"do": "settle"}, world.apply)
    assert world.store.tables.rows[world.row_of("late")].state.value == "cancelled"


def test_forks_and_traces_hold_the_throttles() -> None:
    """A restored world is as open as it was, and a recorded one runs again to the same end."""
    world = throttled_world(ToolSpec("tool"))
    put(world, "a", "b")
    refused(world, "a")
    mark, key = world.snapshot(), world.key()
    refused(world, "b")
    assert world.key() != key
    world.restore(mark)
    assert world.key() == key
    run = SeededRun(tight("probed"), 3, seeded_plan(3, 4))
    text = run.trace(run.run(), "recorded").text()
    assert '"throttled": true' in text
    assert run_trace(read_trace(text)).complaints == ()
    with pytest.raises(TraceError, match="is no true or false"):
        read_trace(text.replace('"throttled": true', '"throttled": 1'))
