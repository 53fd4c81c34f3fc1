"""Parts of a world that ask no question before they name a move, so that only the guard asks it.

Some guards are asked twice: the code that names a move has looked at the same row under the same
lock. In Postgres the guard stands in the statement that writes, and decides for a row that has
changed since it was read; a world has nothing in between, so a part that does not look stands for
it. With the guard in place none of these breaks a rule. May import the parts of a world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..outbox.commands import GiveBack, HoldAnswer, Record, Recorded
from ..outbox.model import SETTLED_STATES, WITHDRAWABLE_STATES, Actor, Move, Row, State, changed
from ..outbox.record import Decision
from ..outbox.records import Observation, Write, order
from ..outbox.transitions import EDGE
from .store_attempts import MemoryAttempts, MemoryClaims, MemoryReaper
from .store_holds import MemoryHolds
from .tables import Tables
from .world import World


def _take(tables: Tables, move: Move, actor: Actor) -> bool:
    settles = EDGE[move.edge].target in SETTLED_STATES
    seen: Observation | None = order(move.reason or move.edge) if settles else None
    contract_id = tables.rows[move.seq].contract_id
    return bool(tables.perform([Write(move, actor, contract_id, seen)]))


# -- the reaper ------------------------------------------------------------------------------------


class _BlindReaper(MemoryReaper):
    """Reaps every row that is in some state, whatever its lease and its plan say."""

    states: frozenset[State] = frozenset()

    def find_overdue(self, limit: int) -> tuple[int, ...]:
        """Return every row of the states."""
        return tuple(s for s, row in self._tables.rows.items() if row.state in self.states)

    def reap(self, seqs: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Move each of them."""
        for seq in seqs:
            _take(self._tables, self.name(self._tables.rows[seq]), Actor.REAPER)
        return ()

    def name(self, row: Row) -> Move:
        """Return the move of a row."""
        return Move("withdraw", row.seq, row.state, reason="deadline")


class _Withdrawer(_BlindReaper):
    states = WITHDRAWABLE_STATES


class _Robber(_BlindReaper):
    states = frozenset({State.EXECUTING, State.AWAITING_ACK})

    def name(self, row: Row) -> Move:
        edge = "lapse" if row.state is State.EXECUTING else "expire"
        return Move(edge, row.seq, row.state, reason="owner_dead")


def withdraws_blindly(world: World) -> None:
    """Have a reaper that does not ask whether a row is wanted."""
    world.store.reaper = _Withdrawer(world.store.tables)


def reaps_blindly(world: World) -> None:
    """Have a reaper that does not ask whether a row is overdue."""
    world.store.reaper = _Robber(world.store.tables)


# -- claims ----------------------------------------------------------------------------------------


class _Early(MemoryClaims):
    """Scans rows before their time."""

    def _ready(self, lane: str, alone: bool) -> list[Row]:
        rows = self._tables.rows.values()
        return [r for r in rows if r.ready_at is not None and r.lane == lane and not r.suspect]


class _Unsuspecting(MemoryClaims):
    """Scans rows that may have killed their process like all others."""

    def _ready(self, lane: str, alone: bool) -> list[Row]:
        return [*super()._ready(lane, False), *super()._ready(lane, True)]


def claims_early(world: World) -> None:
    """Have a scan that does not ask for the time."""
    world.store.claims = _Early(world.store.tables)


def claims_unsuspecting(world: World) -> None:
    """Have a scan that does not ask who died of a row."""
    world.store.claims = _Unsuspecting(world.store.tables)


# -- attempts --------------------------------------------------------------------------------------


class _FenceBlind(MemoryAttempts):
    """Decides on every report as if it came from the attempt that holds the row."""

    def _decide(self, row: Row, record: Record) -> Decision:
        own = replace(record, claim=replace(record.claim, fence=row.fence))
        decision = super()._decide(row, own)
        if decision.move is None:
            return decision
        return replace(decision, move=replace(decision.move, fence=record.claim.fence))


class _Resolute(MemoryAttempts):
    """Decides as if no earlier send of the row were open."""

    def _decide(self, row: Row, record: Record) -> Decision:
        return super()._decide(changed(row, {"unresolved": False}), record)


class _Dreamer(MemoryAttempts):
    """Takes every row that comes back unsent for done, quoting some fence."""

    def __init__(self, tables: Tables, older: int) -> None:
        super().__init__(tables)
        self._older = older

    def _give_back(self, command: GiveBack) -> Recorded:
        row = self._tables.rows[command.claim.seq]
        move = Move("acknowledge", row.seq, row.state, fence=row.fence - self._older,
                    decisive=True, reason="applied")  # fmt: skip
        if row.sends >= 1 - self._older and _take(self._tables, move, Actor.WORKER):
            return Recorded(move.edge, State.COMMITTED, "recorded")
        return super()._give_back(command)


class _Hopeless(MemoryAttempts):
    """Gives every row up that comes back unsent."""

    def _give_back(self, command: GiveBack) -> Recorded:
        row = self._tables.rows[command.claim.seq]
        move = Move("refuse.unready", row.seq, row.state, fence=row.fence, owner=row.owner,
                    reason=command.reason)  # fmt: skip
        if _take(self._tables, move, Actor.WORKER):
            return Recorded(move.edge, State.FAILED, "recorded")
        return super()._give_back(command)


def _attempts(part: Callable[[Tables], MemoryAttempts]) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.store.attempts = part(world.store.tables)

    return plant


decides_fence_blind = _attempts(_FenceBlind)
decides_resolutely = _attempts(_Resolute)
dreams_of_unsent_rows = _attempts(lambda tables: _Dreamer(tables, 1))
dreams_of_its_own_claim = _attempts(lambda tables: _Dreamer(tables, 0))
gives_up_at_once = _attempts(_Hopeless)


# -- compensations ---------------------------------------------------------------------------------


class _Hopeful(MemoryHolds):
    """Ends compensations that have only been ordered, and adopters whose owner stands."""

    edge = "compensate"

    def find_undone(self, limit: int) -> tuple[int, ...]:
        """Return every committed row that the edge could be tried on."""
        rows = self._tables.rows
        return tuple(s for s, row in rows.items() if row.state is State.COMMITTED and self._is(row))

    def _is(self, row: Row) -> bool:
        return row.undo is not None

    def finish_undo(self, seq: int) -> HoldAnswer:
        """Take the edge without asking."""
        row = self._tables.rows[seq]
        _take(self._tables, Move(self.edge, seq, row.state, reason="undone"), Actor.OUTBOX)
        return HoldAnswer(self.edge, self.edge, "")


class _HopefulAdopter(_Hopeful):
    edge = "compensate.adopter"

    def _is(self, row: Row) -> bool:
        return row.adopted_from is not None


def undone_when_ordered(world: World) -> None:
    """Have a hold pass that does not wait for the compensation."""
    world.store.holds = _Hopeful(world.store.tables)


def adopters_undone_alone(world: World) -> None:
    """Have a hold pass that does not ask for an adopter's owner."""
    world.store.holds = _HopefulAdopter(world.store.tables)
