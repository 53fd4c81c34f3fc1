"""What a planner is made of, for threads and for event loops alike.

The waits and the rings run on threads of their own in either case, through a `Database` of
threads. Shell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection

from ...outbox.defaults import Limits
from ...outbox.intent import Address
from ...outbox.shell.database import Database
from ...outbox.shell.fitting import Fitting
from ...outbox.shell.planner_store import PlannerStore
from ...outbox.shell.statements import Statements
from .bell import PlannerBell, TokenRinger
from .compensating import DatabaseUndos
from .link import Passage
from .operations import Operation, Operations
from .waiting import Steps, Waiters


class PlannerParts:
    """The operations, the passage to the outbox and the waits of one planner."""

    def __init__(
        self,
        database: Database,
        limits: Limits,
        namespace: str,
        outbox: str | None,
        bus: TokenRinger | None,
    ) -> None:
        statements = Statements(database.schema, limits)
        store, undos = PlannerStore(statements, limits), DatabaseUndos(statements, limits)
        self.operations = Operations(store, undos, limits, namespace)
        bell = PlannerBell(database, statements, bus)
        self.passage = Passage(bell, Fitting(statements, outbox), database.schema)
        self.waiters = Waiters(database, self._steps)

    def _steps(self, connection: Connection, names: Collection[tuple[str, str]]) -> Steps:
        operation = Operation(lambda c: self.operations.store.steps(c, names), writes=False)
        return self.passage.alone(operation, connection)

    def may_be_open(self, address: Address) -> bool:
        """Return whether a transaction of this process may still hold the step back."""
        return self.passage.puts.is_open(address)

    def ring(self, lanes: Iterable[str] | None) -> None:
        """Ring lanes, or those of puts on bare connections."""
        self.passage.bell.ring(self.passage.puts.unrung() if lanes is None else lanes)

    def close(self) -> None:
        """End the waits, ring what waits to be rung, and end both threads."""
        self.waiters.close()
        self.passage.bell.close()
