"""Takes a person's statements: who, why and against which fence, in the transaction of the edge.

May import the pure core and the store. Every method is one short transaction; a refusal changes
nothing and says what to run next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, RowMapping

from .. import people
from ..defaults import Limits
from ..model import Actor, State
from ..people import Denied, Relative, Said, Stated, Verdict, Wish
from .compensation_store import adopters_follow
from .database import Database
from .moves import Note, Observation, Write, note, observation_of, observe, perform
from .poke import poke_step
from .reconcile_store import next_number
from .rows import Locked, RowReader
from .statements import Statements

Answer: TypeAlias = Stated | Denied


@dataclass(frozen=True, slots=True)
class _Step:
    """A locked step, and the row that is spoken about."""

    found: Locked
    rows: tuple[Locked, ...]
    intent_id: str


class PeopleStore:
    """A person's side of one outbox."""

    def __init__(self, database: Database, statements: Statements, limits: Limits) -> None:
        self._database = database
        self._statements = statements
        self._reader = RowReader(statements, limits)

    def landed(self, said: Said, ref: str) -> Answer:
        """Take "it landed" about an unknown row: committed, with that reference."""
        if not ref.strip():
            return Denied("ref_missing", "say where the effect can be seen")
        return self._take(said, lambda step: people.landed(step.found.row, said, ref))

    def not_landed(
        self,
        said: Said,
        *,
        requeue: bool = False,
        may_duplicate: bool = False,
        drop_handle: bool = False,
    ) -> Answer:
        """Take "it did not land" about an unknown row: failed, or queued once more.

        Past the key window, with an untrusted key or with a dropped handle only `may_duplicate`
        queues it again; what is then settled as not applied opens a divergence.
        """
        return self._take(
            said,
            lambda step: people.not_landed(
                step.found.row, said,
                requeue=requeue, may_duplicate=may_duplicate, drop_handle=drop_handle,
            ),
        )  # fmt: skip

    def undone(self, said: Said) -> Answer:
        """Take "undone by hand" about a committed or unknown row, its adopters with it."""
        return self._take(said, lambda step: people.undone(step.found.row, said))

    def release(
        self, said: Said, *, may_duplicate: bool = False, divergence: int | None = None
    ) -> Answer:
        """Let a held row go: over a committed earlier generation only with `may_duplicate`.

        `divergence` is the number of the latest divergence event that the person saw; with it the
        divergence ends on all rows that it marked.
        """
        return self._run(lambda c: self._release(c, said, may_duplicate, divergence))

    def close_divergence(self, said: Said, divergence: int, verdict: Verdict) -> Answer:
        """End an open divergence without an edge; what waited for it may bind and move on.

        Refused as `resolve_first` where a compensation that was settled as failed did undo its
        target, and the target still stands as committed: the next generation would adopt it.
        """
        return self._run(lambda c: self._close(c, said, divergence, verdict))

    # -- one statement ---------------------------------------------------------------------------

    def _run(self, work: Callable[[Connection], Answer]) -> Answer:
        return self._database.run(work)

    def _take(self, said: Said, wish_for: Callable[[_Step], Wish]) -> Answer:
        return self._run(lambda c: self._state(c, said, wish_for))

    def _state(
        self, connection: Connection, said: Said, wish_for: Callable[[_Step], Wish]
    ) -> Answer:
        step = self._lock(connection, said)
        if isinstance(step, Denied):
            return step
        wish = wish_for(step)
        denied = people.denial(step.found.row, wish, step.found.world, step.intent_id)
        return denied or self._write(connection, said, step, wish)

    def _write(self, connection: Connection, said: Said, step: _Step, wish: Wish) -> Answer:
        row = step.found.row
        write = self._written(connection, said, step.found, wish)
        moved = perform(connection, self._statements, [write]).get(row.seq)
        if moved is None:
            return Denied(people.GUARD_FAILED, "the row moved on", None, _show(step))
        if moved.state is State.COMPENSATED:
            adopters = adopters_follow(
                step.rows, row.seq, Actor.PERSON, said.reason, said.actor_name
            )
            perform(connection, self._statements, adopters)
        poke_step(connection, self._statements, row.seq)
        return Stated(row.seq, moved.edge, moved.state, moved.fence)

    def _written(self, connection: Connection, said: Said, found: Locked, wish: Wish) -> Write:
        seen: Observation | None = None
        if wish.outcome is not None:
            number = self._number(connection, found, wish.move.fence or 0)
            seen = observation_of(wish.outcome, "statement", number)
        detail = people.risks(wish)
        return Write(wish.move, Actor.PERSON, found.row.contract_id, seen, said.actor_name, detail)

    def _number(self, connection: Connection, found: Locked, fence: int) -> int:
        return next_number(connection, self._statements, found.row.seq, fence, "statement")

    # -- divergences -----------------------------------------------------------------------------

    def _release(
        self, connection: Connection, said: Said, may_duplicate: bool, divergence: int | None
    ) -> Answer:
        family = self._family(connection, said.seq)
        step = self._lock(connection, said, family)
        if isinstance(step, Denied):
            return step
        row = step.found.row
        wish = people.decide_release(
            row, said, step.found.world, step.intent_id, self._relatives(connection, said.seq),
            may_duplicate=may_duplicate, divergence=divergence,
        )  # fmt: skip
        if isinstance(wish, Denied):
            return wish
        answer = self._write(connection, said, step, wish)
        if isinstance(answer, Stated) and row.diverged_at is not None:
            self._reset(connection, said.seq)
        return answer

    def _close(
        self, connection: Connection, said: Said, divergence: int, verdict: Verdict
    ) -> Answer:
        family = self._family(connection, said.seq)
        step = self._lock(connection, said, family)
        if isinstance(step, Denied):
            return step
        relatives = self._relatives(connection, said.seq)
        denied = people.refusal_to_close(relatives, divergence, verdict, step.intent_id)
        if denied is not None:
            return denied
        self._keep_verdict(connection, said, step, divergence, verdict)
        self._reset(connection, said.seq)
        return Stated(said.seq, None, step.found.row.state, step.found.row.fence)

    def _keep_verdict(
        self, connection: Connection, said: Said, step: _Step, divergence: int, verdict: Verdict
    ) -> None:
        row = step.found.row
        document = {"kind": verdict.value, "reason": said.reason, "divergence": divergence}
        number = self._number(connection, step.found, row.fence)
        seen = Observation("statement", verdict.value, document, number)
        observe(connection, self._statements, [(row.seq, row.fence, seen, Actor.PERSON)])
        note(
            connection, self._statements,
            [
                Note(
                    row.seq, "divergence_closed", Actor.PERSON, said.reason, row.fence, row.state,
                    said.actor_name, detail={"verdict": verdict.value, "divergence": divergence},
                )
            ],
        )  # fmt: skip

    def _relatives(self, connection: Connection, seq: int) -> list[Relative]:
        family = self._family(connection, seq)
        locked = self._reader.lock(connection, [row["seq"] for row in family])
        return [
            Relative(row["seq"], row["compensates"], row["divergence"], locked[row["seq"]].row)
            for row in family
        ]

    def _reset(self, connection: Connection, seq: int) -> None:
        family = [row["seq"] for row in self._family(connection, seq)]
        self._rows(connection, "reset_divergence", {"seqs": family})
        for one in family:
            poke_step(connection, self._statements, one)

    # -- shared ----------------------------------------------------------------------------------

    def _lock(
        self, connection: Connection, said: Said, family: Sequence[RowMapping] = ()
    ) -> _Step | Denied:
        if not said.reason.strip():
            return Denied(people.REASON_MISSING, "say why; it is kept on record")
        self._reader.lock(connection, [row["seq"] for row in family])
        self._reader.lock_step(connection, said.seq)
        rows = self._reader.lock_step(connection, said.seq)
        found = next((locked for locked in rows if locked.row.seq == said.seq), None)
        if found is None:
            return Denied("not_found", f"row {said.seq} does not exist", None, "ackbox ls")
        (name,) = self._rows(connection, "undo_target", {"seq": said.seq})
        return _Step(found, rows, name["intent_id"])

    def _family(self, connection: Connection, seq: int) -> list[RowMapping]:
        return self._rows(connection, "step_family", {"seq": seq})

    def _rows(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())


def _show(step: _Step) -> str:
    return f"ackbox show {step.intent_id}"
