"""Every guard of the protocol once: a Python predicate and an SQL fragment under one name.

Pure; may import `model` and `contract`. The named statements include a fragment by its guard's
name, the in-memory store calls the predicate, and a property test compares both on random rows.

SQL aliases: `s` the state row, `m` the move (one record per row), `c` the row's contract (may be
missing), `{schema}` the outbox's schema. Limits are bind parameters named like their field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from .contract import KeyKind, ProbeStrength
from .model import CALLED_OFF_STATES, GateDecision, Move, Row, State, World

Predicate = Callable[[Row, Move, World], bool]
NOW = "{schema}.clock_now()"


@dataclass(frozen=True, slots=True)
class Guard:
    """A named condition. `code` is the refusal that its failure is told as."""

    name: str
    code: str
    holds: Predicate
    sql: str


def _passed(limit: datetime | None, now: datetime) -> bool:
    return limit is not None and limit <= now


def is_wanted(row: Row, now: datetime) -> bool:
    """Return whether the row may still be executed: not called off and before its deadline."""
    return row.wanted and not _passed(row.deadline, now)


def is_quiet(row: Row, now: datetime) -> bool:
    """Return whether none of the row's sends can reach the tool any more."""
    return row.quiet_at is None or row.quiet_at <= now


def _sends_left(row: Row, world: World) -> bool:
    return world.contract is not None and row.sends < world.contract.max_sends


def _resends_left(row: Row, world: World) -> bool:
    return world.contract is not None and row.resends < world.contract.max_resends


def inside_window(row: Row, world: World) -> bool:
    """Return whether a resend that starts now still meets the tool's key store."""
    contract = world.contract
    if contract is None or contract.key.kind is KeyKind.NONE or row.first_sent_at is None:
        return False
    if contract.key.window_seconds is None:
        return True
    usable_seconds = contract.key.window_seconds - contract.margin_seconds
    return world.now < row.first_sent_at + timedelta(seconds=usable_seconds)


def _earlier(row: Row, world: World) -> list[Row]:
    return [other for other in world.step if other.generation < row.generation]


def adoptable_owner(row: Row, world: World) -> Row | None:
    """Return the earlier generation whose committed effect this row may adopt, else None."""
    earlier = _earlier(row, world)
    for owner in earlier:
        rest = [other for other in earlier if other.seq != owner.seq]
        settled = all(
            other.state in CALLED_OFF_STATES or other.adopted_from == owner.seq for other in rest
        )
        if _owns(owner) and settled and _same_content(owner, row):
            return owner
    return None


def _owns(row: Row) -> bool:
    return row.state is State.COMMITTED and row.adopted_from is None and row.undo is None


def _same_content(one: Row, other: Row) -> bool:
    return one.fingerprint == other.fingerprint and one.content == other.content


def _successor_waits(row: Row, world: World) -> bool:
    """The one exception to `wanted`: the live generation is held and wants the same effect."""
    return any(
        other.live
        and other.generation > row.generation
        and other.state is State.HELD
        and is_wanted(other, world.now)
        and other.diverged_at is None
        and other.fingerprint == row.fingerprint
        for other in world.step
    )


def _overdue(row: Row, world: World) -> bool:
    return not world.owner_alive or _passed(row.ack_by, world.now)


def _unready_too_long(row: Row, world: World) -> bool:
    limit = timedelta(seconds=world.limits.unready_limit_seconds)
    return row.unready_since is not None and row.unready_since + limit <= world.now


def _refusable(row: Row, move: Move, world: World) -> bool:
    if not (move.final or move.transient):
        return False
    spent = not _sends_left(row, world) or not is_wanted(row, world.now) or row.undo is not None
    return move.final or spent


def _person_may_clear(row: Row, move: Move, world: World) -> bool:
    keyless = world.contract is None or world.contract.key.kind is KeyKind.NONE
    in_window = keyless or inside_window(row, world)
    clean = row.key_trusted and in_window and not move.drop_handle
    return clean or move.may_duplicate


WANTED_SQL = f"s.wanted AND (s.deadline IS NULL OR s.deadline > {NOW})"
_SENDS_LEFT_SQL = "coalesce(s.sends < c.max_sends, false)"
_ALIVE_SQL = (
    "EXISTS (SELECT 1 FROM {schema}.worker w WHERE w.worker_id = s.owner"
    " AND w.stopped_at IS NULL"
    f" AND w.beat_at > {NOW} - make_interval(secs => :dead_after_seconds))"
)
_SERVED_SQL = (
    "EXISTS (SELECT 1 FROM {schema}.intent own JOIN {schema}.worker w"
    " ON (own.tool || '@' || own.tool_version) = ANY (w.tools) WHERE own.seq = s.seq"
    " AND w.role = 'worker' AND w.stopped_at IS NULL"
    " AND (cardinality(w.lanes) = 0 OR s.lane = ANY (w.lanes))"
    f" AND w.beat_at > {NOW} - make_interval(secs => :dead_after_seconds))"
)
_UNREADY_SQL = (
    f"coalesce(s.unready_since + make_interval(secs => :unready_limit_seconds) <= {NOW}, false)"
)
_WINDOW_SQL = (
    "coalesce(c.key_kind <> 'none' AND s.first_sent_at IS NOT NULL"
    f" AND (c.key_window_seconds IS NULL OR {NOW} < s.first_sent_at"
    " + make_interval(secs => c.key_window_seconds - c.margin_seconds)), false)"
)
_CALLED_OFF_SQL = "('failed', 'cancelled', 'compensated')"
_EARLIER_SQL = (
    "FROM {schema}.intent own JOIN {schema}.intent other ON other.namespace = own.namespace"
    " AND other.intent_id = own.intent_id JOIN {schema}.intent_state e ON e.seq = other.seq"
    " WHERE own.seq = s.seq AND other.generation < own.generation"
)

wanted = Guard("wanted", "not_wanted", lambda r, m, w: is_wanted(r, w.now), WANTED_SQL)
not_wanted = Guard(
    "not_wanted", "still_wanted", lambda r, m, w: not is_wanted(r, w.now), f"NOT ({WANTED_SQL})"
)
live = Guard("live", "stale_generation", lambda r, m, w: r.live, "s.live")
own_fence = Guard(
    "own_fence", "stale_fence", lambda r, m, w: r.fence == m.fence, "s.fence = m.fence"
)
own_claim = Guard(
    "own_claim", "stale_fence",
    lambda r, m, w: r.owner is not None and r.owner == m.owner,
    "coalesce(s.owner = m.owner, false)",
)  # fmt: skip
undiverged = Guard(
    "undiverged", "divergence", lambda r, m, w: r.diverged_at is None, "s.diverged_at IS NULL"
)
diverged = Guard(
    "diverged", "no_divergence", lambda r, m, w: r.diverged_at is not None,
    "s.diverged_at IS NOT NULL",
)  # fmt: skip
ready = Guard(
    "ready", "not_ready", lambda r, m, w: _passed(r.ready_at, w.now), f"s.ready_at <= {NOW}"
)
alone_if_suspect = Guard(
    "alone_if_suspect", "suspect", lambda r, m, w: m.alone or not r.suspect,
    "(m.alone OR NOT s.suspect)",
)  # fmt: skip
owner_alive = Guard("owner_alive", "owner_dead", lambda r, m, w: w.owner_alive, _ALIVE_SQL)
overdue = Guard(
    "overdue", "not_overdue", lambda r, m, w: _overdue(r, w),
    f"(coalesce(s.ack_by <= {NOW}, false) OR NOT {_ALIVE_SQL})",
)  # fmt: skip
unpaused = Guard(
    "unpaused", "paused", lambda r, m, w: not w.paused,
    "NOT EXISTS (SELECT 1 FROM {schema}.paused p WHERE p.tool IN (c.tool, '*'))",
)  # fmt: skip
read_set_holds = Guard(
    "read_set_holds", "stale_read_set", lambda r, m, w: w.read_set_holds,
    "(s.read_set IS NULL OR NOT EXISTS (SELECT 1 FROM jsonb_each_text(s.read_set) q"
    " LEFT JOIN {schema}.domain d ON d.name = q.key AND d.namespace ="
    " (SELECT own.namespace FROM {schema}.intent own WHERE own.seq = s.seq)"
    " WHERE coalesce(d.version, 0) <> CAST(q.value AS bigint)))",
)  # fmt: skip
has_sent = Guard("has_sent", "nothing_sent", lambda r, m, w: r.sends > 0, "s.sends > 0")
beyond_own_claim = Guard(
    "beyond_own_claim", "no_mark",
    lambda r, m, w: r.state is not State.EXECUTING or m.fence != r.fence,
    "(s.state <> 'executing' OR m.fence IS DISTINCT FROM s.fence)",
)  # fmt: skip
resolved = Guard(
    "resolved", "unresolved", lambda r, m, w: m.key_store or not r.unresolved,
    "(m.key_store OR NOT s.unresolved)",
)  # fmt: skip
transient = Guard("transient", "final", lambda r, m, w: m.transient, "m.transient")
refusable = Guard(
    "refusable", "sends_left", _refusable,
    f"(m.final OR (m.transient AND (NOT {_SENDS_LEFT_SQL} OR NOT ({WANTED_SQL})"
    " OR s.undo IS NOT NULL)))",
)  # fmt: skip
sends_left = Guard(
    "sends_left", "no_sends_left", lambda r, m, w: _sends_left(r, w), _SENDS_LEFT_SQL
)
resends_left = Guard(
    "resends_left", "no_resends_left", lambda r, m, w: _resends_left(r, w),
    "coalesce(s.resends < c.max_resends, false)",
)  # fmt: skip
spent_or_unwanted = Guard(
    "spent_or_unwanted", "sends_left",
    lambda r, m, w: not _sends_left(r, w) or not is_wanted(r, w.now),
    f"(NOT {_SENDS_LEFT_SQL} OR NOT ({WANTED_SQL}))",
)  # fmt: skip
no_undo = Guard("no_undo", "undo_open", lambda r, m, w: r.undo is None, "s.undo IS NULL")
no_adoption = Guard(
    "no_adoption", "not_owner", lambda r, m, w: r.adopted_from is None, "s.adopted_from IS NULL"
)
quiet = Guard(
    "quiet", "not_quiet", lambda r, m, w: is_quiet(r, w.now),
    f"coalesce(s.quiet_at <= {NOW}, true)",
)  # fmt: skip
key_trusted = Guard("key_trusted", "key_untrusted", lambda r, m, w: r.key_trusted, "s.key_trusted")
strong_probe = Guard(
    "strong_probe", "weak_probe",
    lambda r, m, w: w.contract is not None and w.contract.probe is ProbeStrength.STRONG,
    "coalesce(c.probe = 'strong', false)",
)  # fmt: skip
in_key_window = Guard(
    "in_key_window", "window_over", lambda r, m, w: inside_window(r, w), _WINDOW_SQL
)
same_request = Guard(
    "same_request", "request_changed",
    lambda r, m, w: r.request_digest is not None and r.request_digest == m.digest,
    "coalesce(s.request_digest = m.digest, false)",
)  # fmt: skip
wanted_or_successor = Guard(
    "wanted_or_successor", "not_wanted",
    lambda r, m, w: is_wanted(r, w.now) or (not r.live and _successor_waits(r, w)),
    f"(({WANTED_SQL}) OR (NOT s.live AND EXISTS (SELECT 1 FROM {{schema}}.intent own"
    " JOIN {schema}.intent other ON other.namespace = own.namespace"
    " AND other.intent_id = own.intent_id AND other.fingerprint = own.fingerprint"
    " JOIN {schema}.intent_state e ON e.seq = other.seq WHERE own.seq = s.seq"
    " AND other.generation > own.generation AND e.live AND e.state = 'held' AND e.wanted"
    f" AND (e.deadline IS NULL OR e.deadline > {NOW}) AND e.diverged_at IS NULL)))",
)  # fmt: skip
gate_passed = Guard(
    "gate_passed", "awaiting_approval",
    lambda r, m, w: w.gate in (None, GateDecision.APPROVED),
    "NOT EXISTS (SELECT 1 FROM {schema}.gate g WHERE g.seq = s.seq"
    " AND g.decision IS DISTINCT FROM 'approved')",
)  # fmt: skip
earlier_called_off = Guard(
    "earlier_called_off", "earlier_generation",
    lambda r, m, w: all(e.state in CALLED_OFF_STATES for e in _earlier(r, w)),
    f"NOT EXISTS (SELECT 1 {_EARLIER_SQL} AND e.state NOT IN {_CALLED_OFF_SQL})",
)  # fmt: skip
person_may_release = Guard(
    "person_may_release", "earlier_generation",
    lambda r, m, w: all(
        e.state in CALLED_OFF_STATES or (m.may_duplicate and e.state is State.COMMITTED)
        for e in _earlier(r, w)
    ),
    f"NOT EXISTS (SELECT 1 {_EARLIER_SQL} AND e.state NOT IN {_CALLED_OFF_SQL}"
    " AND NOT (m.may_duplicate AND e.state = 'committed'))",
)  # fmt: skip
divergence_quoted = Guard(
    "divergence_quoted", "divergence",
    lambda r, m, w: r.diverged_at is None or r.diverged_at == m.divergence,
    "(s.diverged_at IS NULL OR coalesce(s.diverged_at = m.divergence, false))",
)  # fmt: skip
adopts_owner = Guard(
    "adopts_owner", "nothing_to_adopt",
    lambda r, m, w: (
        (owner := adoptable_owner(r, w)) is not None and owner.seq == m.adopted_from
    ),
    "EXISTS (SELECT 1 FROM {schema}.intent own JOIN {schema}.intent other"
    " ON other.namespace = own.namespace AND other.intent_id = own.intent_id"
    " AND other.fingerprint = own.fingerprint AND other.content = own.content"
    " JOIN {schema}.intent_state e ON e.seq = other.seq"
    " WHERE own.seq = s.seq AND other.seq = m.adopted_from AND other.generation < own.generation"
    " AND e.state = 'committed' AND e.adopted_from IS NULL AND e.undo IS NULL)"
    f" AND NOT EXISTS (SELECT 1 {_EARLIER_SQL} AND e.seq <> m.adopted_from"
    f" AND e.state NOT IN {_CALLED_OFF_SQL} AND e.adopted_from IS DISTINCT FROM m.adopted_from)",
)  # fmt: skip
unready_too_long = Guard(
    "unready_too_long", "unready_limit_open", lambda r, m, w: _unready_too_long(r, w),
    _UNREADY_SQL,
)  # fmt: skip
tool_unserved = Guard(
    "tool_unserved", "tool_served", lambda r, m, w: not w.tool_served, f"NOT {_SERVED_SQL}"
)
# A row that was given back unready is left to the living worker that has its tool.
servable = Guard(
    "servable", "served_elsewhere",
    lambda r, m, w: r.unready_since is None or m.contract_id is not None or not w.tool_served,
    f"(s.unready_since IS NULL OR m.contract_id IS NOT NULL OR NOT {_SERVED_SQL})",
)  # fmt: skip
# It killed its workers, or living ones lose it again and again: an adapter that never returns.
poisonous = Guard(
    "poisonous", "claims_left",
    lambda r, m, w: (
        (r.suspect and r.suspect_claims + 1 >= w.limits.max_claims)
        or (w.owner_alive and _unready_too_long(r, w))
    ),
    "((s.suspect AND s.suspect_claims + 1 >= :max_claims)"
    f" OR ({_UNREADY_SQL} AND {_ALIVE_SQL}))",
)  # fmt: skip
person_may_clear = Guard(
    "person_may_clear", "may_duplicate", _person_may_clear,
    "((s.key_trusted AND NOT m.drop_handle AND (coalesce(c.key_kind, 'none') = 'none'"
    f" OR {_WINDOW_SQL})) OR m.may_duplicate)",
)  # fmt: skip
undo_committed = Guard(
    "undo_committed", "undo_open", lambda r, m, w: w.undo_committed,
    "EXISTS (SELECT 1 FROM {schema}.intent u JOIN {schema}.intent_state us ON us.seq = u.seq"
    " WHERE u.compensates = s.seq AND us.state = 'committed')",
)  # fmt: skip
adopter_of_undone = Guard(
    "adopter_of_undone", "owner_stands",
    lambda r, m, w: any(
        o.seq == r.adopted_from and o.state is State.COMPENSATED for o in w.step
    ),
    "EXISTS (SELECT 1 FROM {schema}.intent_state o WHERE o.seq = s.adopted_from"
    " AND o.state = 'compensated')",
)  # fmt: skip
unbound = Guard("unbound", "duplicate", lambda r, m, w: r.bound_at is None, "s.bound_at IS NULL")
bindable = Guard(
    "bindable", "not_settled",
    lambda r, m, w: r.observation_id is not None
    and (r.state in CALLED_OFF_STATES or (r.state is State.COMMITTED and r.undo is None)),
    f"(s.observation_id IS NOT NULL AND (s.state IN {_CALLED_OFF_SQL}"
    " OR (s.state = 'committed' AND s.undo IS NULL)))",
)  # fmt: skip

GUARDS: dict[str, Guard] = {
    guard.name: guard for guard in list(globals().values()) if isinstance(guard, Guard)
}
