"""Rules about who may move a row, and when: leave to send, limits, leases, fences, adopters.

Like `invariants`, which takes them up: they look at rows, events and the world, never at a guard.
May import the pure core and `world`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from ..outbox.model import GateDecision, Row, State
from .world import World

S = State
_LIMITS = {"refuse.unready": "unready", "refuse.unserved": "unready"}


def send_has_leave(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """Nothing is marked for sending while paused, unapproved, or on a stale read set."""
    if before is None or after.state is not S.AWAITING_ACK or before.state is S.AWAITING_ACK:
        return
    tables, intent = world.store.tables, world.store.tables.intents[after.seq]
    called_off = not before.wanted or not before.live or _is_late(world, before)
    if called_off and not _has_a_successor(world, before):
        yield f"row {after.seq} was marked although it was called off"
    if tables.paused & {intent.tool, "*"}:
        yield f"row {after.seq} was marked while its tool is paused"
    gate = tables.gates.get(after.seq)
    if gate is not None and gate.decision is not GateDecision.APPROVED:
        yield f"row {after.seq} was marked without approval"
    for name, version in (intent.read_set or {}).items():
        if tables.domains.get((intent.namespace, name), 0) != version:
            yield f"row {after.seq} was marked although {name} has changed"


def counts_have_limits(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """Sends and resends (clears included) stay within what the tool declares."""
    if before is None:
        return
    spec = world.tools.specs[world.store.tables.intents[after.seq].tool]
    if after.sends > max(before.sends, spec.max_sends + spec.max_resends):
        yield f"row {after.seq} was sent {after.sends} times"
    if after.resends > max(before.resends, spec.max_resends):
        yield f"row {after.seq} was sent again {after.resends} times"
    queued = before.state is not S.QUEUED and after.state is S.QUEUED
    if queued and before.state is not S.HELD and before.sends >= spec.max_sends:
        said = world.store.tables.recent and world.store.tables.recent[-1].actor == "person"
        if not said:
            yield f"row {after.seq} was queued again after its last send"


def nobody_acts_early(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """Rows are claimed from their time on; leases, deadlines and limits are waited for."""
    if before is None or before.state is after.state:
        return
    now, tables = world.clock.now, world.store.tables
    if after.state is S.EXECUTING and before.ready_at is not None and before.ready_at > now:
        yield f"row {after.seq} was claimed before its time"
    for name in (event.name for event in tables.recent if event.seq == after.seq):
        over = before.ack_by is not None and before.ack_by <= now
        runs_on = not over and tables.is_alive(before.owner)
        if name in ("lapse", "expire", "refuse.poisoned") and runs_on:
            yield f"row {after.seq} was taken from a living process within its lease"
        if name == "refuse.poisoned" and not _has_killed_enough(world, before):
            yield f"row {after.seq} was given up before it killed or stalled often enough"
        if name == "refuse.unserved" and _is_served(world, after.seq):
            yield f"row {after.seq} was given up although a living worker serves its tool"
        if name in _LIMITS and not _unready_long(world, before):
            yield f"row {after.seq} was given up although a worker may yet prepare it"
        if name == "withdraw" and before.wanted and not _is_late(world, before):
            yield f"row {after.seq} was withdrawn although it is wanted"


def _has_a_successor(world: World, row: Row) -> bool:
    """Return whether a later generation waits for exactly the effect that is sent."""
    return any(
        other.live and other.wanted and other.state is S.HELD and other.content == row.content
        for other in world.store.tables.step_of(row.seq)
        if other.generation > row.generation
    )


def _is_served(world: World, seq: int) -> bool:
    tool = world.store.tables.intents[seq].tool
    return any(world.processes[w].runs and world.knows(w, tool) for w in world.spec.workers)


def _has_killed_enough(world: World, row: Row) -> bool:
    killed = row.suspect and row.suspect_claims + 1 >= world.spec.limits.max_claims
    return killed or (world.store.tables.is_alive(row.owner) and _unready_long(world, row))


def _unready_long(world: World, row: Row) -> bool:
    limit = timedelta(seconds=world.spec.limits.unready_limit_seconds)
    return row.unready_since is not None and row.unready_since + limit <= world.clock.now


def _is_late(world: World, row: Row) -> bool:
    return row.deadline is not None and row.deadline <= world.clock.now


def suspects_run_alone(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """A row that may have killed its process is claimed by one that holds nothing unmarked."""
    if before is None or after.state is not S.EXECUTING or not before.suspect:
        return
    rows = world.store.tables.rows.values()
    if any(r.seq != after.seq and r.state is S.EXECUTING and r.owner == after.owner for r in rows):
        yield f"row {after.seq} is suspect and was not claimed alone"


def undone_rows_rest(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """While an effect is undone its row is not queued again."""
    if before is not None and before.undo is not None and after.state is S.QUEUED:
        yield f"row {after.seq} was queued again while it is undone"


def adopters_follow(world: World, before: Row | None, after: Row) -> Iterator[str]:
    """An adopted effect is undone with its owner, and with no row that only borrowed it."""
    if before is None or after.state is not S.COMPENSATED or after.adopted_from is None:
        return
    owner = world.store.tables.rows[after.adopted_from]
    if owner.state is not S.COMPENSATED:
        yield f"row {after.seq} is compensated and its owner is {owner.state.value}"


def releases_quote(world: World, seq: int, what: str, quoted: bool) -> Iterator[str]:
    """A person who lets a row go over an open divergence has to have seen it."""
    before, after = world.store.tables.dirty.get(seq), world.store.tables.rows[seq]
    if what != "release" or quoted or before is None or before.diverged_at is None:
        return
    if after.state is not before.state:
        yield f"row {seq} was released over a divergence that was not quoted"


def stale_fences_move_nothing(world: World, command: Any) -> Iterator[str]:
    """What an attempt reports under an older fence moves its row by proof of the effect alone."""
    seq, fence = command.claim.seq, command.claim.fence
    before, after = world.store.tables.dirty.get(seq), world.store.tables.rows[seq]
    if before is None or before.state is after.state or after.state is S.COMMITTED:
        return
    if fence != before.fence and after.state is not S.HELD:
        yield f"row {seq} became {after.state.value} by a report under fence {fence}"


SEND_RULES = (
    send_has_leave, counts_have_limits, nobody_acts_early, suspects_run_alone, undone_rows_rest,
    adopters_follow,
)  # fmt: skip
"""Checked where a row's state has changed."""
SENDS_INTO: dict[Callable[[World, Row | None, Row], Iterator[str]], frozenset[State]] = {
    send_has_leave: frozenset({S.AWAITING_ACK}),
    suspects_run_alone: frozenset({S.EXECUTING}),
    undone_rows_rest: frozenset({S.QUEUED}),
    adopters_follow: frozenset({S.COMPENSATED}),
}
"""The states that a rule looks at, where it does not look at all of them."""
