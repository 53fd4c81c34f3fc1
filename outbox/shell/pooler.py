"""How a transaction-mode pooler that nobody declared is noticed: by an error, and by a look.

May import SQLAlchemy; opens no engine of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from ..pooler import UndeclaredPooler
from .connection import sqlstate_of

if TYPE_CHECKING:
    from .database import Database

LOOK_CONNECTIONS = 3
_LOST_PREPARED = {"26000", "42P05"}
# What PgBouncer says before there is any session, hence without a code that the driver passes on.
_REFUSED_OPTIONS = "unsupported startup parameter"
_BACKEND = text("SELECT pg_backend_pid()")


def pooler_behind(error: BaseException | None) -> UndeclaredPooler | None:
    """Return what a driver's error says of a pooler; None where it says nothing of one."""
    if error is None:
        return None
    if sqlstate_of(error) in _LOST_PREPARED:
        return UndeclaredPooler.noticed("a prepared statement was lost")
    if _REFUSED_OPTIONS in str(getattr(error, "orig", error)):
        return UndeclaredPooler.noticed("it refuses our start-up options")
    return None


def is_pooled(engine: Engine) -> bool:
    """Look whether a connection keeps its backend while another one is at work.

    Takes two connections. Beside other clients of a pooler it may answer a wrong no, and never a
    wrong yes.
    """
    try:
        with engine.connect() as first, engine.connect() as second:
            before = _backend(first)
            with second.begin():
                other = int(second.scalar(_BACKEND) or 0)
                # In this order: a pool of one backend would make the next line wait for ever.
                return other == before or _backend(first) != before
    except DBAPIError as error:
        if pooler_behind(error) is not None:
            return True
        raise


def refuse_undeclared(database: Database) -> None:
    """Raise UndeclaredPooler where one is noticed. Takes `LOOK_CONNECTIONS` of the pool."""
    # Inside a transaction, so that a server which does not answer is judged as everywhere.
    if not database.pooler and database.run(lambda _: is_pooled(database.engine)):
        raise UndeclaredPooler.noticed("sessions change hands between transactions")


def _backend(connection: Connection) -> int:
    with connection.begin():
        return int(connection.scalar(_BACKEND) or 0)
