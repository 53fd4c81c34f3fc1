"""One database per test, cloned from a template that is migrated once in a run."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from ackbox.app.embedded.locks import exclusive

_BUILD_DEADLINE_SECONDS = 100.0


def drop_databases_of_run(admin_url: str, run: str) -> None:
    """Drop what a run made on a server, which may be one that somebody lent us."""
    # Nothing is there to be dropped where the server itself is gone (a killed run's embedded one).
    with suppress(psycopg.OperationalError):
        Databases(admin_url, run, "", Path()).drop_all()


class Databases:
    """Makes and drops the databases of one worker of a run."""

    def __init__(self, admin_url: str, run: str, worker: str, folder: Path) -> None:
        self._admin_url = admin_url
        self._prefix = f"ackbox_{run}"
        self._worker = worker
        self._folder = folder
        self._numbers = itertools.count(1)

    def check(self) -> None:
        """Raise what psycopg raises when the server does not answer."""
        self._connect().close()

    def create(self, template: str = "template0") -> str:
        """Make a database from a template; returns its SQLAlchemy URL."""
        name = f"{self._prefix}_{self._worker}_{next(self._numbers)}"
        self._create(name, template)
        return self.url_of(name)

    def drop(self, url: str) -> None:
        """Drop a database, with whatever is still connected to it."""
        self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", str(make_url(url).database))

    def template(self, migrate: Callable[[str], None]) -> str:
        """Return the name of the migrated template, which the first worker to ask builds."""
        name, unfinished = f"{self._prefix}_template", f"{self._prefix}_building"
        reason = "another worker migrates the template"
        lock = self._folder / "template.lock"
        with exclusive(lock, deadline_seconds=_BUILD_DEADLINE_SECONDS, reason=reason):
            if not self._exists(name):
                self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", unfinished)
                self._create(unfinished, "template0")
                migrate(self.url_of(unfinished))
                self._run("ALTER DATABASE {} RENAME TO {}", unfinished, name)
        return name

    def drop_all(self) -> None:
        """Drop every database of this run."""
        for name in self._names(f"{self._prefix}_"):
            self._run("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def url_of(self, name: str) -> str:
        """Build the URL of a database on this server, password included."""
        url = make_url(self._admin_url).set(database=name)
        return url.render_as_string(hide_password=False)

    def _create(self, name: str, template: str) -> None:
        with self._connect() as connection:
            # Copying files costs half of what logging each block costs; older servers know
            # no other way and no such option.
            strategy = " STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
            command = sql.SQL("CREATE DATABASE {} TEMPLATE {}" + strategy)
            connection.execute(command.format(sql.Identifier(name), sql.Identifier(template)))

    def _run(self, command: str, *names: str) -> None:
        with self._connect() as connection:
            identifiers = [sql.Identifier(name) for name in names]
            connection.execute(sql.SQL(command).format(*identifiers))

    def _exists(self, name: str) -> bool:
        return name in self._names(name)

    def _names(self, prefix: str) -> list[str]:
        question = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        with self._connect() as connection:
            return [str(row[0]) for row in connection.execute(question, [prefix])]

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        url = make_url(self._admin_url).set(drivername="postgresql")
        return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)
