"""Reads state rows under their lock and turns them into the core's values.

May import the pure core and SQLAlchemy. Every function runs inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, CursorResult, TextClause

from ..contract import ToolContract, contract_from_document
from ..defaults import Limits
from ..model import GateDecision, Row, State, World
from .statements import Statements

_COLUMNS = tuple(field.name for field in fields(Row))
_STATE = _COLUMNS.index("state")


@dataclass(frozen=True, slots=True)
class Locked:
    """A locked row with the world that its guards look at."""

    row: Row
    world: World


class RowReader:
    """Locks and reads rows of one outbox; declarations are parsed once per contract."""

    def __init__(self, statements: Statements, limits: Limits) -> None:
        self._statements = statements
        self._limits = limits
        self._contracts: dict[int, ToolContract] = {}

    def lock(self, connection: Connection, seqs: Iterable[int]) -> dict[int, Locked]:
        """Lock rows in ascending seq. Raises the driver's lock time-out for the caller to see."""
        wanted = sorted(set(seqs))
        if not wanted:
            return {}
        statement, limits = self._statements.named("lock_rows")
        found = connection.execute(statement, {"seqs": wanted, **limits})
        return {one.row.seq: one for one in self._read(connection, found)}

    def lock_step(self, connection: Connection, seq: int) -> tuple[Locked, ...]:
        """Lock every generation of the row's step, ascending; each world holds the whole step."""
        return self._step(connection, seq, *self._statements.named("lock_step"))

    def look_at_step(self, connection: Connection, seq: int) -> tuple[Locked, ...]:
        """Read what `lock_step` reads, without a lock: for telling, never for deciding."""
        return self._step(connection, seq, *self._statements.looking("lock_step"))

    def _step(
        self, connection: Connection, seq: int, statement: TextClause, limits: dict[str, Any]
    ) -> tuple[Locked, ...]:
        locked = self._read(connection, connection.execute(statement, {"seq": seq, **limits}))
        step = tuple(one.row for one in locked)
        return tuple(Locked(one.row, replace(one.world, step=step)) for one in locked)

    def _read(self, connection: Connection, found: CursorResult[Any]) -> list[Locked]:
        read = _reading(tuple(found.keys()))
        items = found.all()
        self._learn(connection, {item[read.contract_id] for item in items})
        return [self._locked(item, read) for item in items]

    def _learn(self, connection: Connection, ids: set[int | None]) -> None:
        """Read declarations not met before: in a later statement, since a row's may be newer."""
        new = sorted(one for one in ids if one is not None and one not in self._contracts)
        if new:
            statement, _ = self._statements.named("declarations")
            for contract_id, declared in connection.execute(statement, {"ids": new}):
                self._contracts[contract_id] = contract_from_document(declared)

    def _locked(self, item: Sequence[Any], read: _Reading) -> Locked:
        values = list(read.row(item))
        values[_STATE] = State(values[_STATE])
        row = Row(*values)
        gate = item[read.gate] if read.gate is not None else None
        world = World(
            now=item[read.now],
            contract=self._contracts.get(row.contract_id or 0),
            limits=self._limits,
            owner_alive=item[read.owner_alive],
            gate=GateDecision(gate) if gate else None,
        )
        return Locked(row, world)

    def contract(self, connection: Connection, contract_id: int | None) -> ToolContract | None:
        """Return the stamped declaration of a row, None before its first claim."""
        self._learn(connection, {contract_id})
        return self._contracts.get(contract_id or 0)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Where a statement's columns stand: rows are read by position, which the hot path needs."""

    row: Callable[[Sequence[Any]], tuple[Any, ...]]
    now: int
    contract_id: int
    owner_alive: int
    gate: int | None


@lru_cache(maxsize=16)
def _reading(keys: tuple[str, ...]) -> _Reading:
    # A statement may lack the last columns of Row, which belong to the intent.
    columns = [keys.index(name) for name in _COLUMNS if name in keys]
    places = {name: keys.index(name) for name in ("now", "contract_id", "owner_alive")}
    gate = keys.index("gate") if "gate" in keys else None
    return _Reading(itemgetter(*columns), gate=gate, **places)
