"""The services that tests run on: shared by a run's processes, separate per test, never left."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
import redis
from sqlalchemy.engine import make_url

from ackbox.app.embedded import EmbeddedServices

from ..support.databases import Databases
from ..support.services import Services, shared_services, stop_left_behind, unavailable
from ..support.waiting import wait_until


def driver_url(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def run_in_child(work: Callable[[], None]) -> int:
    """Do something in a forked process, which then ends without any clean-up."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the embedded servers, whatever the run itself uses."""
    for name in ("POSTGRES_URL", "REDIS_URL", "SERVICES"):
        monkeypatch.delenv(f"ACKBOX_TEST_{name}", raising=False)


@pytest.mark.usefixtures("embedded")
def test_last_process_to_leave_stops_the_services(tmp_path: Path) -> None:
    """A second process uses the same servers, and they outlive whoever leaves first."""
    folder = tmp_path / "services"

    def use_and_leave() -> None:
        with shared_services(folder) as theirs:
            assert theirs == ours

    with shared_services(folder) as ours:
        assert run_in_child(use_and_leave) == 0
        psycopg.connect(driver_url(ours.postgres_url)).close()
    assert EmbeddedServices.attach(folder / "embedded") is None
    assert not (folder / "embedded").exists()


@pytest.mark.usefixtures("embedded")
def test_services_of_a_killed_run_are_stopped_by_the_next(tmp_path: Path) -> None:
    """SIGKILL of a whole run leaves servers that the next run finds and stops."""
    folder = tmp_path / "pytest-7" / "services"

    def start_and_die() -> None:
        # Collected, the context manager would leave in order.
        entered = shared_services(folder)
        entered.__enter__()
        os.kill(os.getpid(), signal.SIGKILL)

    assert run_in_child(start_and_die) == -signal.SIGKILL
    assert EmbeddedServices.attach(folder / "embedded") is not None
    stop_left_behind(tmp_path)
    assert not (folder / "embedded").exists()
    assert not (folder / "services.json").exists()


def test_explicit_urls_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both URLs are given, nothing is started and the URLs are used."""
    monkeypatch.setenv("ACKBOX_TEST_POSTGRES_URL", "postgres://u:p@127.0.0.1:1/d")
    monkeypatch.setenv("ACKBOX_TEST_REDIS_URL", "redis://127.0.0.1:1/0")
    with shared_services(tmp_path) as services:
        assert services.postgres_url == "postgresql+psycopg://u:p@127.0.0.1:1/d"
        assert services.redis_url == "redis://127.0.0.1:1/0"
        assert not (tmp_path / "embedded").exists()
        assert "p@" not in repr(services)


@pytest.mark.parametrize(
    ("wanted", "line"), [("url", "set ACKBOX_TEST_POSTGRES_URL"), ("magic", "is not embedded")]
)
@pytest.mark.usefixtures("embedded")
def test_what_cannot_be_had_skips_with_one_line(
    wanted: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without services a test is skipped, and failed on CI, with the reason in one line."""
    monkeypatch.setenv("ACKBOX_TEST_SERVICES", wanted)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=line), shared_services(tmp_path):
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=line), shared_services(tmp_path):
        pass


@pytest.mark.usefixtures("embedded")
def test_without_an_engine_containers_are_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for containers where no engine answers is one clear line as well."""
    monkeypatch.setenv("ACKBOX_TEST_SERVICES", "testcontainers")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Docker engine"):
        shared_services(tmp_path).__enter__()


def test_unavailable_never_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line is a skip at home and a failure on CI."""
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match="no services to test on: x"):
        unavailable("x")


def test_template_is_migrated_once_and_cloned(
    databases: Databases, services: Services, tmp_path: Path
) -> None:
    """The template is built by the first who asks; each clone is a database of its own."""
    built: list[str] = []

    def migrate(url: str) -> None:
        built.append(url)
        with psycopg.connect(driver_url(url)) as connection:
            connection.execute("CREATE TABLE made (x int)")

    own = Databases(services.postgres_url, f"{services.run}t", "w", tmp_path)
    try:
        first, second = (own.create(own.template(migrate)) for _ in range(2))
        assert len(built) == 1
        assert first != second
        with psycopg.connect(driver_url(first)) as connection:
            connection.execute("INSERT INTO made VALUES (1)")
        with psycopg.connect(driver_url(second)) as connection:
            assert connection.execute("SELECT count(*) FROM made").fetchone() == (0,)
    finally:
        own.drop_all()


def test_failed_migration_leaves_no_template(services: Services, tmp_path: Path) -> None:
    """A migration that fails is tried again by the next test, from an empty database."""
    own = Databases(services.postgres_url, f"{services.run}f", "w", tmp_path)

    def fail(url: str) -> None:
        with psycopg.connect(driver_url(url)) as connection:
            connection.execute("CREATE TABLE half (x int)")
        raise RuntimeError("half way")

    try:
        with pytest.raises(RuntimeError, match="half way"):
            own.template(fail)
        seen: list[object] = []

        def look(url: str) -> None:
            with psycopg.connect(driver_url(url)) as connection:
                seen.append(connection.execute("SELECT to_regclass('half')").fetchone())

        own.template(look)
        assert seen == [(None,)]
    finally:
        own.drop_all()


@pytest.mark.parametrize("_round", [1, 2])
def test_each_test_gets_empty_services(
    _round: int, empty_database_url: str, redis_url: str
) -> None:
    """What one test leaves behind is not seen by the next."""
    with psycopg.connect(driver_url(empty_database_url)) as connection:
        assert connection.execute("SELECT to_regclass('left')").fetchone() == (None,)
        connection.execute("CREATE TABLE left_behind (x int)")
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left", "behind")
        assert client.connection_pool.connection_kwargs["db"] > 0


def test_waiting_ends_at_the_deadline() -> None:
    """A condition that stays false fails the test with its message, a true one gives its value."""
    answers = iter([0, 0, 7])
    assert wait_until(lambda: next(answers)) == 7
    with pytest.raises(pytest.fail.Exception, match=r"not within 0\.05 s: the row"):
        wait_until(lambda: False, deadline_seconds=0.05, message="the row")
