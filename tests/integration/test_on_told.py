"""on_told on real Postgres: at least once, nothing skipped, nobody starved."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine

from ackbox.outbox.defaults import Limits
from ackbox.outbox.errors import ConfigError
from ackbox.outbox.intent import Intent
from ackbox.outbox.model import Actor, Move, State
from ackbox.outbox.shell.divergence import diverge
from ackbox.outbox.shell.moves import Write, order, perform
from ackbox.outbox.told import Compensated, UnknownOutcome
from ackbox.planner.bound import Bound
from ackbox.planner.plan import Plan
from ackbox.planner.shell.consumer import ResultConsumer
from ackbox.planner.shell.hand_over import Leases

from ..support.waiting import wait_until
from .planner_support import TOOL, World, race

AT_ONCE = Limits(backoff_base_seconds=0.0)
KEEPS_NOTHING = Leases(kept_seconds=0.0)


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner."""
    world = World(database_url)
    yield world
    world.close()


def consumer(world: World, plan: Plan, **options: Any) -> ResultConsumer:
    """Return a consumer of the world that tries again at once."""
    return ResultConsumer(world.database, plan, limits=AT_ONCE, **options)


def unknown(world: World, step: str = "open") -> Intent:
    """Put a step and lose its answer."""
    return world.to(State.INDETERMINATE, world.put(step))


def listed(world: World) -> int:
    """Count what is to be told."""
    return int(world.one("SELECT count(*) FROM {s}.to_tell"))


def heard(plan: Plan, word: str, **options: Any) -> list[Bound]:
    """Collect what a plan hears of a word."""
    calls: list[Bound] = []
    plan.on_told(word, **options)(calls.append)
    return calls


def steps(calls: list[Bound]) -> list[str | None]:
    """Return the steps of calls, in their order."""
    return [bound.intent.step for bound in calls]


def park(world: World, intent: Intent) -> None:
    """Put an unknown row in front of a person."""
    clause, limits = world.statements.named("park")
    values = {"seq": intent.seq, "fence": 1, "delay_seconds": 60, "reason": "test"}
    world.database.run(lambda c: c.execute(clause, {**limits, **values}))


def undo(world: World, intent: Intent) -> None:
    """Have a person say that an effect was undone."""
    world.rows("UPDATE {s}.intent_state SET quiet_at = now() - interval '1 hour'")
    move = Move("compensate.person", intent.seq, State.COMMITTED, fence=1)
    assert world.move(Write(move, Actor.PERSON, world.contract_id, order("undone", "applied")))


def test_each_word_is_told_once_and_shown_as_after_bound_shows_it(world: World) -> None:
    """Unknown, then parked: each has its own function, which sees intent and told outcome."""
    plan = Plan()
    unknowns, parked = heard(plan, "unknown"), heard(plan, "parked")
    intent = unknown(world)
    results = consumer(world, plan)
    results.run_once()
    park(world, intent)
    results.run_once()
    results.run_once()
    assert steps(unknowns) == [intent.step]
    assert isinstance(unknowns[0].told, UnknownOutcome)
    assert [bound.intent.seq for bound in parked] == [intent.seq]
    with pytest.raises(ConfigError, match="outside"):
        _ = parked[0].session
    assert listed(world) == 0


def test_what_happens_after_the_bind_is_told(world: World) -> None:
    """A committed row binds; its undoing binds nothing more, and is told."""
    plan = Plan()
    bound: list[str] = []
    plan.after_bound(TOOL)(lambda row: bound.append(row.told.word))
    undone = heard(plan, "compensated")
    intent = world.to(State.COMMITTED, world.put())
    results = consumer(world, plan)
    results.run_once()
    undo(world, intent)
    results.run_once()
    assert bound == ["committed"]
    assert [type(row.told) for row in undone] == [Compensated]
    assert listed(world) == 0


def test_a_divergence_is_told_as_unknown(world: World) -> None:
    """A settled row whose facts contradict each other is unknown again."""
    plan = Plan()
    unknowns = heard(plan, "unknown")
    intent = world.to(State.COMMITTED, world.put())
    world.database.run(
        lambda c: diverge(c, world.statements, intent.seq, actor=Actor.WORKER, reason="test")
    )
    consumer(world, plan).run_once()
    assert [bound.told.reason for bound in unknowns] == ["divergence"]


def test_an_unknown_that_was_settled_meanwhile_is_left_to_its_bind(world: World) -> None:
    """Nobody hears that a step is unknown after its outcome was bound."""
    plan = Plan()
    unknowns = heard(plan, "unknown")
    intent = unknown(world)
    assert world.acknowledge(intent.seq, state=State.INDETERMINATE)
    report = consumer(world, plan).run_once()
    assert (report.bound, unknowns, listed(world)) == (1, [], 0)


def test_an_event_that_commits_late_is_not_skipped(world: World) -> None:
    """Numbers are given out before commits: the older event becomes visible after the newer."""
    plan = Plan()
    unknowns = heard(plan, "unknown")
    late, early = (world.to(State.AWAITING_ACK, world.put(step)) for step in ("late", "early"))
    results = consumer(world, plan)

    def lose(connection: Connection, intent: Intent) -> None:
        move = Move("lose", intent.seq, State.AWAITING_ACK, fence=1, reason="no_answer")
        perform(connection, world.statements, [Write(move, Actor.WORKER, world.contract_id)])

    engine = create_engine(world.database.engine.url)
    with engine.connect() as connection:
        lose(connection, late)
        world.database.run(lambda c: lose(c, early))
        results.run_once()
        assert steps(unknowns) == [early.step]
        connection.commit()
    engine.dispose()
    events = world.rows("SELECT seq FROM {s}.event WHERE name = 'lose' ORDER BY event_id")
    assert [row["seq"] for row in events] == [late.seq, early.seq]
    results.run_once()
    assert steps(unknowns) == [early.step, late.step]


def test_four_consumers_share_the_list(world: World) -> None:
    """Twenty unknowns, four consumers at once: each is told once while every lease holds."""
    plan = Plan()
    unknowns = heard(plan, "unknown")
    intents = [unknown(world, f"s{number}") for number in range(20)]
    race(*[lambda: consumer(world, plan).run_once()] * 4)
    assert sorted(bound.intent.seq for bound in unknowns) == [one.seq for one in intents]
    assert listed(world) == 0


def test_raising_is_recorded_and_tried_again_while_others_go_on(world: World) -> None:
    """The first that waits fails for ever; all others are told, and it is tried once a pass."""
    plan = Plan()
    calls: list[str | None] = []

    @plan.on_told("unknown")
    def tell(bound: Bound) -> None:
        calls.append(bound.intent.step)
        if bound.intent.step == "bad":
            raise LookupError("holds a secret")

    bad = unknown(world, "bad")
    others = [unknown(world, f"s{number}") for number in range(5)]
    consumer(world, plan, batch_limit=7).run_once()
    assert {step for step in calls if step != "bad"} == {one.step for one in others}
    assert calls.count("bad") >= 1
    assert listed(world) == 1
    noted = "SELECT reason FROM {s}.event WHERE seq = :seq AND name = 'tell_failed'"
    assert world.one(noted, seq=bad.seq) == "LookupError"


def test_a_failing_call_backs_off(world: World) -> None:
    """With the limits that ship, nothing is due right after a failure."""
    plan = Plan()
    calls: list[int] = []

    @plan.on_told("unknown")
    def tell(bound: Bound) -> None:
        calls.append(bound.intent.seq)
        raise LookupError

    intent = unknown(world)
    results = ResultConsumer(world.database, plan)
    results.run_once()
    results.run_once()
    assert calls == [intent.seq]
    world.rows("UPDATE {s}.to_tell SET due_at = now()")
    results.run_once()
    assert calls == [intent.seq] * 2


def test_a_callback_that_outlives_its_lease_may_be_called_twice(world: World) -> None:
    """At least once: another consumer takes over, and the slow one's end loses nothing."""
    plan = Plan()
    inside, go_on = threading.Event(), threading.Event()
    calls: list[int] = []

    @plan.on_told("unknown")
    def tell(bound: Bound) -> None:
        calls.append(bound.intent.seq)
        if len(calls) == 1:
            inside.set()
            assert go_on.wait(60)

    unknown(world)
    leases = Leases(hand_over_seconds=0.05)
    first = threading.Thread(target=consumer(world, plan, leases=leases).run_once)
    first.start()
    assert inside.wait(60)
    second = consumer(world, plan, leases=leases)
    wait_until(lambda: second.run_once() and len(calls) == 2, message="it was taken over")
    go_on.set()
    first.join(60)
    assert listed(world) == 0


def test_a_tool_without_a_function_is_let_go(world: World) -> None:
    """A word may be asked for of one tool; the others' rows do not pile up."""
    plan = Plan()
    others = heard(plan, "unknown", tool="mail.send")
    unknown(world)
    consumer(world, plan, leases=KEEPS_NOTHING).run_once()
    assert (others, listed(world)) == ([], 0)


@pytest.mark.parametrize("tool", [None, TOOL])
def test_a_consumer_of_an_older_plan_takes_nothing_from_a_newer_one(
    world: World, tool: str | None
) -> None:
    """While a plan is rolled out both run: what the older one has no function for is kept."""
    old, older, new = Plan(), Plan(), Plan()
    strange = heard(old, "unknown", tool="mail.send")
    unknowns = heard(new, "unknown", tool=tool)
    intent = unknown(world)
    for plan in (old, older):
        consumer(world, plan).drain()
    assert (strange, listed(world)) == ([], 1)
    consumer(world, new).run_once()
    assert (steps(unknowns), listed(world)) == ([intent.step], 0)


def test_a_plan_hears_what_comes_after_its_word_was_asked_for(world: World) -> None:
    """A consumer lets go in time of words that its plan has no function for."""
    unknown(world, "before")
    consumer(world, Plan(), leases=KEEPS_NOTHING).drain()
    assert listed(world) == 0
    plan = Plan()
    unknowns = heard(plan, "unknown")
    after = unknown(world, "after")
    consumer(world, plan).run_once()
    assert steps(unknowns) == [after.step]


def test_the_role_tells_by_itself_while_a_callback_of_another_row_hangs(world: World) -> None:
    """Binding has a loop of its own: no slow callback holds up a bind."""
    plan = Plan()
    inside, go_on, stop = threading.Event(), threading.Event(), threading.Event()

    @plan.on_told("unknown")
    def tell(bound: Bound) -> None:
        inside.set()
        assert go_on.wait(60)

    results = consumer(world, plan, poll_seconds=0.05)
    thread = threading.Thread(target=results.run, args=(stop,))
    thread.start()
    unknown(world)
    assert inside.wait(60)
    settled = world.to(State.COMMITTED, world.put("settled"))
    wait_until(lambda: world.row(settled)["bound_at"] is not None, message="it is bound")
    go_on.set()
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert listed(world) == 0
