"""The planted bugs themselves: what each changes in one world, and nowhere else.

A plant replaces a part of the world's store, a tool's adapter or a table; a changed procedure comes
as a role of the world's forest. May import the pure core, `workers` and the parts of a world.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import Any

from ..outbox.commands import (
    Claimed,
    Marked,
    MarkSend,
    Record,
    Recorded,
    Resend,
    RingResults,
    Unresolved,
)
from ..outbox.model import Actor, Move, Row, State
from ..outbox.outcome import Applied, NotApplied, Unknown
from ..outbox.reconcile import resent
from ..outbox.record import Decision
from ..outbox.records import Write
from ..outbox.transitions import BIND, EDGES
from ..tool_adapters.contract import BaseAdapter, Call, HttpRequest, Prepared, Request
from ..workers.attempt import conclude
from ..workers.commands import Build, Encode, Exchange, Prepare
from .store_attempts import MemoryAttempts, MemoryReaper
from .store_holds import MemoryCompensations
from .store_unknowns import MemoryUnknowns
from .world import World

Steps = Generator[Any, Any, Recorded]


# -- recording -------------------------------------------------------------------------------------


class _FenceBlind(MemoryAttempts):
    """Takes every report for one of the attempt that holds the row."""

    def _record(self, record: Record) -> Recorded:
        row = self._tables.rows[record.claim.seq]
        return super()._record(replace(record, claim=replace(record.claim, fence=row.fence)))


class _Optimist(MemoryAttempts):
    """Takes silence for proof that nothing happened."""

    def _record(self, record: Record) -> Recorded:
        if isinstance(record.outcome, Unknown):
            nothing = NotApplied("no answer", code="no_answer", transient=True)
            record = replace(record, outcome=nothing)
        return super()._record(record)


class _Generaliser(MemoryAttempts):
    """Lets the refusal of one request speak for those before it."""

    def _record(self, record: Record) -> Recorded:
        if isinstance(record.outcome, NotApplied):
            record = replace(record, outcome=replace(record.outcome, key_store=True))
        return super()._record(record)


class _Forgetful(MemoryAttempts):
    """Does not keep that a tool ignored the key."""

    def _keep_facts(self, seq: int, decision: Decision) -> None:
        super()._keep_facts(seq, replace(decision, distrust=False))


def records_with(part: Callable[[Any], MemoryAttempts]) -> Callable[[World], None]:
    """Return what gives one world another recorder."""

    def plant(world: World) -> None:
        world.store.attempts = part(world.store.tables)

    return plant


fence_ignored = records_with(_FenceBlind)
retry_on_unknown = records_with(_Optimist)
refuse_while_unresolved = records_with(_Generaliser)
miss_forgotten = records_with(_Forgetful)


# -- reaping, resending, undoing -------------------------------------------------------------------


class _Impatient(MemoryReaper):
    """Queues a row again whose request may be on its way."""

    def reap(self, seqs: Sequence[int]) -> tuple[tuple[str, str], ...]:
        for seq in seqs:
            row = self._tables.rows[seq]
            if row.state is State.AWAITING_ACK:
                move = Move("lapse", seq, row.state, reason="lease_over")
                self._tables.perform([Write(move, Actor.REAPER, row.contract_id)])
        return super().reap(seqs)


def lapse_of_a_sent_row(world: World) -> None:
    """Let lapse start from awaiting_ack, and have the reaper use it."""
    table = {edge.name: edge for edge in (*EDGES, BIND)}
    lapse = table["lapse"]
    table["lapse"] = replace(lapse, sources=lapse.sources | {State.AWAITING_ACK})
    world.store.tables.edges = table
    world.store.reaper = _Impatient(world.store.tables)


class _Asleep(MemoryReaper):
    """Finds nothing overdue, ever."""

    def find_overdue(self, limit: int) -> tuple[int, ...]:
        return ()


def nobody_reaps(world: World) -> None:
    """Have a reaper that finds nothing."""
    world.store.reaper = _Asleep(world.store.tables)


class _Eager(MemoryUnknowns):
    """Believes that every unknown row may be sent again."""

    def _unresolved(self, seq: int) -> Unresolved:
        return replace(super()._unresolved(seq), may_resend=True, resend_later=True)

    def resend_again(self, command: Resend, owner: Any) -> Any:
        """After a lost COMMIT read the row again by its fence alone."""
        row = self._tables.rows[command.claim.seq]
        if row.state is State.AWAITING_ACK and row.fence == command.claim.fence + 1:
            return resent(command.claim, row.fence)
        return super().resend_again(command, owner)


def resends_eagerly(world: World) -> None:
    """Have a reconciler that would send everything again."""
    world.store.unknowns = _Eager(world.store.tables)


class _Hasty(MemoryCompensations):
    """Does not wait until the target's requests can no longer arrive."""

    def _insert(self, target: Row, *rest: Any) -> Any:
        self._tables.write(target.seq, quiet_at=None)
        return super()._insert(self._tables.rows[target.seq], *rest)


def undo_before_quiet(world: World) -> None:
    """Order undos while a request of the target travels."""
    world.store.compensations = _Hasty(world.store.tables)


def silent_expiry(world: World) -> None:
    """Change a state without a line in the event log."""
    tables, log = world.store.tables, world.store.tables.log

    def drop(seq: int | None, name: str, *rest: Any, **more: Any) -> None:
        if name != "expire":
            log(seq, name, *rest, **more)

    tables.log = drop  # type: ignore[method-assign]


# -- tools and procedures --------------------------------------------------------------------------


class _Wrapped(BaseAdapter):
    """A tool's adapter whose request is changed at the last moment."""

    def __init__(self, inner: Any, change: Callable[[HttpRequest, int], HttpRequest]) -> None:
        self.contract = inner.contract
        self._inner = inner
        self._change = change
        for name in ("build", "classify", "probe", "compensation"):
            setattr(self, name, getattr(inner, name))

    def encode(self, call: Call, handle: Any) -> Request:
        """Change what the shipped adapter would send."""
        request = self._inner.encode(call, handle)
        assert isinstance(request, HttpRequest)
        return self._change(request, call.sends)


def changed_requests(change: Callable[[HttpRequest], HttpRequest]) -> Callable[[World], None]:
    """Return what changes every effect request of one world."""
    return changed_calls(lambda request, sends: change(request))


def changed_calls(change: Callable[[HttpRequest, int], HttpRequest]) -> Callable[[World], None]:
    """Return the same where the change depends on how often the row was sent before."""

    def plant(world: World) -> None:
        adapters: dict[str, Any] = world.tools.adapters
        for name, adapter in adapters.items():
            adapters[name] = _Wrapped(adapter, change)

    return plant


def _without_key(request: HttpRequest) -> HttpRequest:
    kept = tuple(one for one in request.headers if one[0].lower() != "idempotency-key")
    return replace(request, headers=kept)


def _with_message(request: HttpRequest) -> HttpRequest:
    return replace(request, body=request.body.replace(b'"x"', b'"as the message says"'))


key_dropped = changed_requests(_without_key)
args_of_the_message = changed_requests(_with_message)


def sends_without_mark(claim: Claimed) -> Steps:
    """An attempt that goes on although its mark was refused."""
    request = yield from _requested(claim)
    yield MarkSend(claim, request.digest(), None)
    evidence = yield Exchange(claim, request)
    outcome = yield from conclude(claim, evidence)
    recorded: Recorded = yield Record(claim, outcome)
    return recorded


def records_before_the_answer(claim: Claimed) -> Steps:
    """An attempt that reports success first and asks afterwards."""
    request = yield from _requested(claim)
    marked = yield MarkSend(claim, request.digest(), None)
    if not isinstance(marked, Marked):
        return Recorded(None, None, marked.code)
    recorded: Recorded = yield Record(claim, Applied("promised"))
    yield Exchange(claim, request)
    yield RingResults()
    return recorded


def _requested(claim: Claimed) -> Generator[Any, Any, HttpRequest]:
    yield Build(claim)
    wish = yield Prepare(claim)
    assert isinstance(wish, Prepared), "virtual tools need no harmless request"
    request: HttpRequest = yield Encode(claim, wish.handle)
    return request
