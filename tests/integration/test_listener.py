"""The relay's ear: every connect rings once, since what came while nobody listened is lost."""

import threading

from sqlalchemy import text

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.shell.database import Database
from ackbox.outbox.shell.listener import Listener
from ackbox.outbox.shell.notify import notify
from ackbox.outbox.shell.statements import Statements

from ..support.waiting import wait_until

CUT = text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE '%ear listen'"
)


def test_a_listener_that_was_cut_off_rings_when_it_is_back(database_url: str) -> None:
    """Case 43: a ring lost in the gap costs nothing, and later ones are heard again."""
    database = Database(database_url, application_name="ear")
    rings: list[None] = []
    stop = threading.Event()
    thread = Listener(database, lambda: rings.append(None), stop).start()
    try:
        wait_until(lambda: len(rings) == 1, message="the first connect rings")
        assert database.run(lambda c: c.scalar(CUT)) == 1
        wait_until(lambda: len(rings) == 2, message="the second connect rings")
        statements = Statements(database.schema, DEFAULTS)
        database.run(lambda c: notify(c, statements, ["default"]))
        wait_until(lambda: len(rings) == 3, message="a notification is heard again")
    finally:
        stop.set()
        thread.join()
        database.dispose()
