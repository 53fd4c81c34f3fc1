"""The bus that rings lanes: the shape of a token, and a Redis that fails in every way it can."""

import signal
from time import monotonic

import pytest
from rq import Queue
from rq.job import JOB_ID_PATTERN, Job
from rq.serializers import JSONSerializer

from ackbox.outbox.shell.redis_bus import (
    BACKOFF_CAP_SECONDS,
    DRAIN_FUNCTION,
    RESULTS_FUNCTION,
    TOKENS_PER_QUEUE,
    TokenBus,
    bus_client,
    parse_queue_name,
    queue_name,
    results_queue_name,
)

from .valkey_process import ValkeyProcess, eventually


def tokens(valkey: ValkeyProcess, name: str) -> list[Job]:
    """Return the tokens that wait in a queue."""
    return Queue(name, connection=valkey.client, serializer=JSONSerializer).jobs


def test_default_outbox_is_left_out_of_the_queue_name() -> None:
    """A queue's name says lane and outbox, and can be read back."""
    assert queue_name("mail") == "ackbox.mail"
    assert queue_name("mail", "billing") == "ackbox.billing.mail"
    assert results_queue_name() == "ackbox.results"
    assert results_queue_name("billing") == "ackbox.billing.results"
    assert parse_queue_name("ackbox.mail") == ("default", "mail")
    assert parse_queue_name("ackbox.billing.mail") == ("billing", "mail")


@pytest.mark.parametrize(
    "name", ["mail", "ackbox", "ackbox.results", "ackbox.billing.results", "ackbox.a.b.c", "x.mail"]
)
def test_other_queues_are_no_lanes(name: str) -> None:
    """A results queue and a foreign queue name no lane."""
    assert parse_queue_name(name) is None


@pytest.mark.parametrize("lane", ["results", "a.b", "", "a b", "a:b", "ä", "x" * 65])
def test_a_lane_that_no_queue_can_carry_is_refused(lane: str, bus: TokenBus) -> None:
    """A bad lane raises where a name is built and is only counted where a loop rings."""
    with pytest.raises(ValueError, match="lane"):
        queue_name(lane)
    assert bus.ring(lane, 10) is False
    assert bus.counts == {"invalid": 1}


def test_a_token_is_a_wake_up_and_nothing_else(valkey: ValkeyProcess, bus: TokenBus) -> None:
    """Case 141: no time limit, no retry, no kept result, a new id; args are outbox, lane, limit."""
    assert bus.ring("mail", 25)
    assert bus.ring("mail", 25)
    first, second = tokens(valkey, "ackbox.mail")
    assert first.func_name == DRAIN_FUNCTION
    assert tuple(first.args) == ("default", "mail", 25)
    assert (first.timeout, first.result_ttl, first.retries_left) == (-1, 0, None)
    assert first.failure_ttl is not None
    assert first.failure_ttl <= 60
    assert first.id != second.id
    assert JOB_ID_PATTERN.fullmatch(first.id)


def test_a_results_token_names_the_consumer(valkey: ValkeyProcess) -> None:
    """The result queue of a named outbox gets tokens that carry the outbox only."""
    bus = TokenBus(valkey.url, "billing")
    assert bus.ring_results()
    (token,) = tokens(valkey, "ackbox.billing.results")
    assert token.func_name == RESULTS_FUNCTION
    assert tuple(token.args) == ("billing",)
    bus.close()


def test_a_forged_results_token_wakes_and_raises_nothing(
    valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """An id that is no text would end the thread that waits for results."""
    valkey.client.rpush("rq:queue:ackbox.results", b"\xff\x00")
    assert bus.take_results()
    assert bus.ring_results()
    assert bus.take_results()
    assert not valkey.client.keys("rq:job:*")


def test_rings_pile_up_to_a_few_tokens_only(valkey: ValkeyProcess, bus: TokenBus) -> None:
    """A lane that nobody drains holds a few tokens however often it is rung."""
    assert all(bus.ring("mail", 10) for _ in range(20))
    assert len(tokens(valkey, "ackbox.mail")) == TOKENS_PER_QUEUE
    assert bus.counts == {"rung": TOKENS_PER_QUEUE, "enough": 20 - TOKENS_PER_QUEUE}


def test_a_dead_redis_is_an_answer_and_is_then_left_alone(
    valkey: ValkeyProcess, bus: TokenBus
) -> None:
    """Case 137: False, no exception; until the back-off is over Redis is not asked again."""
    assert bus.ring("mail", 10)
    valkey.kill()
    assert bus.ring("mail", 10) is False
    assert bus.failures_in_a_row == 1
    assert bus.ring("mail", 10) is False
    assert bus.counts["left_alone"] == 1
    valkey.start()
    eventually(lambda: bus.ring("mail", 10), "the bus reaches the new server")
    assert bus.failures_in_a_row == 0
    assert len(tokens(valkey, "ackbox.mail")) == 1


def test_the_back_off_grows_to_its_cap_and_no_further() -> None:
    """Many failures in a row never leave Redis alone for longer than the cap."""
    now = [0.0]
    bus = TokenBus("redis://127.0.0.1:1/0", clock=lambda: now[0])
    waits = []
    for _ in range(12):
        assert bus.ring("mail", 10) is False
        waits.append(bus.retry_in_seconds)
        now[0] += bus.retry_in_seconds
    assert max(waits) <= BACKOFF_CAP_SECONDS
    assert waits[0] < 0.2 < BACKOFF_CAP_SECONDS / 2 <= waits[-1]
    bus.close()


def test_a_full_redis_is_an_answer(valkey: ValkeyProcess, bus: TokenBus) -> None:
    """Case 135: a refused write is False; rings go through as soon as there is room."""
    valkey.fill()
    assert bus.ring("mail", 10) is False
    assert tokens(valkey, "ackbox.mail") == []
    valkey.empty_out()
    eventually(lambda: bus.ring("mail", 10), "the bus rings again")


def test_a_read_only_redis_is_an_answer(valkey: ValkeyProcess, bus: TokenBus) -> None:
    """After a failover the old primary refuses writes: False, no exception."""
    valkey.client.replicaof("127.0.0.1", 1)
    assert bus.ring("mail", 10) is False
    assert bus.counts == {"failed": 1}


def test_a_frozen_redis_holds_up_no_caller(valkey: ValkeyProcess, bus: TokenBus) -> None:
    """A server that accepts and never answers costs one short time-out, then nothing."""
    valkey.signal(signal.SIGSTOP)
    try:
        started = monotonic()
        assert bus.ring("mail", 10) is False
        assert bus.ring("mail", 10) is False
        assert monotonic() - started < 30
    finally:
        valkey.signal(signal.SIGCONT)


def test_a_bus_shows_no_password() -> None:
    """The URL's password is in no representation."""
    bus = TokenBus("redis://:hunter2@127.0.0.1:1/0")
    assert "hunter2" not in repr(bus)


def test_a_malformed_url_is_refused_at_once() -> None:
    """A bus that could never work is not built."""
    with pytest.raises(ValueError, match="scheme"):
        bus_client("http://127.0.0.1/0")
