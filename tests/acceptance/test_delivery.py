"""Rings that come too early, twice, four times or not at all: only the claim decides."""

import pytest
from sqlalchemy import create_engine

from ackbox.outbox.intent import Intent
from ackbox.outbox.shell.redis_bus import TokenBus

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, new_lane, unique
from .support_children import Child

pytestmark = pytest.mark.acceptance


def test_four_relays_and_four_reapers_at_once(own_bus: Bus) -> None:
    """Cases 7, 49, 139: no leader is elected, and each intent still has one execution."""
    for _ in range(4):
        own_bus.roles("relay", "reaper")
    victim = own_bus.worker("left", "right")
    intents = _put_for(own_bus, victim)
    assert victim.wait() < 0
    own_bus.workers([["left", "right"]] * 3)
    own_bus.wait_states(intents, "committed", "indeterminate")
    _check_once(own_bus, intents)


def _put_for(bus: Bus, victim: Child) -> list[Intent]:
    """Put rows in two lanes, of which one kills the worker that holds many of them."""
    doomed = unique("left")
    bus.plan("before_send", doomed)
    many = [one for lane in ("left", "right") for one in bus.put_many("keyless", lane, 20)]
    return [*many, bus.put("keyless", "left", doomed)]


def _check_once(bus: Bus, intents: list[Intent]) -> None:
    """One effect each; each lapse and each expiry was fired once, by one of the four."""
    rows = bus.rows(intents)
    for row, intent, effects in zip(rows, intents, bus.effects(*intents), strict=True):
        names = [event["name"] for event in bus.events(intent)]
        ended = names.count("lapse") + names.count("give_back")
        assert row["attempts"] == names.count("claim") == ended + 1
        assert row["sends"] == 1
        assert names.count("expire") == (row["state"] == "indeterminate")
        assert effects == 1 or row["state"] == "indeterminate"
    assert rows[-1]["state"] == "committed"


def test_a_commit_later_than_its_successor_is_claimed(bus: Bus) -> None:
    """Case 41: a lower id commits behind a higher one that is done already; no cursor passes it."""
    lane = new_lane("behind")
    bus.worker(lane)
    engine = create_engine(bus.database.engine.url)
    with engine.connect() as connection:
        transaction = connection.begin()
        early = bus.planner.put("keyless", {}, intent_id=unique(lane), lane=lane, on=connection)
        late = bus.put_many("keyless", lane, 5)
        bus.wait_states(late, "committed")
        transaction.commit()
    engine.dispose()
    assert early.seq < late[0].seq
    bus.wait_state(early, "committed")
    assert bus.effects(early, *late) == [1] * 6


def test_a_token_before_the_commit_is_followed_by_another(bus: Bus) -> None:
    """Case 51: a drain that finds nothing marks nothing as served; the poll rings after COMMIT."""
    lane = new_lane("early")
    worker = bus.worker(lane)
    tokens = TokenBus(bus.redis_url)
    engine = create_engine(bus.database.engine.url)
    with engine.connect() as connection:
        transaction = connection.begin()
        intent = bus.planner.put("keyless", {}, intent_id=unique(lane), lane=lane, on=connection)
        for _ in range(3):
            assert tokens.ring(lane, 100)
        what = "the early tokens have run"
        wait_until(lambda: f"{lane}: Job OK" in worker.output(), DEADLINE_SECONDS, what)
        transaction.commit()
    engine.dispose()
    tokens.close()
    bus.wait_state(intent, "committed")
    assert bus.effects(intent) == [1]


def test_five_workers_that_start_take_nothing_that_is_held(bus: Bus) -> None:
    """Case 7: start-up looks at leases only; a row in a call and a row in executing stay."""
    lane = new_lane("start")
    gate = bus.folder / f"gate-{lane}"
    bus.worker(lane)
    held = bus.put("gated", lane, gate=str(gate))
    bus.wait_states([held], "executing")
    (called,), answered = bus.open_calls(lane, 1)
    bus.workers([[lane]] * 5)
    assert bus.states([held, called]) == ["executing", "awaiting_ack"]
    gate.touch()
    answered.touch()
    bus.wait_states([held, called], "committed")
    assert [row["attempts"] for row in bus.rows([held, called])] == [1, 1]
    assert bus.effects(held, called) == [1, 1]


def test_a_row_of_the_future_is_claimed_at_its_time_once(bus: Bus) -> None:
    """Case 1a: tokens before `not_before` claim nothing; at its time one of three workers does."""
    lane = new_lane("later")
    bus.workers([[lane]] * 3)
    (row,) = bus.sql("SELECT {s}.clock_now() + interval '1.5 seconds' AS at")
    name = unique(lane)
    intent = bus.planner.put("keyless", {}, intent_id=name, lane=lane, not_before=row["at"])
    for _ in range(3):
        bus.planner.ring([lane])
    bus.wait_state(intent, "committed")
    (claim,) = bus.events(intent, "claim")
    assert claim["at"] >= row["at"]
    assert bus.effects(intent) == [1]
