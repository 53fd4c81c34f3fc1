"""Claims rows for one worker process, keeps tools' declarations and the process's heartbeat row.

May import the pure core and the store. Every method is one short transaction.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, RowMapping
from sqlalchemy.exc import SQLAlchemyError

from ..commands import Claimed, Target
from ..contract import ToolContract
from ..errors import AckboxError, ConfigError
from ..identity import wire_key
from ..outcome import from_document
from .database import Database
from .revisions import head, version
from .statements import Statements

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_RESCAN_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _LowWater:
    """Index entries of a lane before `ready_at` are most likely dead, until the next full scan."""

    ready_at: datetime
    rescan_at: float


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One start of one process. `worker_id` is fresh at each start.

    `revision` is the newest of the schema that the process's code knows.
    """

    worker_id: UUID
    role: str
    host: str
    pid: int
    tools: tuple[str, ...] = ()
    lanes: tuple[str, ...] = ()
    version: str = field(default_factory=version)
    revision: str = field(default_factory=head)


def served_name(tool: str, version: int) -> str:
    """Return how a worker row lists a tool it serves."""
    return f"{tool}@{version}"


class ClaimStore:
    """The claiming side of one outbox."""

    def __init__(self, database: Database, statements: Statements) -> None:
        self._database = database
        self._statements = statements
        self._low_water: dict[str, _LowWater] = {}

    def register(self, incarnation: Incarnation) -> None:
        """Write the process's heartbeat row; again after it was retired.

        Raises ConfigError where the schema has gone beyond what the process can work with.
        """
        values = {
            "worker_id": str(incarnation.worker_id),
            "role": incarnation.role,
            "host": incarnation.host,
            "pid": incarnation.pid,
            "tools": list(incarnation.tools),
            "lanes": list(incarnation.lanes),
            "version": incarnation.version,
            "revision": incarnation.revision,
        }
        if not self._database.run(lambda c: self._execute(c, "register_worker", values)):
            raise ConfigError(
                f"the schema has gone beyond this process, which knows it up to "
                f"{incarnation.revision}",
                next_step="end this process and start one of the newer ackbox",
                code="newer_schema",
            )

    def beat(self, worker_id: UUID) -> bool:
        """Beat once; False where the row is gone and the process must register again."""
        values = {"worker_id": str(worker_id)}
        return bool(self._database.run(lambda c: self._execute(c, "beat", values), attempts=1))

    def stop(self, worker_id: UUID) -> None:
        """Say that the process ends on purpose."""
        values = {"worker_id": str(worker_id)}
        self._database.run(lambda connection: self._execute(connection, "stop_worker", values))

    def contract_ids(self, contracts: Iterable[ToolContract]) -> dict[str, int]:
        """Keep the declarations and return their ids by `served_name`."""
        by_digest = {contract.digest(): contract for contract in contracts}

        def keep(connection: Connection) -> dict[str, int]:
            for digest, contract in sorted(by_digest.items()):
                self._execute(connection, "contract", _contract_values(digest, contract))
            values = {"digests": list(by_digest)}
            rows = self._execute(connection, "contract_ids", values)
            return {row["digest"]: row["contract_id"] for row in rows}

        ids = self._database.run(keep)
        return {served_name(c.tool, c.version): ids[d] for d, c in by_digest.items()}

    def served_ids(self, served: Mapping[tuple[str, int], ToolContract]) -> dict[str, int]:
        """Keep the declarations and return, by `served_name`, the one that a claim stamps.

        Several versions may have one declaration: that of the code which upgrades their arguments.
        """
        ids = self.contract_ids(served.values())
        return {
            served_name(*row): ids[served_name(contract.tool, contract.version)]
            for row, contract in served.items()
        }

    def claim(
        self,
        lane: str,
        limit: int,
        owner: UUID,
        contracts: Mapping[str, int],
        *,
        alone: bool = False,
    ) -> list[Claimed]:
        """Claim up to `limit` ready rows of a lane, oldest first.

        `alone` claims rows that killed their worker before, which the caller then runs by itself.
        A lost COMMIT raises CommitUnknown and loses the claim: its rows lapse by themselves.
        """
        values = {
            "lane": lane, "owner": str(owner), "alone": alone,
            "contracts": json.dumps(dict(contracts)),
        }  # fmt: skip
        hint = self._low_water.get(lane)
        claimed: list[Claimed] = []
        if hint is not None and time.monotonic() < hint.rescan_at and not alone:
            claimed = self._take(values | {"limit": limit, "low_water": hint.ready_at})
        if len(claimed) == limit:
            return claimed
        # Rows may enter below the hint: a late commit, a retry. Only a full scan ends a lane.
        rest = {"limit": limit - len(claimed), "low_water": _BEGINNING}
        try:
            return claimed + self._take(values | rest, rescan=True)
        except (AckboxError, SQLAlchemyError):
            # The first transaction is committed: what it claimed is run, not left to its lease.
            if claimed:
                return claimed
            raise

    def _take(self, values: Mapping[str, Any], *, rescan: bool = False) -> list[Claimed]:
        def take(connection: Connection) -> tuple[list[Claimed], datetime | None]:
            rows = self._execute(connection, "claim", values)
            oldest = min((row["ready_at"] for row in rows), default=None)
            return [self._claimed(connection, row) for row in rows], oldest

        claimed, oldest = self._database.run(take, commit_lost="raise")
        if rescan and oldest is not None:
            hint = _LowWater(oldest, time.monotonic() + _RESCAN_SECONDS)
            self._low_water[str(values["lane"])] = hint
        return claimed

    def suspect_ready(self, lane: str) -> bool:
        """Return whether a ready row of the lane must be claimed alone."""
        return bool(self._database.run(lambda c: self._execute(c, "suspect_ready", {"lane": lane})))

    def push_quiet(self, seqs: Iterable[int]) -> None:
        """Say that calls of these rows still run although their limit has passed."""
        values = {"seqs": sorted(seqs)}
        self._database.run(lambda connection: self._execute(connection, "push_quiet", values))

    def _execute(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())

    def _claimed(self, connection: Connection, row: RowMapping) -> Claimed:
        return claimed_row(row, self._target(connection, row["compensates"]))

    def _target(self, connection: Connection, seq: int | None) -> Target | None:
        if seq is None:
            return None
        (row,) = self._execute(connection, "target", {"seq": seq})
        return target_row(row)


def claimed_row(row: RowMapping, target: Target | None) -> Claimed:
    """Return a joined intent and state row as an attempt gets it."""
    return Claimed(
        seq=row["seq"], namespace=row["namespace"], intent_id=row["intent_id"],
        generation=row["generation"], fence=row["fence"], tool=row["tool"],
        version=row["tool_version"], lane=row["lane"], args=row["args"],
        contract_id=row["contract_id"], sends=row["sends"], handle=row["handle"],
        suspect=row["suspect"], target=target, traceparent=row["traceparent"],
    )  # fmt: skip


def target_row(row: RowMapping) -> Target:
    """Return what a compensation is told about the effect that it undoes."""
    outcome = from_document(row["document"]) if row["ref"] or row["document"] else None
    return Target(
        wire_key=wire_key(row["namespace"], row["intent_id"], row["generation"]),
        args=row["args"],
        ref=row["ref"],
        result=getattr(outcome, "result", None),
    )


def _contract_values(digest: str, contract: ToolContract) -> dict[str, Any]:
    return {
        "digest": digest, "tool": contract.tool, "version": contract.version,
        "key_kind": contract.key.kind.value, "key_window_seconds": contract.key.window_seconds,
        "probe": contract.probe.value, "settle": contract.settle_seconds,
        "ack_seconds": contract.ack_seconds, "margin_seconds": contract.margin_seconds,
        "sends": contract.max_sends, "resends": contract.max_resends,
        "probes": contract.max_probes, "park_after": contract.park_after_seconds,
        "declared": json.dumps(contract.document()),
    }  # fmt: skip
