"""Every shipped trace on the Postgres stores: each reply, each row and the end as in memory."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ackbox.outbox.defaults import DEFAULTS, Limits
from ackbox.sim.shell.comparing import Difference, require_same
from ackbox.sim.shell.postgres_replay import replay_on_postgres
from ackbox.sim.shell.postgres_store import PostgresWorldStore
from ackbox.sim.shipped import shipped, shipped_names

from ..support.databases import Databases
from ..support.services import migrate_template


@pytest.fixture(scope="module")
def store(databases: Databases) -> Iterator[PostgresWorldStore]:
    """Give one store for all traces; each begins it anew."""
    url = databases.create(databases.template(migrate_template))
    store = PostgresWorldStore(url, "ackbox", DEFAULTS)
    yield store
    store.close()
    databases.drop(url)


@pytest.mark.parametrize("name", shipped_names())
def test_a_shipped_trace_ends_alike_on_postgres(name: str, store: PostgresWorldStore) -> None:
    """Property: no reply, row, event, observation, gate or batch differs; the end is right."""
    replayed = replay_on_postgres(shipped(name), store)
    assert replayed.complaints == ()
    assert replayed.replies > 5


def test_a_store_under_other_rules_is_found_out(
    store: PostgresWorldStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: Postgres believes in an unlimited number of sends; the trace's step is named."""
    begin = PostgresWorldStore.begin

    def begin_otherwise(self: PostgresWorldStore, limits: Limits) -> None:
        begin(self, replace(limits, backoff_base_seconds=limits.backoff_base_seconds * 2))

    monkeypatch.setattr(PostgresWorldStore, "begin", begin_otherwise)
    (complaint,) = replay_on_postgres(shipped("retried_is_not_bound"), store).complaints
    assert complaint.startswith("step ")
    assert "row 1.ready_at differs" in complaint


def test_a_row_that_somebody_changed_is_found_out(
    store: PostgresWorldStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the last write is followed by another one, on Postgres only."""
    rows = PostgresWorldStore.rows

    def rows_changed(self: PostgresWorldStore) -> dict[int, dict[str, object]]:
        self.sql("UPDATE {schema}.intent_state SET wanted = false")
        return rows(self)

    monkeypatch.setattr(PostgresWorldStore, "rows", rows_changed)
    (complaint,) = replay_on_postgres(shipped("lost_token"), store).complaints
    assert complaint.endswith("row 1.wanted differs: memory True, postgres False")


def test_what_a_call_was_asked_to_do_is_never_told() -> None:
    """Arguments are compared, and a difference in them names the place alone."""
    with pytest.raises(Difference) as told:
        require_same("intent", {"args": {"to": "a@example.org"}}, {"args": {"to": "b@example.org"}})
    assert str(told.value) == "intent args.to differs"
