"""The reconciler's own death: a resend is an attempt like any other, and can be lost like one."""

import pytest

from ackbox.outbox.intent import Intent

from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import Bus, unique

pytestmark = pytest.mark.acceptance


def _owner_of(bus: Bus, intent: Intent) -> str:
    """Return the role of the process that holds the row."""
    statement = "SELECT role FROM {s}.worker WHERE worker_id = :owner"
    (row,) = bus.sql(statement, owner=bus.row(intent)["owner"])
    return str(row["role"])


def test_a_reconciler_killed_in_its_resend_is_followed_by_another(own_bus: Bus) -> None:
    """Cases 9c, 49: the resend expires, and the next one meets the key: one effect, no person."""
    bus = own_bus
    bus.roles("relay", "reaper")
    victim = bus.roles("reconciler")
    bus.worker("main")
    name = unique("main")
    bus.provider.fault("drop_before_effect", name)
    bus.provider.fault("delay_before_effect", name, seconds=3.5)
    intent = bus.put("keyed", "main", name)
    wait_until(lambda: bus.events(intent, "resend"), DEADLINE_SECONDS, "it is sent again")
    assert _owner_of(bus, intent) == "reconciler"
    victim.kill()
    wait_until(lambda: bus.events(intent, "expire"), DEADLINE_SECONDS, "the resend has expired")
    bus.roles("reconciler")
    bus.wait_state(intent, "committed")
    assert bus.effects(intent) == [1]
    assert bus.row(intent)["resends"] == 2
    assert bus.events(intent, "parked") == []


def test_four_reconcilers_at_once_settle_each_row_once(own_bus: Bus) -> None:
    """Case 139: the lease on a look, the lock and the fence leave one resend and one answer."""
    bus = own_bus
    bus.roles("relay", "reaper")
    bus.worker("main")
    names = [unique("main") for _ in range(12)]
    for name in names:
        bus.provider.fault("drop_after_effect", name)
    half = len(names) // 2
    keyed = [bus.put("keyed", "main", name) for name in names[:half]]
    probed = [bus.put("probed", "main", name) for name in names[half:]]
    bus.wait_states([*keyed, *probed], "indeterminate")
    for _ in range(4):
        bus.roles("reconciler")
    bus.wait_states([*keyed, *probed], "committed")
    assert bus.effects(*keyed, *probed) == [1] * len(names)
    assert {row["resends"] for row in bus.rows(keyed)} == {1}
    assert all(len(bus.events(intent, "acknowledge")) == 1 for intent in (*keyed, *probed))
