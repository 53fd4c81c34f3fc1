"""Reads state rows under their lock and turns them into the core's values.

May import the pure core and SQLAlchemy. Every function runs inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..contract import ToolContract, contract_from_document
from ..defaults import Limits
from ..model import GateDecision, Row, State, World
from .statements import Statements

_COLUMNS = tuple(field.name for field in fields(Row))


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
        found = connection.execute(statement, {"seqs": wanted, **limits}).mappings()
        return {item["seq"]: self._locked(item) for item in found}

    def lock_step(self, connection: Connection, seq: int) -> tuple[Locked, ...]:
        """Lock every generation of the row's step, ascending; each world holds the whole step."""
        statement, limits = self._statements.named("lock_step")
        found = connection.execute(statement, {"seq": seq, **limits}).mappings().all()
        step = tuple(_row(item) for item in found)
        return tuple(self._locked(item, step) for item in found)

    def _locked(self, item: RowMapping, step: tuple[Row, ...] = ()) -> Locked:
        gate = item.get("gate")
        world = World(
            now=item["now"],
            contract=self.contract(item["contract_id"], item["declared"]),
            limits=self._limits,
            owner_alive=item["owner_alive"],
            gate=GateDecision(gate) if gate else None,
            step=step,
        )
        return Locked(_row(item), world)

    def contract(self, contract_id: int | None, declared: Any) -> ToolContract | None:
        """Return the stamped declaration of a row, None before its first claim."""
        if contract_id is None:
            return None
        if contract_id not in self._contracts:
            self._contracts[contract_id] = contract_from_document(declared)
        return self._contracts[contract_id]


def _row(item: RowMapping) -> Row:
    values = {name: item[name] for name in _COLUMNS if name in item}
    values["state"] = State(values["state"])
    return Row(**values)
