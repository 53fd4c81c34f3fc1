"""The services that tests run on: where they come from, and one set of them for a whole run.

Order: the URLs in ACKBOX_TEST_POSTGRES_URL and ACKBOX_TEST_REDIS_URL (each for itself), then what
ACKBOX_TEST_SERVICES names (embedded, testcontainers or url; embedded unless set). What cannot be
had skips the test with one line, and fails it where CI=true.

All workers of one pytest-xdist run share the services. Each worker holds a shared lock on a file
for as long as it uses them; the last one that lets go stops them. A run that was killed leaves
its servers behind; the next run finds and stops them.
"""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NoReturn

import pytest
from sqlalchemy.engine import make_url

from ackbox.app.embedded import EmbeddedServices
from ackbox.app.embedded.locks import exclusive
from ackbox.app.embedded.ownership import Ownership
from ackbox.app.embedded.place import choose_place
from ackbox.outbox.errors import AckboxError

from .containers import start_containers, stop_containers
from .databases import drop_databases_of_run

_TURN_DEADLINE_SECONDS = 100.0


@dataclass(frozen=True)
class Services:
    """Where a run's services are. `run` sets names of databases apart between runs."""

    run: str
    postgres_url: str
    redis_url: str
    containers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Services of run {self.run}>"


def unavailable(reason: str) -> NoReturn:
    """Skip the test with one clear line; fail it on CI, where nothing may be left out."""
    line = f"no services to test on: {reason}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(line, pytrace=False)
    pytest.skip(line)


def migrate_template(url: str) -> None:
    """Bring an empty database to the newest schema of ackbox."""
    from ackbox.outbox.shell.migrate import upgrade

    upgrade(url, schema="ackbox")


@contextmanager
def shared_services(folder: Path) -> Iterator[Services]:
    """Use the run's services: start them as the first, stop them as the last to leave."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users.lock").open("a+") as users:
        with _turn(folder):
            fcntl.lockf(users, fcntl.LOCK_SH)
            services = _recorded(folder) or _start(folder)
        try:
            yield services
        finally:
            with _turn(folder):
                fcntl.lockf(users, fcntl.LOCK_UN)
                _stop_if_unused(folder)


@contextmanager
def own_services(folder: Path, pristine: Path) -> Iterator[EmbeddedServices]:
    """Start servers that belong to one test, which may kill and restart them."""
    try:
        seed(folder, pristine)
        services = EmbeddedServices.start_or_attach(folder)
    except AckboxError as error:
        unavailable(str(error))
    try:
        yield services
    finally:
        services.stop()
        remove_files(services)


def pristine_data(folder: Path) -> Path:
    """Make (once in a run) a data directory that was started and stopped, to be copied."""
    pristine = folder / "pristine"
    with _turn(folder):
        if not (pristine / "password").exists():
            EmbeddedServices.start_or_attach(pristine).stop()
    return pristine


def seed(data_dir: Path, pristine: Path) -> None:
    """Give a new data directory a database folder, five times faster than initdb does."""
    source, target = choose_place(pristine), choose_place(data_dir)
    copies = [(source.base / "postgres", target.base), (pristine / "password", data_dir)]
    for original, folder in copies:
        subprocess.run(["cp", "-a", original, folder], check=True)


def remove_files(services: EmbeddedServices) -> None:
    """Remove every folder of stopped embedded servers."""
    place = services.place
    for folder in {place.data_dir, place.base, place.socket_dir}:
        shutil.rmtree(folder, ignore_errors=True)


def stop_left_behind(runs: Path) -> None:
    """Stop what killed runs have left below pytest's folder of runs."""
    for record in runs.glob("pytest-*/services/services.json"):
        with _turn(record.parent):
            _stop_if_unused(record.parent)
    for depth in ("*/*", "*/*/*"):
        for owned in runs.glob(f"pytest-*/{depth}/owner.json"):
            if Ownership(owned.parent).owner() is None:
                _stop_and_remove(owned.parent)


def _stop_and_remove(data_dir: Path) -> None:
    with EmbeddedServices.start_or_attach(data_dir) as services:
        pass
    remove_files(services)


def _start(folder: Path) -> Services:
    wanted = os.environ.get("ACKBOX_TEST_SERVICES") or "embedded"
    postgres_url = os.environ.get("ACKBOX_TEST_POSTGRES_URL", "")
    redis_url = os.environ.get("ACKBOX_TEST_REDIS_URL", "")
    services = Services(secrets.token_hex(4), _psycopg_url(postgres_url), redis_url)
    if not (postgres_url and redis_url):
        services = _fill_in(services, wanted, folder)
    (folder / "services.json").touch(mode=0o600)
    (folder / "services.json").write_text(json.dumps(asdict(services)))
    return services


def _fill_in(services: Services, wanted: str, folder: Path) -> Services:
    """Add what the environment gave no URL for."""
    if wanted == "embedded":
        found = _start_embedded(folder, services.run)
    elif wanted == "testcontainers":
        found = _start_containers(services.run)
    elif wanted == "url":
        unavailable("set ACKBOX_TEST_POSTGRES_URL and ACKBOX_TEST_REDIS_URL")
    else:
        unavailable(f"ACKBOX_TEST_SERVICES={wanted!r} is not embedded, testcontainers or url")
    return replace(
        found,
        postgres_url=services.postgres_url or found.postgres_url,
        redis_url=services.redis_url or found.redis_url,
    )


def _start_embedded(folder: Path, run: str) -> Services:
    try:
        embedded = EmbeddedServices.start_or_attach(folder / "embedded")
    except AckboxError as error:
        unavailable(str(error))
    # Nobody owns them from here on: the worker that started them may be the first to finish.
    embedded.release()
    return Services(run, embedded.database_url, embedded.redis_url)


def _start_containers(run: str) -> Services:
    started = start_containers()
    if isinstance(started, str):
        unavailable(started)
    postgres_url, redis_url, containers = started
    return Services(run, _psycopg_url(postgres_url), redis_url, containers)


def _stop_if_unused(folder: Path) -> None:
    services = _recorded(folder)
    if services is None or _is_used(folder):
        return
    drop_databases_of_run(services.postgres_url, services.run)
    stop_containers(services.containers)
    for data_dir in (folder / "embedded", folder / "pristine"):
        if data_dir.is_dir():
            _stop_and_remove(data_dir)
    (folder / "services.json").unlink()


def _is_used(folder: Path) -> bool:
    # A POSIX lock is not inherited by children that a test forks, unlike flock's.
    with (folder / "users.lock").open("a+") as users:
        try:
            fcntl.lockf(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _recorded(folder: Path) -> Services | None:
    try:
        stored = json.loads((folder / "services.json").read_text())
    except FileNotFoundError:
        return None
    return Services(**{**stored, "containers": tuple(stored["containers"])})


def _turn(folder: Path) -> AbstractContextManager[int]:
    return exclusive(
        folder / "turn.lock",
        deadline_seconds=_TURN_DEADLINE_SECONDS,
        reason="another worker starts or stops the services",
    )


def _psycopg_url(url: str) -> str:
    if not url:
        return ""
    parsed = make_url(url).set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)
