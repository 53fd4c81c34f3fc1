"""A database with one small table, to watch what transactions do to it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.engine import make_url

from ackbox.outbox.shell.database import Database

Maker = Callable[..., Database]
PID = text("SELECT pg_backend_pid()")
CHANGE = text("UPDATE t SET n = n + 1 WHERE id = :id")


def admin(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Open a session of the test's own, in autocommit."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(False)
    return psycopg.connect(plain, autocommit=True)


def add_table(url: str) -> str:
    """Create the table with id 1 and 2, n = 0; return the URL."""
    with admin(url) as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, n integer NOT NULL)")
        connection.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    return url


@contextmanager
def maker_for(url: str) -> Iterator[Maker]:
    """Give a maker of `Database` objects that are disposed of at the end."""
    made: list[Database] = []

    def make(other_url: str | None = None, **options: object) -> Database:
        made.append(Database(other_url or url, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for database in made:
        database.dispose()


def numbers(url: str) -> list[object]:
    """Return n of every row."""
    with admin(url) as connection:
        return [row[0] for row in connection.execute("SELECT n FROM t ORDER BY id")]


def raising(sqlstate: str) -> Callable[[Connection], None]:
    """Return work that Postgres refuses with a given SQLSTATE."""
    refused = text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$")

    def work(connection: Connection) -> None:
        connection.execute(refused)

    return work
