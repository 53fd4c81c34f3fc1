"""SIGKILL of a consumer at every point between a settled row and its last callback.

One row dies at each point, of processes that come one after another. What is written through the
bind's session happens exactly once; every other call happens at least once, and none is lost.
"""

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ackbox.outbox.intent import Intent
from ackbox.outbox.model import State
from ackbox.outbox.shell.fault_points import CONSUMER_POINTS

from ..integration.planner_support import TOOL, World
from ..support.waiting import wait_until
from .support import Bus
from .support_children import Child

pytestmark = pytest.mark.acceptance

TELL_POINTS = ("before_tell", "after_tell")
BIND_POINTS = tuple(point for point in CONSUMER_POINTS if point not in TELL_POINTS)
TWICE = {
    "before_bind_commit": "on_bound",
    "after_hand_over": "after_bound",
    "after_tell": "on_told",
}
"""At these points a callback has returned and nobody knows it: it is called again."""
LEASE_SECONDS = 61


@dataclass
class Crimes:
    """What became of the rows: each had a consumer die of it."""

    bus: Bus
    rows: dict[str, Intent]

    def calls(self, kind: str, point: str) -> int:
        """Count the calls of a callback for the row of a point."""
        found = self.bus.sql(
            "SELECT count(*) AS n FROM called WHERE kind = :kind AND intent_id = :name",
            kind=kind, name=self.rows[point].intent_id,
        )  # fmt: skip
        return int(found[0]["n"])


@pytest.fixture(scope="module", params=["plan", "async_plan"])
def place(request: pytest.FixtureRequest) -> str:
    """Give the plan that the consumers run."""
    return f"support_plan:{request.param}"


@pytest.fixture
def crimes(own_bus: Bus, database_url: str, place: str) -> Iterator[Crimes]:
    """Settle or lose one row for each point, and run consumers until all of them have died."""
    world = World(database_url)
    world.rows("CREATE TABLE advance (intent_id text)")
    world.rows("CREATE TABLE called (kind text, intent_id text)")
    rows: dict[str, Intent] = {}
    for point in CONSUMER_POINTS:
        state = State.COMMITTED if point in BIND_POINTS else State.INDETERMINATE
        rows[point] = world.to(state, world.put(point))
        own_bus.plan(point, rows[point].intent_id)
    crimes = Crimes(own_bus, rows)
    deaths = 0
    while unfired := [one for one in rows if not own_bus.fired(one, rows[one].intent_id)]:
        assert own_bus.start("consumer", place).wait() == -signal.SIGKILL, unfired
        deaths += 1
        let_leases_pass(own_bus, deaths)
    survivor = own_bus.start("consumer", place)
    wait_done(own_bus, rows, survivor)
    yield crimes
    world.close()


def let_leases_pass(bus: Bus, deaths: int) -> None:
    """Move the store's clock past the leases of everyone who is dead."""
    bus.sql(
        "CREATE OR REPLACE FUNCTION {s}.clock_now() RETURNS timestamptz LANGUAGE sql STABLE AS"
        f" $$ SELECT statement_timestamp() + interval '{deaths * LEASE_SECONDS} seconds' $$"
    )


def wait_done(bus: Bus, rows: dict[str, Intent], survivor: Child) -> None:
    """Wait until nothing is left to bind, to hand over or to tell."""
    left = (
        "SELECT (SELECT count(*) FROM {s}.settled_batch) + (SELECT count(*) FROM {s}.to_tell) AS n"
    )

    def done() -> bool:
        assert survivor.code is None, survivor.output()
        bound = [rows[point] for point in BIND_POINTS]
        handed = all(row["handed_at"] is not None for row in bus.rows(bound))
        return handed and bus.sql(left)[0]["n"] == 0

    wait_until(done, 60.0, "everything is bound, handed over and told")


def test_a_consumer_killed_anywhere_loses_nothing_and_binds_once(crimes: Crimes) -> None:
    """Cases 151 and 159: one effect of on_bound, one next step; the others at least once."""
    bus = crimes.bus
    advanced = [row["intent_id"] for row in bus.sql("SELECT intent_id FROM advance")]
    bound = sorted(crimes.rows[point].intent_id for point in BIND_POINTS)
    assert sorted(advanced) == bound
    put = bus.sql("SELECT intent_id FROM {s}.intent WHERE tool <> :tool", tool=TOOL)
    assert sorted(row["intent_id"] for row in put) == [f"after-{name}" for name in bound]
    for point in BIND_POINTS:
        assert crimes.calls("on_bound", point) >= 1, point
        assert crimes.calls("after_bound", point) >= 1, point
    for point in TELL_POINTS:
        assert crimes.calls("on_told", point) >= 1, point
    for point, kind in TWICE.items():
        assert crimes.calls(kind, point) >= 2, point
    failed = "SELECT name FROM {s}.event WHERE name LIKE '%failed'"
    assert bus.sql(failed) == []
