"""Sessions on real Postgres: their limits, poolers, forks, LISTEN, and URLs that do not work."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from ackbox.outbox.errors import ConfigError, StoreUnavailable
from ackbox.outbox.shell.connection import SessionLimits, pooler_role_sql
from ackbox.outbox.shell.database import Database

from ..support.small_table import Maker, add_table, admin, maker_for, raising


@pytest.fixture
def url(empty_database_url: str) -> str:
    """Give a database with a small table: id 1 and 2, n = 0."""
    return add_table(empty_database_url)


@pytest.fixture
def make(url: str) -> Iterator[Maker]:
    """Give a maker of databases that are disposed of after the test."""
    with maker_for(url) as maker:
        yield maker


SETTINGS = text(
    "SELECT name, setting, source FROM pg_settings WHERE name IN"
    " ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')"
)


def settings(database: Database) -> dict[str, tuple[str, str]]:
    """Return (milliseconds, source) of the session's limits."""
    found = database.run(lambda connection: connection.execute(SETTINGS).all())
    return {name: (setting, source) for name, setting, source in found}


def test_a_direct_session_carries_its_limits(make: Maker, url: str) -> None:
    """Limits are options of the connection, and options that the URL brings stay."""
    own = make_url(url).update_query_dict({"options": "-c search_path=elsewhere"})
    database = make(own.render_as_string(False), lock_timeout_seconds=0.25)
    assert settings(database) == {
        "statement_timeout": ("10000", "client"),
        "lock_timeout": ("250", "client"),
        "idle_in_transaction_session_timeout": ("10000", "client"),
    }
    assert database.run(lambda c: c.scalar(text("SHOW search_path"))) == "elsewhere"
    assert database.run(lambda c: c.scalar(text("SHOW transaction_isolation"))) == "read committed"


def test_behind_a_pooler_the_role_carries_the_limits(make: Maker, url: str) -> None:
    """No option and no prepared statement belongs to the session; the role's settings hold."""
    role = f"limited_{make_url(url).database}"
    with admin(url) as session:
        session.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pass'")
        try:
            for statement in pooler_role_sql(role, SessionLimits(3, 4, 0.5)).splitlines():
                session.execute(statement)
            own = make_url(url).set(username=role, password="pass").render_as_string(False)
            database = make(own, pooler=True)
            assert settings(database) == {
                "statement_timeout": ("3000", "user"),
                "lock_timeout": ("500", "user"),
                "idle_in_transaction_session_timeout": ("4000", "user"),
            }
            assert prepared(database) == 0
            database.dispose()
        finally:
            session.execute(f"DROP ROLE {role}")


def prepared(database: Database) -> int | None:
    """Return how many statements the session has prepared after some repetition."""
    count = text("SELECT count(*) FROM pg_prepared_statements")
    found: list[int | None] = [database.run(lambda c: c.scalar(count)) for _ in range(6)]
    return found[-1]


def test_direct_sessions_prepare_their_statements(make: Maker) -> None:
    """Repeated statements are prepared on the server."""
    assert prepared(make(pool_size=1)) == 1


@pytest.mark.parametrize("sqlstate", ["26000", "42P05"])
def test_an_undeclared_pooler_is_named(make: Maker, sqlstate: str) -> None:
    """Case 129: lost prepared statements are a wrong setting, and the message says which."""
    with pytest.raises(ConfigError, match="pooler"):
        make().run(raising(sqlstate))


def test_an_unreachable_server_is_told_without_the_password(make: Maker, url: str) -> None:
    """Neither the error nor a repr shows the password."""
    dead = make_url(url).set(host="127.0.0.1", port=1, password="secret-word")
    database = make(dead.render_as_string(False))
    with pytest.raises(StoreUnavailable) as told:
        database.run(lambda connection: None, attempts=2)
    with pytest.raises(StoreUnavailable):
        database.listen_connection()
    assert "refused" in str(told.value)
    assert "secret-word" not in str(told.value) + repr(database) + repr(database.engine)


@pytest.mark.parametrize("wrong", ["nonsense", "mysql://u:secret-word@h/d", "redis://h/0"])
def test_a_wrong_url_is_refused_at_once(wrong: str) -> None:
    """A URL of another kind is a wrong setting, and is not repeated in the message."""
    with pytest.raises(ConfigError) as refused:
        Database(wrong)
    assert "secret-word" not in str(refused.value)


def test_listening_hears_what_others_notify(make: Maker) -> None:
    """The session for LISTEN is its own, in autocommit, outside of the pool."""
    database = make()
    with database.listen_connection() as listener:
        listener.execute("LISTEN bell")
        database.run(lambda connection: connection.execute(text("NOTIFY bell, 'rang'")) and None)
        heard = next(listener.notifies(timeout=10, stop_after=1))
    assert heard.payload == "rang"


FORKING = """
import json, os, sys
from sqlalchemy import text
from ackbox.outbox.shell.database import Database

database = Database(sys.argv[1])
pid = text("SELECT pg_backend_pid()")

def used():
    return sorted({database.run(lambda c: c.scalar(pid)) for _ in range(100)})

before = used()
children = []
for _ in range(2):
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, json.dumps(used()).encode())
        database.dispose()
        sys.exit()
    os.close(writing)
    children.append(reading)
mine = used()
theirs = [json.loads(os.fdopen(reading).read()) for reading in children]
codes = [os.waitpid(-1, 0)[1] for _ in children]
print(json.dumps([before, mine, used(), *theirs, codes]))
database.dispose()
"""


def test_each_process_of_a_fork_has_its_own_sessions(url: str) -> None:
    """Case 123: children use none of the parent's sessions, and their end does not close them."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING, url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    before, meanwhile, after, one, other, codes = json.loads(done.stdout)
    assert before == meanwhile == after
    assert not set(before) & {*one, *other}
    assert not set(one) & set(other)
    assert codes == [0, 0]
