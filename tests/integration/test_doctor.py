"""Doctor on real servers: what is off is found, with what to type; what is on is left alone."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from rq import Queue
from rq.serializers import PickleSerializer
from sqlalchemy.engine import make_url

from ackbox.app.parts import host_name
from ackbox.outbox.commands import Park
from ackbox.outbox.outcome import Applied
from ackbox.outbox.shell.claim_store import Incarnation, served_name

from ..support.command_line import CommandLine, bare_line
from ..support.seed import KEYLESS, TOOLS, Seeded
from .valkey_process import ValkeyProcess

ALL_TOOLS = tuple(served_name(tool.tool, tool.version) for tool in TOOLS)
ROLES = ("relay", "reaper", "reconciler", "consumer")


@pytest.fixture
def seeded(database_url: str) -> Iterator[Seeded]:
    """Give an outbox with one living worker."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


@pytest.fixture
def line(
    database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> CommandLine:
    """Give a command line on both services."""
    return bare_line(
        monkeypatch, tmp_path, ACKBOX_DATABASE_URL=database_url, ACKBOX_REDIS_URL=redis_url
    )


def found(line: CommandLine, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the findings by check; exit code and `ok` agree with the levels."""
    ended = line.run("doctor", "--json", *arguments)
    document = ended.json()
    failed = any(one["level"] == "FAIL" for one in document["findings"])
    assert (ended.code, document["ok"]) == (int(failed), not failed)
    for one in document["findings"]:
        assert one["next_step"] or one["level"] == "ok", one
    return {one["check"]: one for one in document["findings"]}


def start_roles(seeded: Seeded, *roles: str, tools: tuple[str, ...] = ALL_TOOLS) -> None:
    """Let processes of these roles beat."""
    for role in roles:
        seeded.claims.register(Incarnation(uuid.uuid4(), role, "here", 1, tools))


def test_a_complete_set_up_is_fine(line: CommandLine, seeded: Seeded) -> None:
    """Every role beats, the servers are safe: exit 0, and each line says what was seen."""
    start_roles(seeded, *ROLES)
    checks = found(line)
    assert {one["level"] for one in checks.values()} <= {"ok", "WARN"}
    assert checks["schema"]["text"].startswith("schema ackbox at ")
    assert "relay 1, reaper 1, reconciler 1, consumer 1, worker 1" in checks["roles"]["text"]
    plain = line.run("doctor")
    assert plain.code == 0
    assert "  ok    PostgreSQL " in plain.out


def test_missing_roles_are_failures(line: CommandLine, seeded: Seeded) -> None:
    """A role that never ran, and one that stopped beating, each with what is lost."""
    start_roles(seeded, "relay", "reaper")
    seeded.advance(200)
    start_roles(seeded, "relay")
    checks = found(line)
    assert "role_relay" not in checks
    assert "has beaten for 3 minutes" in checks["role_reaper"]["text"]
    assert checks["role_reconciler"]["text"] == (
        "no reconciler has beaten yet: unknowns are not settled"
    )
    assert checks["role_consumer"]["next_step"].startswith("ackbox up --roles relay,")


def test_a_stopped_worker_is_missed_at_once(line: CommandLine, seeded: Seeded) -> None:
    """A row that says that its process ended on purpose is no living process."""
    seeded.claims.stop(seeded.owner)
    assert found(line)["role_worker"]["level"] == "FAIL"


def test_commits_that_can_vanish(line: CommandLine, seeded: Seeded) -> None:
    """synchronous_commit=off, wherever it was set, is a failure with the statement to run."""
    name = make_url(line.environ["ACKBOX_DATABASE_URL"]).database
    seeded.sql(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    finding = found(line)["synchronous_commit"]
    assert finding["level"] == "FAIL"
    assert "an acknowledged intent can vanish" in finding["text"]
    assert finding["next_step"].startswith("ALTER ROLE ")


def test_sessions_that_are_ended_while_idle(line: CommandLine, seeded: Seeded) -> None:
    """A server that ends idle sessions cuts what ackbox keeps open."""
    name = make_url(line.environ["ACKBOX_DATABASE_URL"]).database
    seeded.sql(f"ALTER DATABASE \"{name}\" SET idle_session_timeout = '60s'")
    assert found(line)["idle_session_timeout"]["level"] == "WARN"


def test_a_database_that_is_away_leaves_the_rest_checked(line: CommandLine, seeded: Seeded) -> None:
    """One failure that names it without its password; Redis is looked at all the same."""
    line.environ["ACKBOX_DATABASE_URL"] = "postgresql://u:hunter2@127.0.0.1:1/d"
    checks = found(line)
    assert checks["postgres_reachable"]["level"] == "FAIL"
    assert "hunter2" not in str(checks)
    assert checks["redis"]["level"] == "ok"
    assert "schema" not in checks


def test_a_direct_url_that_leads_nowhere(line: CommandLine, seeded: Seeded) -> None:
    """LISTEN needs a session of its own."""
    checks = found(line, "--database-direct-url", "postgresql://u@127.0.0.1:1/d")
    assert checks["direct_url"]["level"] == "FAIL"
    assert "flag --database-direct-url" in checks["direct_url"]["next_step"]


def test_a_schema_that_does_not_fit(line: CommandLine, empty_database_url: str) -> None:
    """A database without the schema fails with `ackbox migrate`; rows are not asked for."""
    line.environ["ACKBOX_DATABASE_URL"] = empty_database_url
    checks = found(line)
    assert checks["schema"]["next_step"] == "ackbox migrate"
    assert "waiting" not in checks


@pytest.fixture
def valkey(tmp_path: Path, line: CommandLine) -> Iterator[ValkeyProcess]:
    """Run a Redis of the test's own, which the command line uses."""
    server = ValkeyProcess(tmp_path)
    server.start()
    line.environ["ACKBOX_REDIS_URL"] = server.url
    yield server
    server.close()


def test_a_redis_that_evicts(line: CommandLine, seeded: Seeded, valkey: ValkeyProcess) -> None:
    """Case 133: evicted tokens delay, so that it is a warning."""
    valkey.client.config_set("maxmemory-policy", "allkeys-lru")
    finding = found(line)["redis_eviction"]
    assert (finding["level"], finding["next_step"]) == (
        "WARN", "CONFIG SET maxmemory-policy noeviction",
    )  # fmt: skip


def test_a_redis_that_is_full_or_gone(
    line: CommandLine, seeded: Seeded, valkey: ValkeyProcess
) -> None:
    """Case 135: a full Redis wakes nobody; a dead one neither. Nothing is lost by it."""
    valkey.fill()
    assert found(line)["redis_writes"]["level"] == "FAIL"
    valkey.kill()
    finding = found(line)["redis_reachable"]
    assert finding["level"] == "FAIL"
    assert "nothing is lost meanwhile" in finding["next_step"]


def test_no_redis_at_all(line: CommandLine, seeded: Seeded) -> None:
    """Planners need none; workers do."""
    del line.environ["ACKBOX_REDIS_URL"]
    assert found(line)["redis_reachable"]["next_step"].startswith("set ACKBOX_REDIS_URL")


def test_jobs_that_are_not_ours(line: CommandLine, seeded: Seeded) -> None:
    """A pickled job on a lane's queue means that somebody else writes there."""
    with Redis.from_url(line.environ["ACKBOX_REDIS_URL"]) as client:
        queue = Queue("ackbox.default", connection=client, serializer=PickleSerializer)
        queue.enqueue("operator.add", 1, 2)
        assert found(line)["serializer"]["level"] == "FAIL"
        queue.empty()  # type: ignore[no-untyped-call]
    assert found(line)["serializer"]["level"] == "ok"


def test_tools_that_nobody_has(line: CommandLine, seeded: Seeded) -> None:
    """Rows of an unserved tool are a failure; a tool of the settings without worker a warning."""
    line.run("put", "ghost", "{}", "--id", "x", "--no-worker-yet")
    checks = found(line)
    assert checks["tool_unserved"]["level"] == "FAIL"
    assert "ghost version 1" in checks["tool_unserved"]["text"]
    Path("doctor_tools.py").write_text(
        'from ackbox import tool\n\n@tool("mine")\ndef mine(call):\n    return None\n'
    )
    seeded.sql("UPDATE {schema}.intent_state SET ready_at = ready_at + interval '1 hour'")
    finding = found(line, "--tools", "doctor_tools")["tool_unserved"]
    assert (finding["level"], finding["next_step"]) == (
        "WARN", "restart the workers with these settings: ackbox worker",
    )  # fmt: skip


def test_tools_that_no_reconciler_has(line: CommandLine, seeded: Seeded) -> None:
    """A reconciler without the tool's code can neither probe nor send again."""
    start_roles(seeded, "relay", "reaper", "consumer")
    start_roles(seeded, "reconciler", tools=())
    lines = line.run("doctor").out
    assert "no living reconciler has keyed:" in lines
    assert "no living reconciler has keyless:" not in lines
    start_roles(seeded, "reconciler")
    assert "tool_unreconciled" not in found(line)


def test_a_background_role_with_the_tools_is_no_worker(line: CommandLine, seeded: Seeded) -> None:
    """Each role's row lists the tools that it has loaded; only workers take rows."""
    start_roles(seeded, *ROLES)
    seeded.claims.stop(seeded.owner)
    seeded.put("waiting")
    assert found(line)["tool_unserved"]["level"] == "FAIL"


def test_tools_whose_unknowns_wait_for_a_person(line: CommandLine, seeded: Seeded) -> None:
    """A served tool without key and probe is named; one with a probe is not."""
    lines = line.run("doctor").out
    assert "keyless has no key, no probe" in lines
    assert "probed has no key" not in lines


def test_what_waits_too_long_and_for_whom(line: CommandLine, seeded: Seeded) -> None:
    """A late lane, parked rows and open divergences, each with the command to go on with."""
    claim = seeded.unknown("lost")
    seeded.unknowns.park(Park(claim, "no_rung_left", 300.0))
    seeded.record(seeded.false_failed("a", x=1), Applied("late"))
    seeded.put("slow", KEYLESS)
    seeded.advance(100)
    checks = found(line)
    assert checks["lane_late"]["next_step"] == "ackbox worker --lanes slow"
    assert "the oldest for" in checks["lane_late"]["text"]
    assert checks["parked"]["next_step"] == "ackbox unknowns"
    assert checks["divergences"]["level"] == "WARN"


def test_a_fault_plan_is_a_failure(line: CommandLine, seeded: Seeded) -> None:
    """Workers that kill themselves on purpose belong to no production."""
    line.environ["ACKBOX_FAULT_PLAN"] = "/nowhere/plan.json"
    assert found(line)["fault_plan"]["next_step"] == "unset ACKBOX_FAULT_PLAN"


def test_a_variable_that_is_no_setting(line: CommandLine, seeded: Seeded) -> None:
    """A typing error in the environment would be silent otherwise."""
    line.environ["ACKBOX_SCHMEA"] = "plans"
    assert found(line)["unknown_variable"]["next_step"] == "write ACKBOX_SCHEMA instead"


def test_a_health_check_asks_for_one_role_of_this_host(line: CommandLine, seeded: Seeded) -> None:
    """`--here` is about this host's processes only, and about nothing else."""
    start_roles(seeded, "relay")
    assert line.run("doctor", "--here", "relay").code == 1
    seeded.claims.register(Incarnation(uuid.uuid4(), "relay", host_name(), 1))
    ended = line.run("doctor", "--here", "relay", "--json")
    assert (ended.code, ended.json()) == (0, {"ok": True, "role": "relay"})
    assert line.run("doctor", "--here", "boss").code == 2
