"""A real PgBouncer in transaction mode between everything and PostgreSQL: declared, and not."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import make_url, text

from ackbox.outbox.intent import Intent
from ackbox.outbox.pooler import UndeclaredPooler
from ackbox.planner.shell.async_planner import AsyncPlanner
from ackbox.planner.shell.planner import Planner

from ..support.pgbouncer import MISSING, PROGRAM, pgbouncer
from ..support.waiting import DEADLINE_SECONDS, wait_until
from .support import ROLES, Bus, unique
from .support_tools import TOOL_URL

pytestmark = [pytest.mark.acceptance, pytest.mark.skipif(PROGRAM is None, reason=MISSING)]
LANE = "main"
DECLARED = {"ACKBOX_DATABASE_POOLER": "transaction"}
WRONG_ENVIRONMENT = 7
Findings = dict[str, dict[str, str]]


def _direct(bus: Bus) -> str:
    return bus.database.engine.url.render_as_string(hide_password=False)


def _run(bus: Bus, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours to its end."""
    return subprocess.run(
        [sys.executable, "-m", "ackbox", *command], env=bus.environ(ACKBOX_LANES=LANE, **environ),
        capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS,
    )  # fmt: skip


def _doctor(bus: Bus, **environ: str) -> Findings:
    """Return what doctor finds, by the name of the check."""
    told = json.loads(_run(bus, "doctor", "--json", **environ).stdout)
    return {finding["check"]: finding for finding in told["findings"]}


@contextmanager
def _worker(bus: Bus, **environ: str) -> Iterator[None]:
    """Run `ackbox worker` with one process."""
    log = bus.folder / "worker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ackbox", "worker", "--processes", "1"],
            env=bus.environ(ACKBOX_LANES=LANE, **environ), stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        code = process.wait(DEADLINE_SECONDS)
        assert code == 0, log.read_text()


def _pool_tools(bus: Bus) -> dict[str, str]:
    """Name the tools to a pool's processes, which inherit no variable of a test."""
    lines = ["import os", f"os.environ['{TOOL_URL}'] = {bus.provider.url!r}",
             "from support_tools import build"]  # fmt: skip
    (bus.folder / "pooled_tools.py").write_text("\n".join(lines) + "\n")
    path = os.pathsep.join([str(bus.folder), bus.environ()["PYTHONPATH"]])
    return {"ACKBOX_TOOLS": "pooled_tools:build", "PYTHONPATH": path}


def _limit_sessions(bus: Bus) -> None:
    """Give the database's sessions the limits that no start-up option carries past a pooler."""
    name = make_url(_direct(bus)).database
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
        change = text(f"ALTER DATABASE \"{name}\" SET {setting} = '10s'")
        bus.database.run(lambda c, change=change: c.execute(change))  # type: ignore[misc]


def _put_half(count: int) -> list[Intent]:
    """Put by a planner that the environment alone tells where it is."""
    with Planner.connect() as planner:
        drafts = [
            planner.draft("keyless", {}, intent_id=unique(LANE), lane=LANE) for _ in range(count)
        ]
        with planner.transaction() as connection:
            return planner.put_many(drafts, on=connection)


async def _put_other_half(count: int) -> list[Intent]:
    """Put one by one from tasks of one event loop."""
    async with AsyncPlanner.connect() as planner:
        puts = (planner.put("keyless", {}, intent_id=unique(LANE), lane=LANE) for _ in range(count))
        return list(await asyncio.gather(*puts))


def test_behind_a_declared_pooler_everything_moves(
    own_bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 129: put, claim, settle and bind by sessions that change hands; one effect each."""
    bus = own_bus
    _limit_sessions(bus)
    with pgbouncer(_direct(bus)) as url:
        environ = {**DECLARED, "ACKBOX_DATABASE_URL": url,
                   "ACKBOX_DATABASE_DIRECT_URL": _direct(bus)}  # fmt: skip
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        bus.start("roles", *ROLES, nursery=None, **environ)
        with _worker(bus, **environ, **_pool_tools(bus)):
            intents = [*_put_half(25), *asyncio.run(_put_other_half(25))]
            bus.wait_states(intents, "committed")
            wait_until(lambda: all(r["bound_at"] for r in bus.rows(intents)), message="all bound")
            assert _listens(bus)
        assert bus.effects(*intents) == [1] * 50
        found = _doctor(bus, **environ)
        assert found["pooler"]["level"] == "ok"
        assert found["schema"]["level"] == "ok"
        assert not {"direct_url", "session_limits", "postgres_reachable"} & set(found)


def _listens(bus: Bus) -> bool:
    """Return whether the relay has a session of its own for LISTEN."""
    return bool(bus.sql(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'relay listen'"
    ))  # fmt: skip


def test_what_needs_a_session_says_so_where_only_the_pooler_is_known(own_bus: Bus) -> None:
    """Case 129: migrations are refused, doctor fails, and the relay says it once and polls."""
    bus = own_bus
    with pgbouncer(_direct(bus)) as url:
        environ = {**DECLARED, "ACKBOX_DATABASE_URL": url}
        relay = bus.start("roles", "relay", nursery=None, **environ)
        refused = _run(bus, "migrate", "--check", **environ)
        assert refused.returncode == WRONG_ENVIRONMENT
        assert "ACKBOX_DATABASE_DIRECT_URL" in refused.stderr
        found = _doctor(bus, **environ)
        assert (found["pooler"]["level"], found["direct_url"]["level"]) == ("ok", "FAIL")
        assert "ACKBOX_DATABASE_DIRECT_URL" in found["direct_url"]["next_step"]
        assert "ALTER ROLE" in found["session_limits"]["next_step"]
        wait_until(lambda: "listen_impossible" in relay.output(), message="the relay says so")
        assert relay.output().count("listen_impossible") == 1


@pytest.mark.parametrize("ignored", [(), ("options",)], ids=["refuses_options", "drops_options"])
def test_an_undeclared_pooler_is_refused_before_anything_is_claimed(
    own_bus: Bus, ignored: tuple[str, ...]
) -> None:
    """Case 129: worker, planner and doctor name the pooler and the setting; nothing is sent."""
    bus = own_bus
    bus.roles("relay")
    intents = bus.put_many("keyless", LANE, 5)
    with pgbouncer(_direct(bus), *ignored) as url:
        ended = _run(bus, "worker", ACKBOX_DATABASE_URL=url)
        assert ended.returncode == WRONG_ENVIRONMENT
        single = bus.start("worker", LANE, ACKBOX_LANES=LANE, ACKBOX_DATABASE_URL=url)
        assert single.wait() != 0
        found = _doctor(bus, ACKBOX_DATABASE_URL=url)["pooler"]
        assert found["level"] == "FAIL"
        for said in (ended.stderr, found["next_step"], single.output()):
            assert "ACKBOX_DATABASE_POOLER=transaction" in said
        if not ignored:
            with Planner.connect(url) as planner, pytest.raises(UndeclaredPooler):
                planner.put("keyless", {}, intent_id=unique(LANE), lane=LANE)
    assert set(bus.states(intents)) == {"queued"}
    assert bus.effects(*intents) == [0] * 5
