"""What is read to show people how things stand: unknowns, lists, counts, one intent's history.

Reads only, and neither arguments nor results. May import the pure core and SQLAlchemy; every
function runs in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..identity import DEFAULT_NAMESPACE
from ..model import State
from .statements import Statements

HISTORY_LIMIT = 5000
"""Most entries of one history; what is older than these is shown first and the rest left out."""

PARKED = "yours: it landed | did not land | undone | compensate"
"""What is next for a row that waits for a person's word."""


class _Shown:
    """Gives a row under stable keys, with times and enumerations as text."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {name: _plain(value) for name, value in asdict(self).items()}  # type: ignore[call-overload]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value


@dataclass(frozen=True)
class UnknownRow(_Shown):
    """A row that nobody knows the outcome of, or that waits for a person."""

    seq: int
    namespace: str
    intent_id: str
    generation: int
    run_id: str | None
    step: str | None
    tool: str
    state: State
    fence: int
    sends: int
    live: bool
    parked: bool
    divergence: int | None
    """The number that a release or a close has to quote; None where none is open."""
    age_seconds: float
    last_word: str
    window_left_seconds: float | None
    """Time left for a same-key resend; None where there is no key or no end."""
    quiet_in_seconds: float
    next: str


def unknowns(
    connection: Connection,
    statements: Statements,
    *,
    namespace: str | None = None,
    limit: int = 200,
) -> list[UnknownRow]:
    """Return unknown, parked and diverged rows, oldest first."""
    values = {"namespace": namespace, "row_limit": limit}
    return [_unknown(row) for row in _rows(connection, statements, "unknowns", values)]


def _unknown(row: RowMapping) -> UnknownRow:
    left = row["window_left_seconds"]
    return UnknownRow(
        seq=row["seq"], namespace=row["namespace"], intent_id=row["intent_id"],
        generation=row["generation"], run_id=row["run_id"], step=row["step"],
        tool=row["tool"], state=State(row["state"]), fence=row["fence"], sends=row["sends"],
        live=row["live"], parked=row["parked"],
        divergence=row["divergence"], age_seconds=float(row["age_seconds"]),
        last_word=_last_word(row),
        window_left_seconds=None if row["key_kind"] in (None, "none") or left is None
        else max(float(left), 0.0),
        quiet_in_seconds=float(row["quiet_in_seconds"] or 0.0), next=_next(row),
    )  # fmt: skip


def _last_word(row: RowMapping) -> str:
    if row["diverged"]:
        return "divergence"
    if row["state"] == State.HELD.value:
        return f"held: {row['waits_for'] or 'not looked at yet'}"
    # Without an observation nobody came back: the lease ran out, or the process died.
    return row["word_said"] or row["word_outcome"] or row["waits_for"] or "no answer"


def _next(row: RowMapping) -> str:
    if row["diverged"]:
        return "yours: release | close-divergence"
    if row["state"] == State.HELD.value:
        return "yours: release | cancel"
    if row["parked"]:
        return PARKED
    if row["state"] != State.INDETERMINATE.value:
        return "none"
    seconds = float(row["look_in_seconds"] or 0.0)
    if row["probe"] not in (None, "none"):
        return f"probe in {seconds:.0f} s"
    if row["may_resend"]:
        return f"resend in {seconds:.0f} s (same key)"
    return f"look in {seconds:.0f} s"


@dataclass(frozen=True)
class GenerationRow(_Shown):
    """One generation of an intent, or a compensation of one (`compensates` is its target)."""

    seq: int
    namespace: str
    intent_id: str
    generation: int
    run_id: str | None
    step: str | None
    tool: str
    tool_version: int
    lane: str
    compensates: int | None
    created_at: datetime
    state: State
    fence: int
    attempts: int
    sends: int
    resends: int
    probes: int
    live: bool
    wanted: bool
    key_trusted: bool
    unresolved: bool
    in_doubt: bool
    undo: int | None
    adopted_from: int | None
    parked_at: datetime | None
    diverged_at: datetime | None
    settled_at: datetime | None
    bound_at: datetime | None
    handed_at: datetime | None
    deadline: datetime | None
    ref: str | None
    gate: str | None
    gate_fingerprint: str | None
    quiet_in_seconds: float


@dataclass(frozen=True)
class HistoryEntry(_Shown):
    """One thing that happened: `kind` event moved or noted something, the others were observed.

    `name` is the edge or event, or the observed outcome. `number` of a divergence event is what a
    release quotes.
    """

    at: datetime
    kind: str
    number: int
    seq: int
    name: str
    from_state: str | None
    to_state: str | None
    actor: str
    actor_name: str | None
    fence: int | None
    reason: str | None
    ref: str | None


@dataclass(frozen=True)
class IntentHistory(_Shown):
    """Everything on record about one intent, its generations and their compensations."""

    generations: tuple[GenerationRow, ...]
    entries: tuple[HistoryEntry, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return both parts under stable keys."""
        return {
            "generations": [one.as_dict() for one in self.generations],
            "entries": [one.as_dict() for one in self.entries],
        }


def generations(
    connection: Connection,
    statements: Statements,
    intent_id: str,
    namespace: str = DEFAULT_NAMESPACE,
) -> tuple[GenerationRow, ...]:
    """Return the generations of an intent in order, with the compensations of them."""
    values = {"namespace": namespace, "intent_id": intent_id}
    return tuple(
        GenerationRow(**{**row, "state": State(row["state"]),
                         "quiet_in_seconds": float(row["quiet_in_seconds"] or 0.0)})
        for row in _rows(connection, statements, "generations", values)
    )  # fmt: skip


def history(
    connection: Connection,
    statements: Statements,
    intent_id: str,
    namespace: str = DEFAULT_NAMESPACE,
) -> IntentHistory | None:
    """Return every event and observation of an intent in order, None where it is unknown."""
    found = generations(connection, statements, intent_id, namespace)
    if not found:
        return None
    values = {"seqs": [one.seq for one in found], "row_limit": HISTORY_LIMIT}
    rows = _rows(connection, statements, "history", values)
    return IntentHistory(found, tuple(HistoryEntry(**row) for row in rows))


def row_to_speak_of(
    connection: Connection,
    statements: Statements,
    intent_id: str,
    namespace: str = DEFAULT_NAMESPACE,
    generation: int | None = None,
) -> GenerationRow | None:
    """Return the generation that a person means: the named one, else the unknown, else the live.

    The latest of several unknown ones; None where there is no such intent or generation.
    """
    own = [
        one
        for one in generations(connection, statements, intent_id, namespace)
        if one.intent_id == intent_id and generation in (None, one.generation)
    ]
    unknown = [one for one in own if one.state is State.INDETERMINATE]
    live = [one for one in own if one.live]
    for choice in (unknown, live, own):
        if choice:
            return choice[-1]
    return None


@dataclass(frozen=True)
class IntentFilter:
    """Which intents to list; None matches all. `prefix` is of the intent_id."""

    namespace: str | None = None
    state: State | None = None
    tool: str | None = None
    lane: str | None = None
    run_id: str | None = None
    step: str | None = None
    prefix: str | None = None
    only_parked: bool = False


@dataclass(frozen=True)
class IntentRow(_Shown):
    """One generation in a list."""

    seq: int
    namespace: str
    intent_id: str
    generation: int
    run_id: str | None
    step: str | None
    tool: str
    lane: str
    state: State
    sends: int
    live: bool
    parked: bool
    diverged: bool
    age_seconds: float


def list_intents(
    connection: Connection,
    statements: Statements,
    wanted: IntentFilter | None = None,
    *,
    before_seq: int | None = None,
    limit: int = 50,
) -> list[IntentRow]:
    """Return one page, newest first; the next page is asked for with the last row's seq."""
    values = {**asdict(wanted or IntentFilter()), "before_seq": before_seq, "row_limit": limit}
    values["state"] = values["state"].value if values["state"] else None
    return [
        IntentRow(**{**row, "state": State(row["state"]),
                     "age_seconds": float(row["age_seconds"])})
        for row in _rows(connection, statements, "list_intents", values)
    ]  # fmt: skip


@dataclass(frozen=True)
class StateCount(_Shown):
    """How many rows stand in a state; how many of them are parked, how many diverged."""

    state: State
    number: int
    parked: int
    diverged: int


def counts(connection: Connection, statements: Statements) -> list[StateCount]:
    """Return counts by state. Reads every row: for a person who asks, not for a loop."""
    return [
        StateCount(**{**row, "state": State(row["state"])})
        for row in _rows(connection, statements, "counts", {})
    ]


def _rows(
    connection: Connection, statements: Statements, name: str, values: Mapping[str, Any]
) -> list[RowMapping]:
    statement, limits = statements.named(name)
    return list(connection.execute(statement, {**limits, **values}).mappings())
