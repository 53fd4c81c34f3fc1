"""Marks, records and gives back many attempts at once; each row is still judged by its own fence.

What one call writes together is one transaction. A batch that fails is repeated row by row, so one
bad row never costs its neighbours their outcome. Nothing here calls a tool.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from ..commands import GiveBack, Marked, MarkSend, NotMarked, Record, Recorded
from ..defaults import Limits
from ..give_back import moves_of
from ..marking import AfterLostCommit, after_lost_commit, mark_move
from ..model import SETTLED_STATES, Actor, Move, State
from ..outcome import Accepted, Applied, NotApplied, Outcome
from ..record import Decision, decide, recorded
from ..transitions import EDGE, refusal_of
from .database import CommitUnknown, Database, LockTimeout
from .divergence import diverge
from .moves import Moved, Write, observation_of, observe, order, perform
from .rows import Locked, RowReader
from .statements import Statements

_log = structlog.get_logger(__name__)
Command = TypeVar("Command")
LOCKED_ROW = Recorded(None, None, "locked")
"""Somebody else's transaction, a planner's perhaps, holds the row; it alone has to wait."""


class AttemptStore:
    """The attempts' side of one outbox. `draw` returns a random share for back-offs."""

    def __init__(
        self,
        database: Database,
        statements: Statements,
        limits: Limits,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._statements = statements
        self._reader = RowReader(statements, limits)
        self._draw = draw

    # -- the send mark ---------------------------------------------------------------------------

    def mark(self, batch: Sequence[MarkSend], owner: UUID) -> list[Marked | NotMarked]:
        """Write send marks; a row without one in the reply must not be sent.

        After a lost COMMIT each row is read again by owner and fence: marked ones go on, unmarked
        ones are marked again, everything else sends nothing.
        """
        try:
            done = self._database.run(lambda c: self._mark(c, batch, owner), commit_lost="raise")
        except CommitUnknown:
            done = self._mark_again(batch, owner)
        except (DBAPIError, LockTimeout) as error:
            return self._mark_alone(batch, owner, error)
        return [done[command.claim.seq] for command in batch]

    def _mark_alone(
        self, batch: Sequence[MarkSend], owner: UUID, error: Exception
    ) -> list[Marked | NotMarked]:
        if len(batch) == 1:
            _log.error("mark_refused", seq=batch[0].claim.seq, error=type(error).__name__)
            locked = isinstance(error, LockTimeout)
            return [NotMarked("not_marked" if locked else "not_storable")]
        return [reply for command in batch for reply in self.mark([command], owner)]

    def _mark(
        self, connection: Connection, batch: Sequence[MarkSend], owner: UUID
    ) -> dict[int, Marked | NotMarked]:
        moves = {command.claim.seq: mark_move(command, owner) for command in batch}
        writes = [
            Write(moves[command.claim.seq], Actor.WORKER, command.claim.contract_id)
            for command in batch
        ]
        moved = perform(connection, self._statements, writes)
        missed = [moves[seq] for seq in moves if seq not in moved]
        codes = self._why_not(connection, missed)
        return {seq: Marked() if seq in moved else NotMarked(codes[seq]) for seq in moves}

    def _mark_again(self, batch: Sequence[MarkSend], owner: UUID) -> dict[int, Marked | NotMarked]:
        states = self._database.run(lambda c: self._held(c, batch, owner))
        next_of = {one.claim.seq: after_lost_commit(states.get(one.claim.seq)) for one in batch}
        again = [one for one in batch if next_of[one.claim.seq] is AfterLostCommit.MARK_AGAIN]
        done: dict[int, Marked | NotMarked] = {
            seq: Marked() if what is AfterLostCommit.GO_ON else NotMarked("commit_unknown")
            for seq, what in next_of.items()
        }
        if again:
            # One lost acknowledgement is followed up; a second one in a row sends nothing.
            done |= self._database.run(lambda c: self._mark(c, again, owner), commit_lost="raise")
        return done

    def _held(
        self, connection: Connection, batch: Sequence[MarkSend], owner: UUID
    ) -> dict[int, State]:
        held = [{"seq": command.claim.seq, "fence": command.claim.fence} for command in batch]
        statement, _ = self._statements.named("reread")
        rows = connection.execute(statement, {"held": json.dumps(held), "owner": str(owner)})
        return {row.seq: State(row.state) for row in rows}

    def _why_not(self, connection: Connection, moves: Sequence[Move]) -> dict[int, str]:
        if not moves:
            return {}
        locked = self._reader.lock(connection, [move.seq for move in moves])
        statement, limits = self._statements.named("mark_missed")
        rows = connection.execute(statement, {"seqs": sorted(locked), **limits}).mappings()
        outside = {row["seq"]: row for row in rows}
        codes = {}
        for move in moves:
            found, facts = locked[move.seq], outside[move.seq]
            world = replace(
                found.world, paused=not facts["unpaused"], read_set_holds=facts["read_set_holds"]
            )
            refusal = refusal_of(found.row, move, world)
            codes[move.seq] = refusal.code if refusal else "not_marked"
        return codes

    # -- outcomes --------------------------------------------------------------------------------

    def record(self, batch: Sequence[Record]) -> list[Recorded]:
        """Keep outcomes and take the edges that they call for, each judged on its locked row.

        The reply LOCKED_ROW says that another transaction held that row's lock for too long:
        nothing is kept of it yet, and it must be recorded again.
        """
        return self._together_or_alone(batch, self._record, self._record_bare)

    def _record_bare(self, record: Record, error: DBAPIError) -> Recorded:
        """Keep what the database refused without its texts and result: the effect stays proven."""
        _log.error("outcome_not_storable", seq=record.claim.seq, error=type(error.orig).__name__)
        bare = replace(record, outcome=_bare(record.outcome))
        try:
            return self._database.run(lambda connection: self._record(connection, [bare]))[0]
        except DBAPIError as again:
            _log.error("outcome_lost", seq=record.claim.seq, error=type(again.orig).__name__)
            return Recorded(None, None, "not_storable")

    def _record(self, connection: Connection, batch: Sequence[Record]) -> list[Recorded]:
        replies: dict[int, Recorded] = {}
        for positions in _rounds([record.claim.seq for record in batch]):
            some = [batch[position] for position in positions]
            for position, reply in zip(
                positions, self._record_round(connection, some), strict=True
            ):
                replies[position] = reply
        return [replies[position] for position in range(len(batch))]

    def _record_round(self, connection: Connection, batch: Sequence[Record]) -> list[Recorded]:
        locked = self._reader.lock(connection, [record.claim.seq for record in batch])
        refs = self._known_refs(connection, batch, locked)
        decisions = [self._decide(record, locked, refs) for record in batch]
        writes = [
            Write(
                decision.move, Actor.WORKER, locked[record.claim.seq].row.contract_id,
                observation_of(record.outcome, record.kind, record.number),
            )
            for record, decision in zip(batch, decisions, strict=True)
            if decision.move is not None
        ]  # fmt: skip
        moved = perform(connection, self._statements, writes)
        self._keep_rest(connection, batch, decisions, moved)
        return [
            recorded(decision, moved.get(record.claim.seq), locked[record.claim.seq].row.state)
            for record, decision in zip(batch, decisions, strict=True)
        ]

    def _decide(
        self, record: Record, locked: dict[int, Locked], refs: dict[int, set[str]]
    ) -> Decision:
        found = locked[record.claim.seq]
        world = replace(found.world, share=self._draw())
        known = refs.get(record.claim.seq, set())
        return decide(found.row, record.outcome, record.claim.fence, world, known)

    def _known_refs(
        self, connection: Connection, batch: Sequence[Record], locked: dict[int, Locked]
    ) -> dict[int, set[str]]:
        """Read references only where an effect is reported for a row that is settled already."""
        seqs = [
            record.claim.seq
            for record in batch
            if isinstance(record.outcome, Applied | Accepted)
            and locked[record.claim.seq].row.state in SETTLED_STATES
        ]
        known: dict[int, set[str]] = {}
        if seqs:
            statement, _ = self._statements.named("known_refs")
            for row in connection.execute(statement, {"seqs": sorted(seqs)}):
                known.setdefault(row.seq, set()).add(row.ref)
        return known

    def _keep_rest(
        self,
        connection: Connection,
        batch: Sequence[Record],
        decisions: Sequence[Decision],
        moved: dict[int, Moved],
    ) -> None:
        pairs = list(zip(batch, decisions, strict=True))
        observe(
            connection,
            self._statements,
            [
                (
                    record.claim.seq, record.claim.fence,
                    observation_of(record.outcome, record.kind, record.number), Actor.WORKER,
                )
                for record, decision in pairs
                if decision.move is None
            ],
        )  # fmt: skip
        self._keep_facts(connection, pairs)
        for record, decision in pairs:
            if decision.diverge:
                self._diverge(connection, record, decision)

    def _keep_facts(self, connection: Connection, pairs: Iterable[tuple[Record, Decision]]) -> None:
        facts = [
            {
                "seq": record.claim.seq, "distrust": decision.distrust,
                "cut_off": decision.cut_off, "unresolve": decision.unresolve,
                "quiet": decision.quiet,
            }
            for record, decision in pairs
            if decision.distrust or decision.cut_off or decision.unresolve or decision.quiet
        ]  # fmt: skip
        if facts:
            statement, _ = self._statements.named("facts")
            connection.execute(statement, {"facts": json.dumps(facts)})

    def _diverge(self, connection: Connection, record: Record, decision: Decision) -> None:
        self._reader.lock_step(connection, record.claim.seq)
        detail = {
            "ref": getattr(record.outcome, "ref", None),
            "fence": record.claim.fence,
            "tool": record.claim.tool,
        }
        diverge(
            connection, self._statements, record.claim.seq,
            actor=Actor.WORKER, reason=decision.code, detail=detail,
        )  # fmt: skip

    # -- unsent attempts -------------------------------------------------------------------------

    def give_back(self, batch: Sequence[GiveBack]) -> list[Recorded]:
        """Return executing rows unsent; a row that is not wanted any more is withdrawn."""
        return self._together_or_alone(batch, self._give_back, _not_given_back)

    def _give_back(self, connection: Connection, batch: Sequence[GiveBack]) -> list[Recorded]:
        locked = self._reader.lock(connection, [command.claim.seq for command in batch])
        tries = {
            seq: list(moves_of(command, locked[seq].row, locked[seq].world))
            for command in batch
            for seq in (command.claim.seq,)
        }
        moved: dict[int, Moved] = {}
        while any(tries.values()):
            writes = [
                _give_back_write(moves.pop(0), command, locked[command.claim.seq])
                for command in batch
                if (moves := tries.get(command.claim.seq))
            ]
            done = perform(connection, self._statements, writes)
            moved |= done
            tries = {seq: moves for seq, moves in tries.items() if seq not in done}
        return [
            recorded(Decision(code="stale_fence"), moved.get(seq), locked[seq].row.state)
            for seq in (command.claim.seq for command in batch)
        ]

    # -- shared ----------------------------------------------------------------------------------

    def _together_or_alone(
        self,
        batch: Sequence[Command],
        work: Callable[[Connection, Sequence[Command]], list[Recorded]],
        refused: Callable[[Command, DBAPIError], Recorded],
    ) -> list[Recorded]:
        """Run the batch in one transaction; row by row where it fails. Raises StoreUnavailable.

        A row that stays locked is answered LOCKED_ROW, so that those behind it get their turn.
        """
        try:
            return self._database.run(lambda connection: work(connection, batch))
        except LockTimeout:
            if len(batch) == 1:
                return [LOCKED_ROW]
        except DBAPIError as error:
            if len(batch) == 1:
                return [refused(batch[0], error)]
        replies: list[Recorded] = []
        for command in batch:
            replies += self._together_or_alone([command], work, refused)
        return replies


def _bare(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Applied | Accepted):
        return replace(outcome, ref=None, result=None)
    if isinstance(outcome, NotApplied):
        return NotApplied(code="refused", transient=outcome.transient, key_store=outcome.key_store)
    return replace(outcome, reason="not storable", code="not_storable")


def _not_given_back(command: GiveBack, error: DBAPIError) -> Recorded:
    # The row lapses by itself; nothing was sent.
    _log.error("give_back_refused", seq=command.claim.seq, error=type(error.orig).__name__)
    return Recorded(None, None, "not_storable")


def _give_back_write(move: Move, command: GiveBack, found: Locked) -> Write:
    settles = EDGE[move.edge].target in SETTLED_STATES
    seen = order(command.reason) if settles else None
    return Write(move, Actor.WORKER, found.row.contract_id, seen)


def _rounds(seqs: Sequence[int]) -> list[list[int]]:
    """Split positions so that no round holds a row twice: the second decision sees the first."""
    rounds: list[list[int]] = []
    seen: dict[int, int] = {}
    for position, seq in enumerate(seqs):
        turn = seen.get(seq, 0)
        seen[seq] = turn + 1
        if turn == len(rounds):
            rounds.append([])
        rounds[turn].append(position)
    return rounds
