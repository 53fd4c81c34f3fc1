"""Unknown rows of the in-memory outbox, and what people say about rows.

Each method answers as its namesake in the real store and decides by the same pure functions. May
import the pure core of `outbox`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias
from uuid import UUID

from ..outbox import people
from ..outbox.commands import (
    Claimed,
    LookAgain,
    NotMarked,
    Park,
    Recorded,
    RecordProbe,
    Resend,
    Unresolved,
)
from ..outbox.contract import ToolContract
from ..outbox.guards import is_quiet
from ..outbox.model import SETTLED_STATES, Actor, Row, State
from ..outbox.people import Denied, Relative, Said, Stated, Verdict, Wish
from ..outbox.reconcile import (
    FOUND,
    ProbeDecision,
    decide_probe,
    divergence_reason,
    probe_observation,
    prospects,
    resend_move,
    resent,
)
from ..outbox.records import Moved, Note, Observation, Write, observation_of
from ..outbox.transitions import refusal_of
from .store_attempts import claimed_row
from .store_holds import adopters_follow
from .tables import SETTLED, Tables

Answer: TypeAlias = Stated | Denied


class MemoryUnknowns:
    """Answers the reconciler's commands."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def find_unknown(self, limit: int) -> tuple[Unresolved, ...]:
        """Lease at most `limit` unknown rows whose turn has come."""
        tables, now = self._tables, self._tables.clock.now
        due = [r for r in tables.rows.values() if r.probe_at is not None and r.probe_at <= now]
        due.sort(key=lambda row: (row.probe_at, row.seq))
        lease = now + timedelta(seconds=tables.limits.claim_lease_seconds)
        for row in due[:limit]:
            tables.write(row.seq, probe_at=lease)
        return tuple(self._unresolved(seq) for seq in sorted(row.seq for row in due[:limit]))

    def _unresolved(self, seq: int) -> Unresolved:
        tables, row = self._tables, self._tables.rows[seq]
        world, claim = tables.world(seq), claimed_row(tables, seq)
        left = prospects(row, world)
        return Unresolved(
            claim=claim, contract=world.contract or ToolContract(claim.tool, claim.version),
            probes=row.probes, resends=row.resends, quiet=is_quiet(row, world.now),
            parked=row.parked_at is not None, may_resend=left.may_resend,
            too_old=left.too_old, resend_later=left.resend_later,
        )  # fmt: skip

    def _is_held(self, claim: Claimed) -> bool:
        row = self._tables.rows[claim.seq]
        return row.state is State.INDETERMINATE and row.fence == claim.fence

    def look_again(self, command: LookAgain) -> None:
        """Set when the row is looked at next, not before it is quiet."""
        if not self._is_held(command.claim):
            return
        row = self._tables.rows[command.claim.seq]
        later = self._tables.clock.now + timedelta(seconds=command.delay_seconds)
        probe_at = later if row.quiet_at is None else max(later, row.quiet_at)
        self._tables.write(row.seq, probe_at=probe_at)

    def park(self, command: Park) -> None:
        """Put the row in front of a person; slower looks go on."""
        if not self._is_held(command.claim):
            return
        tables, row = self._tables, self._tables.rows[command.claim.seq]
        now = tables.clock.now
        probe_at = now + timedelta(seconds=command.delay_seconds)
        tables.write(row.seq, parked_at=row.parked_at or now, probe_at=probe_at)
        if row.parked_at is None:
            tables.note(
                Note(row.seq, "parked", Actor.RECONCILER, command.reason, row.fence, row.state)
            )

    # -- a probe's answer ------------------------------------------------------------------------

    def record_probe(self, command: RecordProbe) -> Recorded:
        """Keep a probe's answer and take the edge that it proves."""
        tables, claim = self._tables, command.claim
        seq, row = claim.seq, tables.rows[claim.seq]
        refs = tables.known_refs(seq) if command.answer == FOUND else set()
        decision = decide_probe(row, command, tables.world(seq, tables.draw()), refs)
        seen = probe_observation(command, tables.next_number(seq, claim.fence, "probe"))
        moved = self._first_move(row, decision, seen)
        if moved is None:
            tables.keep(seq, claim.fence, seen, Actor.RECONCILER)
            if self._is_held(claim):
                tables.write(seq, probes=row.probes + 1)
        if decision.diverge:
            detail = {"ref": command.ref, "others": list(command.others), "fence": claim.fence}
            tables.diverge(seq, Actor.RECONCILER, divergence_reason(command), detail)
        if moved is None:
            return Recorded(None, row.state, decision.code)
        if moved.state in SETTLED_STATES:
            tables.poke_step(seq)
        return Recorded(moved.edge, moved.state, decision.code)

    def _first_move(self, row: Row, decision: ProbeDecision, seen: Observation) -> Moved | None:
        tables = self._tables
        for move in decision.moves:
            if refusal_of(row, move, tables.world(row.seq)) is None:
                write = Write(move, Actor.RECONCILER, row.contract_id, seen)
                moved = tables.perform([write]).get(row.seq)
                if moved is not None:
                    return moved
        return None

    # -- the resend ------------------------------------------------------------------------------

    def resend(self, command: Resend, owner: UUID) -> Claimed | NotMarked:
        """Take the row for one more send under the same key; NotMarked sends nothing."""
        tables, claim = self._tables, command.claim
        move = resend_move(command, owner)
        contract_id = tables.rows[claim.seq].contract_id
        moved = tables.perform([Write(move, Actor.RECONCILER, contract_id)]).get(claim.seq)
        if moved is None:
            refused = refusal_of(tables.rows[claim.seq], move, tables.world(claim.seq))
            return NotMarked(refused.code if refused else "not_marked")
        return resent(claim, moved.fence)

    def resend_again(self, command: Resend, owner: UUID) -> Claimed | NotMarked:
        """Answer a resend whose COMMIT was lost: the row is read again by owner and fence."""
        row = self._tables.rows[command.claim.seq]
        taken = resent(command.claim, command.claim.fence + 1)
        if row.owner == owner and row.fence == taken.fence and row.state is State.AWAITING_ACK:
            return taken
        return NotMarked("commit_unknown")


class MemoryPeople:
    """A person's side of one outbox."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def landed(self, said: Said, ref: str) -> Answer:
        """Take "it landed" about an unknown row: committed, with that reference."""
        if not ref.strip():
            return Denied("ref_missing", "say where the effect can be seen")
        return self._take(said, lambda row: people.landed(row, said, ref))

    def not_landed(
        self,
        said: Said,
        *,
        requeue: bool = False,
        may_duplicate: bool = False,
        drop_handle: bool = False,
    ) -> Answer:
        """Take "it did not land" about an unknown row: failed, or queued once more."""
        return self._take(
            said,
            lambda row: people.not_landed(
                row, said, requeue=requeue, may_duplicate=may_duplicate, drop_handle=drop_handle
            ),
        )

    def undone(self, said: Said) -> Answer:
        """Take "undone by hand" about a committed or unknown row, its adopters with it."""
        return self._take(said, lambda row: people.undone(row, said))

    def release(
        self, said: Said, *, may_duplicate: bool = False, divergence: int | None = None
    ) -> Answer:
        """Let a held row go; `divergence` is the number of the latest one that was seen."""
        denied = self._unspeakable(said)
        if denied is not None:
            return denied
        row = self._tables.rows[said.seq]
        wish = people.decide_release(
            row, said, self._tables.world(said.seq), self._name(said), self._family(said.seq),
            may_duplicate=may_duplicate, divergence=divergence,
        )  # fmt: skip
        if isinstance(wish, Denied):
            return wish
        answer = self._write(said, row, wish)
        if isinstance(answer, Stated) and row.diverged_at is not None:
            self._reset(said.seq)
        return answer

    def close_divergence(self, said: Said, divergence: int, verdict: Verdict) -> Answer:
        """End an open divergence without an edge; what waited for it may bind and move on."""
        denied = self._unspeakable(said) or people.refusal_to_close(
            self._family(said.seq), divergence, verdict, self._name(said)
        )
        if denied is not None:
            return denied
        tables, row = self._tables, self._tables.rows[said.seq]
        document = {"kind": verdict.value, "reason": said.reason, "divergence": divergence}
        number = tables.next_number(row.seq, row.fence, "statement")
        seen = Observation("statement", verdict.value, document, number)
        tables.keep(row.seq, row.fence, seen, Actor.PERSON)
        detail = {"verdict": verdict.value, "divergence": divergence}
        tables.note(
            Note(row.seq, "divergence_closed", Actor.PERSON, said.reason, row.fence, row.state,
                 said.actor_name, detail=detail)
        )  # fmt: skip
        self._reset(said.seq)
        return Stated(said.seq, None, row.state, row.fence)

    # -- shared ----------------------------------------------------------------------------------

    def _unspeakable(self, said: Said) -> Denied | None:
        if not said.reason.strip():
            return Denied(people.REASON_MISSING, "say why; it is kept on record")
        if said.seq not in self._tables.rows:
            return Denied("not_found", f"row {said.seq} does not exist", None, "ackbox ls")
        return None

    def _name(self, said: Said) -> str:
        row = self._tables.rows.get(said.seq)
        owner = said.seq if row is None else (row.adopted_from or said.seq)
        return self._tables.intents[owner].intent_id if row is not None else ""

    def _take(self, said: Said, wish_for: Callable[[Row], Wish]) -> Answer:
        denied = self._unspeakable(said)
        if denied is not None:
            return denied
        row = self._tables.rows[said.seq]
        wish = wish_for(row)
        refused = people.denial(row, wish, self._tables.world(said.seq), self._name(said))
        return refused or self._write(said, row, wish)

    def _write(self, said: Said, row: Row, wish: Wish) -> Answer:
        tables, seen = self._tables, None
        if wish.outcome is not None:
            number = tables.next_number(row.seq, wish.move.fence or 0, "statement")
            seen = observation_of(wish.outcome, "statement", number)
        write = Write(wish.move, Actor.PERSON, row.contract_id, seen, said.actor_name,
                      people.risks(wish))  # fmt: skip
        moved = tables.perform([write]).get(row.seq)
        if moved is None:
            show = f"ackbox show {self._name(said)}"
            return Denied(people.GUARD_FAILED, "the row moved on", None, show)
        if moved.state is State.COMPENSATED:
            tables.perform(
                adopters_follow(tables, row.seq, Actor.PERSON, said.reason, said.actor_name)
            )
        tables.poke_step(row.seq)
        return Stated(row.seq, moved.edge, moved.state, moved.fence)

    def _family(self, seq: int) -> list[Relative]:
        """Return the rows that share divergences with a row: its step's and their undos'."""
        tables = self._tables
        root = tables.intents[seq].compensates or seq
        step = tables.names[tables.intents[root].name]
        undos = [undo for one in step for undo in tables.undos.get(one, ())]
        return [self._relative(one) for one in sorted({*step, *undos})]

    def _relative(self, seq: int) -> Relative:
        numbers = [e.event_id for e in self._tables.events[seq] if e.name == "divergence"]
        compensates = self._tables.intents[seq].compensates
        return Relative(seq, compensates, max(numbers, default=None), self._tables.rows[seq])

    def _reset(self, seq: int) -> None:
        """End an open divergence on all rows that it marked."""
        tables = self._tables
        family = [one.seq for one in self._family(seq)]
        for one in family:
            if tables.rows[one].diverged_at is not None:
                tables.write(one, diverged_at=None)
        waiting = [
            one
            for one in family
            if tables.rows[one].live
            and tables.rows[one].settled_at is not None
            and tables.rows[one].bound_at is None
        ]
        if waiting:
            tables.add_batch(SETTLED, waiting)
        for one in family:
            tables.poke_step(one)
