"""What RQ thinks of a token: abandoned, over its time limit. No row and no call hears of it."""

import pytest
from redis import Redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.serializers import JSONSerializer

from ackbox.outbox.intent import Intent
from ackbox.outbox.shell.redis_bus import DRAIN_FUNCTION, queue_name
from ackbox.workers.shell.rq_worker import AckboxWorker

from ..integration.valkey_process import ValkeyProcess
from ..support.waiting import wait_until
from .support import Bus
from .support_children import Child

pytestmark = pytest.mark.acceptance


def _queue(valkey: ValkeyProcess) -> Queue:
    return Queue(queue_name("main"), connection=valkey.client, serializer=JSONSerializer)


def _ring(queue: Queue, limit_seconds: int = -1) -> Job:
    """Put a token as the relay does, but for its settings."""
    args = ("default", "main", 10)
    return queue.enqueue_call(
        DRAIN_FUNCTION, args=args, timeout=limit_seconds, result_ttl=0, failure_ttl=600
    )


@pytest.mark.parametrize("cleaned", [True, False], ids=["cleaned", "left alone"])
def test_an_abandoned_token_moves_no_row(
    cleaned: bool, own_bus: Bus, valkey: ValkeyProcess
) -> None:
    """Case 3: committed stays, marked is unknown, unmarked commits; RQ's clean-up or not."""
    bus = own_bus
    bus.roles()
    victim = bus.worker("main")
    committed = bus.put("keyless", "main")
    bus.wait_state(committed, "committed")
    gate = bus.folder / "gate"
    claimed = bus.put("gated", "main", gate=str(gate))
    (called,), _ = bus.open_calls("main", 1)
    bus.wait_state(claimed, "executing")
    victim.kill()
    if cleaned:
        _abandon_a_token(valkey)
    gate.touch()
    bus.wait_parked(called)
    bus.worker("main")
    bus.wait_state(claimed, "committed")
    assert bus.states([committed, called]) == ["committed", "indeterminate"]
    assert bus.effects(committed, called, claimed) == [1, 1, 1]
    assert [row["sends"] for row in bus.rows([committed, called, claimed])] == [1, 1, 1]
    assert bus.events(committed, "divergence") == []


def _abandon_a_token(valkey: ValkeyProcess) -> None:
    """Leave a token as a dead worker leaves it, and run RQ's clean-up in a second worker."""
    queue = _queue(valkey)
    token = _ring(queue)
    queue.remove(token)
    token.set_status(JobStatus.STARTED)
    valkey.client.zadd(queue.started_job_registry.key, {f"{token.id}:dead": 1})
    worker = AckboxWorker([queue.name], connection=Redis.from_url(valkey.url))
    worker.clean_registries()  # type: ignore[no-untyped-call]
    worker.connection.close()
    assert worker.counts["abandoned_token"] == 1
    assert token.id in queue.failed_job_registry


def test_a_tokens_time_limit_ends_no_call(own_bus: Bus, valkey: ValkeyProcess) -> None:
    """Case 13: the limit passes while five calls read: none is cut off, none is sent again."""
    bus = own_bus
    bus.roles("reaper", "reconciler", "consumer")
    worker = bus.worker("main")
    gate = bus.folder / "gate"
    intents = bus.put_many("patient", "main", 5, gate=str(gate))
    token = _ring(_queue(valkey), limit_seconds=1)
    bus.wait_effect(*intents)
    _wait_for_the_end_of(token, worker)
    _wait_seconds_of_the_store(bus, intents, seconds=2.0)
    assert bus.states(intents) == ["awaiting_ack"] * 5
    gate.touch()
    bus.wait_states(intents, "committed")
    assert bus.effects(*intents) == [1] * 5
    assert {(row["attempts"], row["sends"]) for row in bus.rows(intents)} == {(1, 1)}
    assert "JobTimeoutException" not in worker.output()


def _wait_for_the_end_of(token: Job, worker: Child) -> None:
    wait_until(lambda: "main: Job OK" in worker.output(), message="the token has run")
    assert token.timeout == 1


def _wait_seconds_of_the_store(bus: Bus, intents: list[Intent], seconds: float) -> None:
    """Wait until the database's clock is that far past the last send."""
    age = (
        "SELECT extract(epoch FROM {s}.clock_now() - max(at)) AS age FROM {s}.event"
        " WHERE name = 'send' AND seq = ANY(:seqs)"
    )
    seqs = [intent.seq for intent in intents]
    wait_until(lambda: bus.sql(age, seqs=seqs)[0]["age"] > seconds, message="the limit has passed")
