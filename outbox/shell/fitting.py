"""Asks a database once whether it holds the outbox that a planner works on.

Decides what an outbox is known by: its name, and the moment it was named at, which tells two
outboxes of the same name in two databases apart. May import the store's reading of schemas and
SQLAlchemy. Asks no server of its own accord.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakSet

from sqlalchemy import Connection

from ..errors import ConfigError, Refused
from .migrate import check
from .statements import Statements

OTHER_OUTBOX = "other_outbox"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which outbox a schema belongs to."""

    name: str
    named_at: datetime


class Fitting:
    """Where one planner's outbox was found in this process. Safe to share between threads.

    `name` is the outbox that the planner was told to work on; None takes whichever the planner's
    own database holds.
    """

    def __init__(self, statements: Statements, name: str | None = None) -> None:
        self._statements = statements
        self._name = name
        self._lock = threading.Lock()
        self._pools: WeakSet[object] = WeakSet()
        self._servers: set[str] = set()
        self.identity: Identity | None = None

    def knows(self, origin: object) -> bool:
        """Return whether a pool, or a server's name, was found to lead to this outbox."""
        with self._lock:
            return origin in (self._servers if isinstance(origin, str) else self._pools)

    def own(self, connection: Connection) -> Identity:
        """Look at the planner's own database, once. Raises ConfigError where it does not fit."""
        if self.identity is None:
            found = self._read(connection)
            if self._name is not None and found.name != self._name:
                raise ConfigError(
                    f"schema {self._statements.schema!r} belongs to the outbox {found.name!r}, "
                    f"not to {self._name!r}",
                    next_step="name that outbox, or another schema or database",
                    code=OTHER_OUTBOX,
                )
            self.identity = found
        return self.identity

    def joined(self, connection: Connection, origin: object) -> None:
        """Look at a caller's database, once for each pool or server.

        Raises ConfigError where it has no fitting schema, and Refused("other_outbox") where that
        is another outbox's than the planner's own.
        """
        if self.knows(origin):
            return
        found = self._read(connection)
        own = self.identity
        if (own is not None and found != own) or self._name not in (None, found.name):
            raise self._other(found)
        if own is not None:
            self._learn(origin)

    def _read(self, connection: Connection) -> Identity:
        check(connection, self._statements.schema)
        statement, _ = self._statements.named("outbox_name")
        row = connection.execute(statement).first()
        if row is None:
            raise ConfigError(
                f"schema {self._statements.schema!r} names no outbox", next_step="ackbox migrate"
            )
        return Identity(row[0], row[1])

    def _learn(self, origin: object) -> None:
        with self._lock:
            if isinstance(origin, str):
                self._servers.add(origin)
            else:
                self._pools.add(origin)

    def _other(self, found: Identity) -> Refused:
        expected = self.identity.name if self.identity is not None else self._name
        where = "of another database" if found.name == expected else "of another name"
        return Refused(
            OTHER_OUTBOX,
            "put on a connection to the planner's own database, or make a planner of that outbox",
            what=f"the connection given leads to an outbox {where} ({found.name!r}) than the"
            f" planner's ({expected!r})",
        )
