"""What an edge writes besides the state: a Python change and an SQL SET list under one name.

Pure; may import `guards` and `model`. Aliases are those of `guards`. Every edge also writes the
entry effects of its target state, so that a column that belongs to a state (ready_at, ack_by,
probe_at ...) is set on the way in and cleared on the way out, whoever makes the move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from .guards import NOW
from .model import WITHDRAWABLE_STATES, Move, Row, State, World

Change = Callable[[Row, Move, World], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Effect:
    """A named change of columns. `sql` maps each column to its expression."""

    name: str
    change: Change
    sql: Mapping[str, str]


def _ack_seconds(world: World) -> float:
    return world.contract.ack_seconds if world.contract else 0.0


def _settle_seconds(world: World) -> float:
    return world.contract.settle_seconds if world.contract else 0.0


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def _entry(row: Row, move: Move, world: World, target: State) -> dict[str, Any]:
    """Return the columns that belong to `target`; every other state's columns become null."""
    now = world.now
    in_doubt = target is State.INDETERMINATE
    return {
        "state": target,
        "ready_at": now + _seconds(move.delay_seconds) if target is State.QUEUED else None,
        "hold_at": now if target is State.HELD else None,
        "withdraw_at": row.deadline if target in WITHDRAWABLE_STATES else None,
        "ack_by": _ack_by(world, target),
        "probe_at": now if in_doubt else None,
        "unknown_since": _unknown_since(row, world, target),
        "parked_at": None,
        "settled_at": now if target not in _OPEN else None,
    }


def _unknown_since(row: Row, world: World, target: State) -> Any:
    """A resend keeps the age of the unknown: `park_after` counts from the first one."""
    if target is State.INDETERMINATE:
        return row.unknown_since or world.now
    return row.unknown_since if target is State.AWAITING_ACK else None


_OPEN = WITHDRAWABLE_STATES | {State.AWAITING_ACK, State.INDETERMINATE}


def _ack_by(world: World, target: State) -> Any:
    if target is State.EXECUTING:
        return world.now + _seconds(world.limits.claim_lease_seconds)
    if target is State.AWAITING_ACK:
        return world.now + _seconds(_ack_seconds(world))
    return None


_ACK_SQL = f"{NOW} + make_interval(secs => c.ack_seconds)"


def _entry_sql(target: State) -> dict[str, str]:
    in_doubt = target is State.INDETERMINATE
    ack_by = {
        State.EXECUTING: f"{NOW} + make_interval(secs => :claim_lease_seconds)",
        State.AWAITING_ACK: _ACK_SQL,
    }
    ready = f"{NOW} + make_interval(secs => m.delay_seconds)"
    unknown_since = {
        State.INDETERMINATE: f"coalesce(s.unknown_since, {NOW})",
        State.AWAITING_ACK: "s.unknown_since",
    }
    return {
        "state": f"'{target.value}'",
        "ready_at": ready if target is State.QUEUED else "NULL",
        "hold_at": NOW if target is State.HELD else "NULL",
        "withdraw_at": "s.deadline" if target in WITHDRAWABLE_STATES else "NULL",
        "ack_by": ack_by.get(target, "NULL"),
        "probe_at": NOW if in_doubt else "NULL",
        "unknown_since": unknown_since.get(target, "NULL"),
        "parked_at": "NULL",
        "settled_at": NOW if target not in _OPEN else "NULL",
    }


@cache
def entry(target: State) -> Effect:
    """Return the effect that every edge into `target` writes."""
    return Effect(
        f"enter_{target.value}",
        lambda row, move, world: _entry(row, move, world, target),
        _entry_sql(target),
    )


observed = Effect("observed", lambda r, m, w: {}, {"observation_id": "o.observation_id"})
"""A settled row names the observation that settled it; the store supplies the id."""

claimed = Effect(
    "claimed",
    lambda r, m, w: {
        "fence": r.fence + 1,
        "attempts": r.attempts + 1,
        "owner": m.owner,
        "contract_id": m.contract_id,
    },
    {
        "fence": "s.fence + 1",
        "attempts": "s.attempts + 1",
        "owner": "m.owner",
        "contract_id": "m.contract_id",
    },
)


def _unready_since(row: Row, move: Move, world: World) -> Any:
    if row.unready_since is None or row.ready_at is None:
        return None
    if row.contract_id is None and move.contract_id is not None:
        return None
    return row.unready_since + (world.now - row.ready_at)


taken_up = Effect(
    "taken_up",
    lambda r, m, w: {"unready_since": _unready_since(r, m, w)},
    {
        "unready_since": "CASE WHEN s.contract_id IS NULL AND m.contract_id IS NOT NULL THEN NULL"
        f" ELSE s.unready_since + ({NOW} - s.ready_at) END"
    },
)
"""A claim: waiting in the queue makes no row unready, so `unready_since` moves on by that time.

The first worker that has the tool at all starts anew: what others lacked says nothing about it.
"""

marked = Effect(
    "marked",
    lambda r, m, w: {
        "sends": r.sends + 1,
        "first_sent_at": r.first_sent_at or w.now,
        "quiet_at": w.now + _seconds(_ack_seconds(w) + _settle_seconds(w)),
    },
    {
        "sends": "s.sends + 1",
        "first_sent_at": f"coalesce(s.first_sent_at, {NOW})",
        "quiet_at": f"{NOW} + make_interval(secs => c.ack_seconds + c.settle_seconds)",
    },
)
described = Effect(
    "described",
    lambda r, m, w: {
        "request_digest": m.digest,
        "handle": r.handle if m.handle is None else m.handle,
    },
    {"request_digest": "m.digest", "handle": "coalesce(m.handle, s.handle)"},
)
cleared_of_suspicion = Effect(
    "cleared_of_suspicion",
    lambda r, m, w: {"suspect": False, "suspect_claims": 0, "unready_since": None},
    {"suspect": "false", "suspect_claims": "0", "unready_since": "NULL"},
)
unready = Effect(
    "unready",
    lambda r, m, w: {"unready_since": (r.unready_since or w.now) if m.unready else r.unready_since},
    {
        "unready_since": f"CASE WHEN m.unready THEN coalesce(s.unready_since, {NOW})"
        " ELSE s.unready_since END"
    },
)
suspected = Effect(
    "suspected",
    lambda r, m, w: {
        "suspect": r.suspect or m.unready is False,
        "suspect_claims": r.suspect_claims + (1 if r.suspect else 0),
        "unready_since": (r.unready_since or w.now) if m.unready else r.unready_since,
    },
    {
        "suspect": "s.suspect OR NOT m.unready",
        "suspect_claims": "s.suspect_claims + CASE WHEN s.suspect THEN 1 ELSE 0 END",
        "unready_since": f"CASE WHEN m.unready THEN coalesce(s.unready_since, {NOW})"
        " ELSE s.unready_since END",
    },
)
"""A lapse: a dead owner makes the row suspect (`unready` false), a living one only unready."""

resent = Effect(
    "resent",
    lambda r, m, w: {
        "fence": r.fence + 1,
        "resends": r.resends + 1,
        "owner": m.owner,
        "unresolved": True,
    },
    {
        "fence": "s.fence + 1",
        "resends": "s.resends + 1",
        "owner": "m.owner",
        "unresolved": "true",
    },
)
resolved = Effect("resolved", lambda r, m, w: {"unresolved": False}, {"unresolved": "false"})
counted_clear = Effect(
    "counted_clear", lambda r, m, w: {"resends": r.resends + 1}, {"resends": "s.resends + 1"}
)
doubted = Effect(
    "doubted",
    lambda r, m, w: {
        "in_doubt": r.in_doubt or m.may_duplicate,
        "handle": None if m.drop_handle else r.handle,
    },
    {
        "in_doubt": "s.in_doubt OR m.may_duplicate",
        "handle": "CASE WHEN m.drop_handle THEN NULL ELSE s.handle END",
    },
)
quieted = Effect(
    "quieted",
    lambda r, m, w: {"quiet_at": w.now if m.decisive and m.fence == r.fence else r.quiet_at},
    {"quiet_at": f"CASE WHEN m.decisive AND m.fence = s.fence THEN {NOW} ELSE s.quiet_at END"},
)
"""The attempt that holds the fence recorded Applied or NotApplied: nothing of it is on its way."""

adopted = Effect(
    "adopted", lambda r, m, w: {"adopted_from": m.adopted_from}, {"adopted_from": "m.adopted_from"}
)
undone = Effect("undone", lambda r, m, w: {"undo": None}, {"undo": "NULL"})
reunited = Effect("reunited", lambda r, m, w: {"diverged_at": None}, {"diverged_at": "NULL"})
"""A person's release quotes the divergence it saw, and ends it."""
unwanted = Effect("unwanted", lambda r, m, w: {"wanted": False}, {"wanted": "false"})
