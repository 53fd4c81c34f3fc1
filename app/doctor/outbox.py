"""What the outbox itself shows: missing roles, tools that nobody has, what waits and for whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping

from ...outbox.contract import KeyKind, ProbeStrength, ToolContract, contract_from_document
from ...outbox.defaults import Limits
from ...outbox.shell.claim_store import served_name
from ...outbox.shell.database import Database
from ...outbox.shell.statements import Statements
from ...tool_adapters.registry import Tools
from ..lane_alarm import LATE_SECONDS
from ..parts import host_name
from .finding import FAIL, OK, WARN, Finding

ROW_LIMIT = 10_000
_MISSING = {
    "relay": "workers are rung by nobody but planners",
    "reaper": "what a dead worker holds stays with it",
    "reconciler": "unknowns are not settled",
    "consumer": "results are not bound to the plan",
    "worker": "nothing is sent",
}


def check_outbox(
    database: Database, statements: Statements, registry: Tools, limits: Limits
) -> Iterator[Finding]:
    """Yield what the rows show."""
    seen = _Seen(database, statements, limits)
    yield from _roles(seen)
    yield from _unserved(seen, registry)
    yield from _declarations(seen, registry)
    yield from _lanes(seen)
    yield from _waiting(seen)


def beats_here(database: Database, statements: Statements, limits: Limits, role: str) -> bool:
    """Return whether a living process of a role beats from this host."""
    seen = _Seen(database, statements, limits)
    rows = seen.rows("role_beats", {"host": host_name()})
    return any(row["role"] == role and row["living"] > 0 for row in rows)


class _Seen:
    """Reads named statements of one outbox."""

    def __init__(self, database: Database, statements: Statements, limits: Limits) -> None:
        self._database = database
        self._statements = statements
        self.limits = limits

    def rows(self, name: str, values: Mapping[str, Any]) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return self._database.run(
            lambda c: list(c.execute(statement, {**limits, **values}).mappings())
        )

    def declared(self) -> dict[str, _Declared]:
        """Return the newest declaration of each tool's newest version."""
        found: dict[str, _Declared] = {}
        for row in self.rows("declared_tools", {"tool": None}):
            contract = contract_from_document(row["declared"])
            known = _Declared(contract, row["served"], row["reconciled"])
            found.setdefault(row["tool"], known)
        return found


@dataclass(frozen=True, slots=True)
class _Declared:
    """A declaration, and whether a living worker and a living reconciler have the tool."""

    contract: ToolContract
    served: bool
    reconciled: bool


def _roles(seen: _Seen) -> Iterator[Finding]:
    rows = {row["role"]: row for row in seen.rows("role_beats", {"host": None})}
    living = {role: rows[role]["living"] for role in _MISSING if role in rows}
    present = [f"{role} {living[role]}" for role in _MISSING if living.get(role)]
    if present:
        yield Finding(OK, "roles", f"living processes: {', '.join(present)}")
    for role, loss in _MISSING.items():
        if living.get(role):
            continue
        since = f"for {_span(rows[role]['beat_seconds'])}" if role in rows else "yet"
        step = "ackbox up --roles relay,reaper,reconciler,consumer --tools MODULE"
        if role == "worker":
            step = "ackbox worker --tools MODULE"
        yield Finding(FAIL, f"role_{role}", f"no {role} has beaten {since}: {loss}", step)


def _unserved(seen: _Seen, registry: Tools) -> Iterator[Finding]:
    waiting = seen.rows("unserved_tools", {"row_limit": ROW_LIMIT})
    for row in waiting:
        text = f"{row['tool']} version {row['tool_version']} is waited for by {row['waiting']} of "
        step = "ackbox worker --tools MODULE with that tool in it"
        yield Finding(
            FAIL, "tool_unserved", f"{text}the ready rows, and no living worker has it", step
        )
    declared = seen.declared()
    named = {served_name(row["tool"], row["tool_version"]) for row in waiting}
    for contract in registry.contracts():
        name = served_name(contract.tool, contract.version)
        known = declared.get(contract.tool)
        served = known and known.served and known.contract.version >= contract.version
        if name not in named and not served:
            text = f"{contract.tool} is in your settings, and no living worker has it"
            step = "restart the workers with these settings: ackbox worker"
            yield Finding(WARN, "tool_unserved", text, step)


def _declarations(seen: _Seen, registry: Tools) -> Iterator[Finding]:
    declared = {tool: known for tool, known in seen.declared().items() if known.served}
    for tool, known in sorted(declared.items()):
        if not known.reconciled and _has_rungs(known.contract):
            text = (
                f"no living reconciler has {tool}: its unknowns are neither probed nor sent again"
            )
            yield Finding(FAIL, "tool_unreconciled", text, "ackbox reconciler --tools MODULE")
    contracts = {tool: known.contract for tool, known in declared.items()}
    contracts |= {contract.tool: contract for contract in registry.contracts()}
    for tool, contract in sorted(contracts.items()):
        if contract.key.kind is KeyKind.NONE and contract.probe is ProbeStrength.NONE:
            text = f"{tool} has no key, no probe: its unknowns wait for a person"
            yield Finding(WARN, "tool_unknowns", text, "declare key= or probe=")
        elif contract.key.kind is not KeyKind.NONE and not contract.may_resend:
            text = f"{tool}: its key window is too short for a resend, so the key settles nothing"
            step = f"declare a longer window, or a shorter call limit and settle time, on {tool}"
            yield Finding(WARN, "tool_window", text, step)


def _has_rungs(contract: ToolContract) -> bool:
    """Return whether a reconciler could do anything about an unknown of the tool."""
    return contract.may_resend or contract.probe is not ProbeStrength.NONE


def _lanes(seen: _Seen) -> Iterator[Finding]:
    late = [
        row
        for row in seen.rows("ready_lanes", {"row_limit": ROW_LIMIT})
        if row["oldest"] > LATE_SECONDS
    ]
    for row in late:
        text = f"lane {row['lane']} is late: {row['ready']} rows ready, "
        text += f"the oldest for {_span(row['oldest'])}"
        yield Finding(FAIL, "lane_late", text, f"ackbox worker --lanes {row['lane']}")


def _waiting(seen: _Seen) -> Iterator[Finding]:
    (counts,) = seen.rows("open_counts", {"row_limit": ROW_LIMIT})
    if counts["diverged"]:
        text = f"facts contradict each other; rows concerned: {_many(counts['diverged'])}"
        yield Finding(WARN, "divergences", text, "ackbox unknowns")
    if counts["parked"]:
        text = f"rows that wait for a person: {_many(counts['parked'])}"
        yield Finding(WARN, "parked", text, "ackbox unknowns")
    if not counts["diverged"] and not counts["parked"]:
        yield Finding(OK, "waiting", "nothing waits for a person")


def _many(number: int) -> str:
    return f"{number} or more" if number >= ROW_LIMIT else str(number)


def _span(seconds: float) -> str:
    seconds = float(seconds)
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
