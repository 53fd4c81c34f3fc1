"""Redis emptied, killed, full or away, mid-run and at the start: it costs time and nothing else.

The tool is keyless throughout, so a row that ran twice would show, and a row that was in doubt
for a moment would be parked.
"""

import threading
from collections.abc import Callable

import pytest
from rq import Worker

from ackbox.outbox.intent import Intent
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.redis_bus import TokenBus
from ackbox.planner.shell.planner import Planner

from ..integration.valkey_process import ValkeyProcess
from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, unique

pytestmark = pytest.mark.acceptance

LANES = ("left", "right")


def _nothing(_valkey: ValkeyProcess) -> None:
    """Have nothing to repair."""


def _empty(valkey: ValkeyProcess) -> None:
    valkey.client.flushall()


def _kill(valkey: ValkeyProcess) -> None:
    valkey.kill()


def _restart(valkey: ValkeyProcess) -> None:
    valkey.start()


def _fill(valkey: ValkeyProcess) -> None:
    valkey.fill()


def _give_room(valkey: ValkeyProcess) -> None:
    valkey.empty_out()


def _listed(valkey: ValkeyProcess) -> int:
    return len([worker for worker in Worker.all(connection=valkey.client) if worker.pid])


def _put_batch(bus: Bus) -> list[Intent]:
    """Put quick rows and slow ones in both lanes."""
    quick = [one for lane in LANES for one in bus.put_many("keyless", lane, 10)]
    slow = [one for lane in LANES for one in bus.put_many("keyless", lane, 4, slow_seconds=1.0)]
    return quick + slow


def _check_undisturbed(bus: Bus, intents: list[Intent]) -> None:
    """Every row has one effect, one claim and one mark: no state moved because of Redis."""
    assert bus.effects(*intents) == [1] * len(intents)
    assert {(row["attempts"], row["sends"]) for row in bus.rows(intents)} == {(1, 1)}


@pytest.mark.parametrize(
    ("hurt", "repair"),
    [(_empty, _nothing), (_kill, _restart), (_fill, _give_room)],
    ids=["emptied", "killed", "full"],
)
def test_redis_may_be_lost_in_the_middle_of_calls(
    hurt: Callable[[ValkeyProcess], None],
    repair: Callable[[ValkeyProcess], None],
    own_bus: Bus,
    valkey: ValkeyProcess,
) -> None:
    """Cases 133, 135, 137: calls run on, all commit once, the workers are listed again."""
    own_bus.roles()
    own_bus.workers([LANES, LANES])
    wait_until(lambda: _listed(valkey) == 2, DEADLINE_SECONDS, "both workers are listed")
    opened = [own_bus.open_calls(lane, 4) for lane in LANES]
    called = [one for intents, _ in opened for one in intents]
    before = _put_batch(own_bus)
    hurt(valkey)
    more = _put_batch(own_bus)
    for _, gate in opened:
        gate.touch()
    own_bus.wait_states(called, "committed")
    repair(valkey)
    intents = [*called, *before, *more]
    own_bus.wait_states(intents, "committed")
    wait_until(lambda: _listed(valkey) == 2, DEADLINE_SECONDS, "both are listed again")
    _check_undisturbed(own_bus, intents)


def test_rows_commit_while_redis_stays_full(own_bus: Bus, valkey: ValkeyProcess) -> None:
    """Case 135, full at the start: lanes are polled; when there is room the worker is listed."""
    valkey.fill()
    own_bus.roles()
    own_bus.worker(*LANES)
    intents = _put_batch(own_bus)
    own_bus.wait_states(intents, "committed")
    assert _listed(valkey) == 0
    valkey.empty_out()
    wait_until(lambda: _listed(valkey) == 1, DEADLINE_SECONDS, "the worker is listed")
    _check_undisturbed(own_bus, intents)


def test_puts_are_answered_while_redis_is_down(own_bus: Bus, valkey: ValkeyProcess) -> None:
    """Case 53: 50 puts are answered at once; after Redis is back all are rung and commit once."""
    own_bus.roles()
    valkey.kill()
    url = own_bus.database.engine.url.render_as_string(hide_password=False)
    names = [unique("left") for _ in range(50)]
    with Planner(Database(url), bus=TokenBus(valkey.url)) as planner:
        intents = _put_within(planner, names, DEADLINE_SECONDS)
    assert own_bus.states(intents) == ["queued"] * 50
    valkey.start()
    own_bus.worker("left")
    own_bus.wait_states(intents, "committed")
    _check_undisturbed(own_bus, intents)


def _put_within(planner: Planner, names: list[str], seconds: float) -> list[Intent]:
    """Put one by one, as planners do; fail where the puts wait for anything but Postgres."""
    intents: list[Intent] = []

    def put() -> None:
        intents.extend(planner.put("keyless", {}, intent_id=n, lane="left") for n in names)

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    thread.join(seconds)
    assert len(intents) == len(names)
    return intents


def test_a_token_whose_job_is_gone_costs_nothing(own_bus: Bus, valkey: ValkeyProcess) -> None:
    """Case 133: an evicted job hash is a husk; the lane is rung again by the age of its rows."""
    own_bus.roles()
    worker = own_bus.worker("left")
    wait_until(lambda: _listed(valkey) == 1, DEADLINE_SECONDS, "the worker is listed")
    for number in range(3):
        valkey.client.rpush("rq:queue:ackbox.left", f"left-husk-{number}")
    intents = own_bus.put_many("keyless", "left", 10)
    own_bus.wait_states(intents, "committed")
    assert worker.code is None
    _check_undisturbed(own_bus, intents)
