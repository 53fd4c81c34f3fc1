"""The embedded servers: durable, shared, stopped by their owner only, adopted after its death."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.identity import children_of
from ackbox.app.embedded.place import choose_place
from ackbox.app.embedded.server import EmbeddedServer
from ackbox.app.environment import borrowed_services
from ackbox.app.settings import load_settings
from ackbox.outbox.errors import StoreUnavailable

from ..support.embedded import (
    USER,
    driver_url,
    keep_something,
    kept,
    other_process,
    processes_of,
    scalar,
)
from ..support.services import remove_files

# --- What a user gets


def test_servers_answer_and_are_durable(data_dir: Path) -> None:
    """Both answer on the loopback interface and a socket, with durability switched on."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        for name, value in {
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "shared_buffers": "64MB",
            "max_connections": "200",
            "listen_addresses": "127.0.0.1",
            "TimeZone": "UTC",
        }.items():
            assert scalar(services.database_url, f"SHOW {name}") == value
        assert scalar(services.postgres.socket_url, "SELECT current_database()") == "ackbox"
        with redis.Redis.from_url(services.redis_url, decode_responses=True) as client:
            settings = client.config_get("*")
        assert settings["maxmemory-policy"] == "noeviction"
        assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "everysec")
        assert settings["bind"] == "127.0.0.1"
        assert services.describe().startswith("PostgreSQL 18.")
        assert "and Valkey 9." in services.describe()
        assert services.describe().endswith(f"embedded in {services.place.base}")


def test_data_and_ports_survive_a_restart(data_dir: Path) -> None:
    """A second start finds data, password and ports as they were."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        keep_something(services)
        urls = services.database_url, services.redis_url
    assert not any(process.is_alive() for process in processes_of(services))
    with EmbeddedServices.start_or_attach(data_dir) as services:
        assert kept(services) == ("7", "7")
        assert (services.database_url, services.redis_url) == urls


@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_killed_server_comes_back_on_its_port(name: str, data_dir: Path) -> None:
    """SIGKILL of a server and its children loses nothing that was acknowledged long ago."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        keep_something(services)
        server: EmbeddedServer = getattr(services, name)
        with redis.Redis.from_url(services.redis_url) as client:
            client.waitaof(1, 0, 5000)
        port, process = server.port, server.record.process
        family = [process, *children_of(process.pid)]
        server.kill()
        assert not any(member.is_alive() for member in family)
        assert not server.is_running()
        server.start()
        assert server.port == port
        assert kept(services) == ("7", "7")
        server.restart()
        assert server.port == port
        assert kept(services) == ("7", "7")


def test_owner_starts_again_what_died(data_dir: Path) -> None:
    """`ensure_running` brings back the dead server and leaves the living one alone."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        before = services.valkey.record.process
        services.postgres.kill()
        assert services.ensure_running() == ["PostgreSQL"]
        assert services.ensure_running() == []
        assert services.valkey.record.process == before
        assert scalar(services.database_url, "SELECT 1") == "1"


# --- Who stops them


def test_only_the_owner_stops_the_servers(data_dir: Path) -> None:
    """Processes that attach come and go; the servers stop with the one that started them."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        with other_process(data_dir) as (_, role):
            assert role == "user"
        attached = EmbeddedServices.attach(data_dir)
        again = EmbeddedServices.start_or_attach(data_dir)
        assert attached is not None
        for user in (attached, again):
            assert not user.is_owner
            assert user.ensure_running() == []
            user.stop()
        assert all(server.is_running() for server in services.servers)
    assert EmbeddedServices.attach(data_dir) is None


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, -signal.SIGINT), (None, 0)],
)
def test_servers_end_with_their_owner(
    number: signal.Signals | None, code: int, data_dir: Path
) -> None:
    """Normal exit, SIGTERM, SIGHUP and Ctrl-C leave no server behind."""
    with other_process(data_dir) as (owner, role):
        assert role == "owner"
        services = EmbeddedServices.attach(data_dir)
        assert services is not None
        servers = processes_of(services)
        assert all(server.is_alive() for server in servers)
        if number is not None:
            os.kill(owner.pid, number)
            owner.wait(30)
    assert owner.returncode == code
    assert not any(server.is_alive() for server in servers)


def test_owner_that_forgets_to_stop_stops_at_exit(data_dir: Path) -> None:
    """An owner that forgets to stop still stops its servers on the way out."""
    script = (
        "import sys\nfrom ackbox.app.embedded import EmbeddedServices\n"
        "EmbeddedServices.start_or_attach(sys.argv[1])"
    )
    command = [sys.executable, "-W", "error", "-c", script, str(data_dir)]
    subprocess.run(command, check=True, timeout=60)
    assert EmbeddedServices.attach(data_dir) is None


def test_a_forked_child_does_not_stop_them(data_dir: Path) -> None:
    """The duty to stop is not inherited by a child of the owner."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        child = os.fork()
        if child == 0:
            services.stop()
            os._exit(0 if not services.is_owner else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert all(server.is_running() for server in services.servers)


def test_killed_owner_leaves_servers_that_the_next_starter_adopts(data_dir: Path) -> None:
    """After SIGKILL of the owner the same servers go on, under an owner that stops them."""
    with other_process(data_dir) as (owner, role):
        assert role == "owner"
        owner.kill()
    with EmbeddedServices.start_or_attach(data_dir) as services:
        assert services.is_owner
        adopted = processes_of(services)
        keep_something(services)
        with other_process(data_dir) as (_, second_role):
            assert second_role == "user"
    assert not any(process.is_alive() for process in adopted)


def test_adopted_servers_are_the_same_processes(data_dir: Path) -> None:
    """Adopting starts nothing: a connection from before is still good."""
    with other_process(data_dir) as (owner, _):
        before = EmbeddedServices.attach(data_dir)
        assert before is not None
        former = processes_of(before)
        with psycopg.connect(driver_url(before.database_url), autocommit=True) as connection:
            owner.kill()
            owner.wait(30)
            services = EmbeddedServices.start_or_attach(data_dir)
            assert processes_of(services) == former
            assert connection.execute("SELECT 1").fetchone() == (1,)
        services.stop()


def test_many_starters_at_once_make_one_pair(data_dir: Path) -> None:
    """However many start at the same time, one owns and all see the same servers."""
    remove_files(EmbeddedServices(choose_place(data_dir), ""))
    command = [sys.executable, "-W", "error", "-c", USER, str(data_dir)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    starters = [subprocess.Popen(command, **pipes) for _ in range(5)]  # type: ignore[call-overload]
    said = [starter.stdout.readline().split() for starter in starters]
    assert sorted(role for role, _ in said) == ["owner", "user", "user", "user", "user"]
    assert len({port for _, port in said}) == 1
    for starter in starters:
        starter.communicate(timeout=60)


def test_living_owner_of_a_dead_server_is_named(data_dir: Path) -> None:
    """Where the owner lives but its server does not, another process starts no second one."""
    with other_process(data_dir) as (owner, _):
        services = EmbeddedServices.attach(data_dir)
        assert services is not None
        services.postgres.kill()
        with pytest.raises(StoreUnavailable, match=f"process {owner.pid}"):
            EmbeddedServices.start_or_attach(data_dir)


def test_borrowed_servers_run_for_the_question_only(data_dir: Path) -> None:
    """What an ended demo left can be asked about; where nothing was left, nothing is created."""
    with borrowed_services(load_settings({"data_dir": str(data_dir / "none")})) as found:
        assert found.database_url is None
    assert not (data_dir / "none").exists()
    settings = load_settings({"data_dir": str(data_dir)})
    EmbeddedServices.start_or_attach(data_dir).stop()
    with borrowed_services(settings) as found:
        assert found.database_url is not None
        assert EmbeddedServices.attach(data_dir) is not None
    assert EmbeddedServices.attach(data_dir) is None
