"""What Redis promises: that it answers, evicts nothing, takes writes, and holds our kind of token.

Losing all of Redis costs time and nothing else, so that little here is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redis import Redis
from redis.exceptions import RedisError
from rq import Queue
from rq.exceptions import DeserializationError, NoSuchJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from ...outbox.shell.redis_bus import bus_client, queue_name, results_queue_name
from ..settings import Settings
from .finding import FAIL, OK, WARN, Finding

_SOCKET_SECONDS = 2.0
_LOOK_AT = 3
_TEST_KEY = "ackbox.doctor"
_TEST_KEY_SECONDS = 5
_AWAY = (RedisError, OSError)


def check_redis(settings: Settings) -> Iterator[Finding]:
    """Yield what Redis says of itself."""
    if settings.redis_url is None:
        text = "no Redis is configured: planners work, workers cannot run"
        yield Finding(FAIL, "redis_reachable", text, "set ACKBOX_REDIS_URL=redis://host:6379/0")
        return
    client = bus_client(settings.redis_url.reveal(), _SOCKET_SECONDS)
    try:
        facts: dict[str, Any] = client.info()
        yield from _server(facts, client)
        yield from _writes(client)
        yield from _tokens(client, settings)
    except _AWAY as error:
        text = f"Redis does not answer ({type(error).__name__}); {settings.redis_url}"
        yield Finding(FAIL, "redis_reachable", text, _correct(settings))
    finally:
        client.close()


def _correct(settings: Settings) -> str:
    source = settings.source_of("redis_url")
    named = "" if source == "default" else f", or correct redis_url ({source})"
    return f"start that server{named}; nothing is lost meanwhile"


def _server(facts: dict[str, Any], client: Redis) -> Iterator[Finding]:
    name = "Valkey" if "valkey_version" in facts else "Redis"
    version = facts.get("valkey_version") or facts.get("redis_version")
    policy = facts.get("maxmemory_policy", "unknown")
    if policy not in ("noeviction", "unknown"):
        text = f"{name} {version} evicts wake tokens (maxmemory-policy {policy}): work is delayed"
        yield Finding(WARN, "redis_eviction", text, "CONFIG SET maxmemory-policy noeviction")
        return
    text = f"{name} {version}: {policy}, {_persistence(facts, client)}"
    yield Finding(OK, "redis", f"{text} (losing it delays, never loses)")


def _persistence(facts: dict[str, Any], client: Redis) -> str:
    if not facts.get("aof_enabled"):
        return "not append-only"
    try:
        found: Any = client.config_get("appendfsync")
    except RedisError:  # managed servers forbid CONFIG
        return "append-only"
    return f"append-only {found.get('appendfsync', '')}".strip()


def _writes(client: Redis) -> Iterator[Finding]:
    try:
        client.set(_TEST_KEY, "1", ex=_TEST_KEY_SECONDS)
    except RedisError as error:
        text = f"Redis refuses writes ({str(error).split(' ', 1)[0]}): no worker is woken"
        step = "give it memory (CONFIG SET maxmemory ...), or point redis_url at the primary"
        yield Finding(FAIL, "redis_writes", text, step)


def _tokens(client: Redis, settings: Settings) -> Iterator[Finding]:
    names = [queue_name(lane, settings.outbox) for lane in settings.lanes]
    foreign = [
        name
        for name in [*names, results_queue_name(settings.outbox)]
        if not all(_is_json(client, job_id) for job_id in _first_jobs(client, name))
    ]
    for name in foreign:
        text = f"queue {name} holds jobs that are not JSON: somebody else writes to it"
        step = f"rq empty {name} (the relay rings again), and find the writer"
        yield Finding(FAIL, "serializer", text, step)
    if not foreign:
        yield Finding(OK, "serializer", "wake tokens are JSON")


def _first_jobs(client: Redis, name: str) -> list[str]:
    return Queue(name, connection=client, serializer=JSONSerializer).get_job_ids(0, _LOOK_AT)


def _is_json(client: Redis, job_id: str) -> bool:
    try:
        job = Job.fetch(job_id, connection=client, serializer=JSONSerializer)
        return bool(job.func_name)
    except NoSuchJobError:
        return True
    except (DeserializationError, ValueError, TypeError):
        return False
