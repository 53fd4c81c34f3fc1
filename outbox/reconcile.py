"""The ladder for unknown outcomes: which rung comes next, and what a probe's answer does to a row.

Only decisions; asking the tool is done by the workers' reconciler, which walks these rungs. Pure;
may import `model`, `record`, `records`, `guards`, `backoff` and `commands`.

The rungs in order: evidence (never waits for us), probe, one legal resend with the same key,
wait, and at the end a person. A rung that undoes instead would stand before the park in
`next_rung`; nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

from . import guards
from .backoff import backoff_seconds
from .commands import Claimed, RecordProbe, Resend, Unresolved
from .contract import ProbeStrength
from .defaults import DEFAULTS, Limits
from .model import Move, Row, State, World
from .outcome import Applied, NotApplied, Unknown
from .record import decide as decide_outcome
from .records import Observation, observation_of

FOUND = "found"
ABSENT = "absent"
INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class ProbeRung:
    """Ask the tool whether the effect exists."""


@dataclass(frozen=True, slots=True)
class ResendRung:
    """Send the same request once more under the same key."""


@dataclass(frozen=True, slots=True)
class WaitRung:
    """Look again later. The store waits at least until the row is quiet."""

    delay_seconds: float


@dataclass(frozen=True, slots=True)
class ParkRung:
    """A person's turn; slower looks go on."""

    reason: str
    delay_seconds: float


Rung: TypeAlias = ProbeRung | ResendRung | WaitRung | ParkRung


def next_rung(
    unresolved: Unresolved,
    *,
    probed: bool,
    share: float,
    limits: Limits = DEFAULTS,
    resend_refused: bool = False,
) -> Rung:
    """Return the next rung of this look at an unknown row.

    `probed`: this look's probe was made and settled nothing. `resend_refused`: this look tried to
    resend and may not (another request, an unknown tool). `share` in [0, 1] is the random part of
    the delay. A row that is not quiet is probed once at most, since only Found counts then.
    """
    has_probe = unresolved.contract.probe is not ProbeStrength.NONE
    if has_probe and not probed and (unresolved.quiet or unresolved.probes == 0):
        return ProbeRung()
    if unresolved.quiet and unresolved.may_resend and not resend_refused:
        return ResendRung()
    reason = _why_a_person(unresolved, has_probe, probed)
    if unresolved.parked or reason:
        # Twice the cap at most: slow enough for rows that may stay for weeks.
        slow_seconds = limits.backoff_cap_seconds * (1.0 + min(max(share, 0.0), 1.0))
        return ParkRung(reason or "parked", slow_seconds)
    rounds = unresolved.probes + unresolved.resends + 1
    return WaitRung(backoff_seconds(rounds, share, limits))


def _why_a_person(unresolved: Unresolved, has_probe: bool, probed: bool) -> str | None:
    if not has_probe and not unresolved.resend_later:
        return "no_rung_left"
    if unresolved.too_old:
        return "park_after"
    if has_probe and unresolved.probes + probed >= unresolved.contract.max_probes:
        return "max_probes"
    return None


@dataclass(frozen=True, slots=True)
class ProbeDecision:
    """What a probe's answer does: the moves to try in order, and whether it contradicts the row."""

    moves: tuple[Move, ...] = ()
    diverge: bool = False
    code: str = "recorded"


def decide_probe(
    row: Row, probe: RecordProbe, world: World, known_refs: Collection[str] = ()
) -> ProbeDecision:
    """Return what the answer does to `row` as it stands under its lock.

    Found is evidence whatever became of the row meanwhile. Absent counts only for the row that was
    looked at, and only if it was quiet before the looking began.
    """
    if probe.answer == FOUND:
        return _found(row, probe, world, known_refs)
    if probe.answer != ABSENT or row.state is not State.INDETERMINATE:
        return ProbeDecision(code=probe.answer)
    if not probe.was_quiet or probe.claim.fence != row.fence:
        return ProbeDecision(code="absent_too_early")
    delay_seconds = backoff_seconds(row.resends + 1, world.share, world.limits)
    clear = _move(row, probe, "clear", delay_seconds)
    return ProbeDecision((clear, _move(row, probe, "refuse.absent")), code=ABSENT)


def _move(row: Row, probe: RecordProbe, edge: str, delay_seconds: float = 0.0) -> Move:
    return Move(
        edge, row.seq, row.state, fence=probe.claim.fence, delay_seconds=delay_seconds,
        reason=probe.answer,
    )  # fmt: skip


def _found(
    row: Row, probe: RecordProbe, world: World, known_refs: Collection[str]
) -> ProbeDecision:
    if row.state is State.COMMITTED and not known_refs and not probe.others:
        # The answer that settled it named no object; this is the object.
        return ProbeDecision(code="agrees")
    outcome = Applied(probe.ref, probe.result)
    decided = decide_outcome(row, outcome, None, world, known_refs)
    strangers = [ref for ref in probe.others if ref not in known_refs]
    moves: tuple[Move, ...] = ()
    if decided.move is not None:
        # A probe ends nothing that is still on its way: it never makes the row quiet.
        fence = probe.claim.fence
        moves = (replace(decided.move, fence=fence, decisive=False, reason=FOUND),)
    return ProbeDecision(moves, decided.diverge or bool(strangers), decided.code)


def probe_observation(probe: RecordProbe, number: int) -> Observation:
    """Return what is kept of a probe's answer; `number` tells the looks under one fence apart."""
    if probe.answer == FOUND:
        return observation_of(Applied(probe.ref, probe.result), "probe", number)
    if probe.answer == ABSENT:
        return observation_of(NotApplied(probe.reason, code=ABSENT), "probe", number)
    return observation_of(Unknown(probe.reason, code=probe.answer), "probe", number)


def divergence_reason(probe: RecordProbe) -> str:
    """Return the reason of the divergence that a probe's answer opens."""
    return "two_effects" if probe.others else "divergence"


def resend_move(command: Resend, owner: UUID) -> Move:
    """Return the move by which a reconciler takes a row for one more send under its key."""
    claim = command.claim
    return Move(
        "resend", claim.seq, State.INDETERMINATE, fence=claim.fence, owner=owner,
        digest=command.digest, reason="same_key",
    )  # fmt: skip


def resent(claim: Claimed, fence: int) -> Claimed:
    """Return the claim as the resend holds it."""
    return replace(claim, fence=fence, sends=claim.sends + 1)


_LOST_FOR_GOOD = (
    guards.key_trusted, guards.in_key_window, guards.resends_left, guards.wanted_or_successor,
)  # fmt: skip
_MAY_PASS = (
    guards.undiverged, guards.quiet, guards.no_undo, guards.unpaused, guards.read_set_holds,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prospects:
    """The flags of `Unresolved` that say what is left; the statement find_unknown has them too."""

    resend_later: bool
    may_resend: bool
    too_old: bool


def prospects(row: Row, world: World) -> Prospects:
    """Return which rungs are left for an unknown row, but for its request's digest."""
    move = Move("resend", row.seq, row.state)
    later = all(guard.holds(row, move, world) for guard in _LOST_FOR_GOOD)
    now = later and all(guard.holds(row, move, world) for guard in _MAY_PASS)
    return Prospects(later, now, _too_old(row, world))


def _too_old(row: Row, world: World) -> bool:
    if row.unknown_since is None or world.contract is None:
        return False
    limit = timedelta(seconds=world.contract.park_after_seconds)
    return row.unknown_since + limit <= world.now
