"""The planner's side of one outbox: put, supersede, cancel, and what is read to tell a step.

Every method runs inside the caller's transaction, on any driver that SQLAlchemy knows: named
binds and CASTs only. Refusals are values here. May import the pure core and SQLAlchemy.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping

from ..defaults import Limits
from ..generations import (
    CANCELLED,
    NOT_FOUND,
    SUPERSEDED,
    Stored,
    answer_cancel,
    answer_late_supersede,
    answer_stored,
    args_conflict,
    release_of,
    withdrawal_of,
)
from ..intent import Address, Content, Draft, Intent
from ..model import Actor, GateDecision, Refusal, Row, State
from ..telling import Generation
from .moves import Note, Write, note, order, perform
from .rows import Locked, RowReader
from .statements import Statements

PUT_LIMIT_CHARACTERS = 32 * 2**20
"""Most characters of one statement: Postgres holds no JSON array beyond 256 MB."""

_DRAFTED = (
    "namespace", "intent_id", "run_id", "step", "tool", "tool_version", "lane", "args",
    "fingerprint", "content", "read_set", "traceparent", "tracestate", "held_for",
)  # fmt: skip
_STATE_COLUMNS = tuple(
    field.name for field in fields(Row) if field.name not in ("fingerprint", "content")
)


class PlannerStore:
    """What a planner may ask of one outbox's rows."""

    def __init__(self, statements: Statements, limits: Limits) -> None:
        self._statements = statements
        self._reader = RowReader(statements, limits)

    # -- put -------------------------------------------------------------------------------------

    def put(
        self, connection: Connection, drafts: Sequence[Draft], *, keep: bool = False
    ) -> list[Intent | Refusal]:
        """Insert drafts, or find what stands under their ids; one answer per draft, in order.

        `keep` answers with the stored live intent whatever its content; otherwise other content
        is the refusal `args_conflict`. A concurrent put of an id is waited for.
        """
        first = _first_of_each(drafts)
        created: dict[tuple[str, str], int] = {}
        for chunk in _chunks([_encoded(draft) for draft in first.values()]):
            for row in self._execute(connection, "put", {"drafts": f"[{','.join(chunk)}]"}):
                created[row["namespace"], row["intent_id"]] = row["seq"]
        stored = self._stored(connection, [name for name in first if name not in created])
        answers: list[Intent | Refusal] = []
        new = dict(created)
        for draft in drafts:
            is_new = new.pop((draft.namespace, draft.intent_id), None) is not None
            answers.append(_answer(draft, first, created, stored, keep=keep, new=is_new))
        return answers

    def _stored(
        self, connection: Connection, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], list[RowMapping]]:
        found: dict[tuple[str, str], list[RowMapping]] = {name: [] for name in names}
        if names:
            for row in self._execute(connection, "find_intents", {"names": _names(names)}):
                found[row["namespace"], row["intent_id"]].append(row)
        return found

    def note_refusal(self, connection: Connection, subject: str, code: str) -> None:
        """Put a refused put on record, without any reference to a row that may never exist."""
        event = Note(None, code, Actor.PLANNER, reason="put", subject=subject)
        note(connection, self._statements, [event])

    # -- generations -----------------------------------------------------------------------------

    def supersede(
        self,
        connection: Connection,
        address: Address,
        from_generation: int,
        content: Content | None = None,
        deadline: datetime | None = None,
    ) -> Intent | Refusal:
        """Replace the live generation by the next one; repeated, answers with that one.

        Everything is decided under the locks of all generations. The new row starts held, and
        `release` is tried at once: its guards look at the earlier generations as this transaction
        left them.
        """
        locked = self._lock_step(connection, address)
        if not locked:
            return NOT_FOUND
        live = next((one for one in locked if one.row.live), None)
        if live is None or live.row.generation != from_generation:
            return self._repeated(connection, address, from_generation, content)
        self._withdraw(connection, live, reason=SUPERSEDED)
        rows = self._execute(
            connection, "supersede", {"seq": live.row.seq, **_successor(content, deadline)}
        )
        (successor,) = rows
        intent = intent_of(successor, created=True)
        perform(connection, self._statements, [Write(release_of(intent.seq), Actor.OUTBOX)])
        return intent

    def _repeated(
        self,
        connection: Connection,
        address: Address,
        from_generation: int,
        content: Content | None,
    ) -> Intent | Refusal:
        before = self.generation(connection, address, from_generation)
        after = self.generation(connection, address, from_generation + 1)
        asked = content.fingerprint if content else None
        return answer_late_supersede(from_generation, _stored(before), _stored(after), asked)

    def generation(
        self, connection: Connection, address: Address, generation: int
    ) -> RowMapping | None:
        """Read one generation's immutable part."""
        values = {
            "namespace": address.namespace,
            "intent_id": address.intent_id,
            "generation": generation,
        }
        rows = self._execute(connection, "find_generation", values)
        return rows[0] if rows else None

    # -- cancel ----------------------------------------------------------------------------------

    def cancel(self, connection: Connection, address: Address) -> State | Refusal:
        """Withdraw the live generation, or record that it is not wanted; answer its state then.

        Final states but committed are left as they are.
        """
        locked = self._lock_step(connection, address)
        if not locked:
            return NOT_FOUND
        live = next((one for one in locked if one.row.live), None)
        answer = answer_cancel(live.row if live else None, address.generation)
        if answer is not None:
            return answer
        assert live is not None, "the answer without a live row is a refusal"
        if self._withdraw(connection, live, reason=CANCELLED):
            return State.CANCELLED
        self._execute(connection, "cancel_record", {"seq": live.row.seq})
        return live.row.state

    def _withdraw(self, connection: Connection, live: Locked, reason: str) -> bool:
        """Cancel a locked row of which nothing was sent; False where a send may be open."""
        row = live.row
        move = withdrawal_of(row, reason)
        if move is None:
            return False
        write = Write(move, Actor.PLANNER, row.contract_id, order(reason))
        return row.seq in perform(connection, self._statements, [write])

    def _lock_step(self, connection: Connection, address: Address) -> tuple[Locked, ...]:
        """Lock all generations, those too that were inserted while we waited, then read them."""
        names = {"namespace": address.namespace, "intent_id": address.intent_id}
        held: list[int] = []
        while held != (found := self._locked_seqs(connection, names)):
            held = found
        return self._reader.lock_step(connection, held[0]) if held else ()

    def _locked_seqs(self, connection: Connection, names: Mapping[str, str]) -> list[int]:
        return [row["seq"] for row in self._execute(connection, "lock_generations", names)]

    # -- telling ---------------------------------------------------------------------------------

    def steps(
        self, connection: Connection, names: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[list[Generation], datetime]]:
        """Read all generations of the named steps in one statement, with the store's time."""
        found: dict[tuple[str, str], tuple[list[Generation], datetime]] = {}
        for row in self._execute(connection, "told", {"names": _names(names)}):
            generations, _ = found.setdefault(
                (row["namespace"], row["intent_id"]), ([], row["now"])
            )
            generations.append(_generation(row))
        return found

    def find(self, connection: Connection, name: tuple[str, str]) -> Intent | None:
        """Return the live generation of a step as an intent."""
        rows = self._execute(connection, "find_intents", {"names": _names([name])})
        return next((intent_of(row, created=False) for row in rows if row["live"]), None)

    def note(self, connection: Connection, intent: Intent, name: str) -> None:
        """Append an event of the planner that moves nothing."""
        note(connection, self._statements, [Note(intent.seq, name, Actor.PLANNER)])

    def _execute(
        self, connection: Connection, name: str, values: Mapping[str, Any]
    ) -> list[RowMapping]:
        statement, limits = self._statements.named(name)
        return list(connection.execute(statement, {**limits, **values}).mappings())


def _names(names: Iterable[tuple[str, str]]) -> str:
    return json.dumps([{"namespace": space, "intent_id": name} for space, name in names])


def _first_of_each(drafts: Iterable[Draft]) -> dict[tuple[str, str], Draft]:
    first: dict[tuple[str, str], Draft] = {}
    for draft in drafts:
        first.setdefault((draft.namespace, draft.intent_id), draft)
    return first


def _chunks(records: list[str]) -> Iterable[list[str]]:
    """Split only what is too much for one statement."""
    chunk: list[str] = []
    taken = 0
    for record in records:
        if chunk and taken + len(record) > PUT_LIMIT_CHARACTERS:
            yield chunk
            chunk, taken = [], 0
        chunk.append(record)
        taken += len(record)
    if chunk:
        yield chunk


def draft_record(draft: Draft) -> dict[str, Any]:
    """Return a draft as the put statement reads it from its JSON parameter."""
    record = {name: getattr(draft, name) for name in _DRAFTED}
    for name in ("not_before", "deadline"):
        moment = getattr(draft, name)
        record[name] = moment.isoformat() if moment else None
    return record


def _encoded(draft: Draft) -> str:
    return json.dumps(draft_record(draft), ensure_ascii=False)


def _answer(
    draft: Draft,
    first: Mapping[tuple[str, str], Draft],
    created: Mapping[tuple[str, str], int],
    stored: Mapping[tuple[str, str], Sequence[RowMapping]],
    *,
    keep: bool,
    new: bool,
) -> Intent | Refusal:
    name = (draft.namespace, draft.intent_id)
    if name in created:
        if first[name].fingerprint != draft.fingerprint and not keep:
            return args_conflict()
        return _created(first[name], created[name], new=new)
    found = [one for row in stored[name] if (one := _stored(row)) is not None]
    return answer_stored(draft, found, keep=keep)


def _stored(row: RowMapping | None) -> Stored | None:
    if row is None:
        return None
    return Stored(intent_of(row, created=False), row["fingerprint"], bool(row.get("live")))


def _created(draft: Draft, seq: int, *, new: bool) -> Intent:
    return Intent(
        seq, draft.namespace, draft.intent_id, 0, draft.tool, draft.lane, draft.run_id,
        draft.step, created=new,
    )  # fmt: skip


def intent_of(row: RowMapping | Mapping[str, Any], *, created: bool) -> Intent:
    """Return a row of `find_intents` or `find_generation` as an intent."""
    return Intent(
        row["seq"], row["namespace"], row["intent_id"], row["generation"], row["tool"],
        row["lane"], row["run_id"], row["step"], created=created,
    )  # fmt: skip


def _successor(content: Content | None, deadline: datetime | None) -> dict[str, Any]:
    """Return the parameters of `supersede`; null is taken over from the generation before."""
    return {
        "tool_version": content.tool_version if content else None,
        "lane": content.lane if content else None,
        "args": json.dumps(content.args, ensure_ascii=False) if content else None,
        "fingerprint": content.fingerprint if content else None,
        "content": content.content if content else None,
        "deadline": deadline,
    }


def _generation(row: RowMapping) -> Generation:
    values = {name: row[name] for name in _STATE_COLUMNS}
    values["state"] = State(values["state"])
    gate = row["gate"]
    return Generation(
        row=Row(**values),
        namespace=row["namespace"],
        intent_id=row["intent_id"],
        tool=row["tool"],
        version=row["tool_version"],
        outcome=row["outcome"],
        ref=row["ref"],
        document=row["document"] or {},
        gate=GateDecision(gate) if gate else None,
        unserved=row["unserved"],
        paused=row["paused"],
        last_word=row["last_word"],
    )
