"""A plan's callbacks on a memory bus: in the bind, after it, and where nothing binds.

What is called when is decided by the shipped passes and rules; a callback that raises is called
again later, as by a consumer. Composition.
"""

from __future__ import annotations

from typing import Any

from ...outbox.backoff import backoff_seconds
from ...outbox.bind import bind_pass
from ...outbox.commands import BindAnswer, BindBatch, FindBound, FindSettled, HandOverBatch
from ...outbox.defaults import Limits
from ...outbox.model import Actor
from ...outbox.on_told import Turn, turn_of
from ...outbox.records import Note
from ...outbox.shell.pass_driver import run_pass
from ...outbox.telling import tell
from ...planner.bound import AsyncBound, Bound
from ...planner.plan import Plan, Waiting
from ...planner.shell.binding import BIND_FAILED
from ...planner.shell.callback_loop import CallbackLoop
from ...planner.shell.callback_runner import Leases, Seen
from ...planner.shell.callbacks import AsyncCallback, CallbackFailed, call, call_async, is_async
from ...planner.shell.hand_over import HAND_OVER_FAILED
from ...planner.shell.telling import TELL_FAILED
from ...sim.store_planner import MemoryBinding
from ...sim.tables import BOUND, SETTLED, Tables
from .bounds import AsyncMemoryBound, MemoryBound, Sessions
from .engine import Engine
from .to_tell import ListToTell, Telling
from .tools import INSIDE

BATCH_LIMIT = 100
_LEASES = Leases()


class MemoryCallbacks:
    """Binds, hands over and tells for one plan."""

    def __init__(self, engine: Engine, plan: Plan, sessions: Sessions, limits: Limits) -> None:
        self._engine = engine
        self._callbacks = plan.callbacks
        self._sessions = sessions
        self._limits = limits
        self._loop = CallbackLoop()
        self._to_tell = ListToTell(lambda: self._tables)
        engine.bind = self._bind_pass
        engine.tell = self._tell_next
        engine.tell_at = self._to_tell.due_at

    @property
    def _tables(self) -> Tables:
        return self._engine.world.store.tables

    @property
    def _binding(self) -> MemoryBinding:
        return self._engine.world.store.binding

    def close(self) -> None:
        """End the callbacks' loop."""
        self._loop.close()

    def _delay_seconds(self, tries: int) -> float:
        return backoff_seconds(tries, self._engine.world.draw(), self._limits)

    # -- in the bind -------------------------------------------------------------------------------

    def _bind_pass(self) -> None:
        """Bind what is settled and hand over what is bound."""
        run_pass(
            bind_pass(BATCH_LIMIT),
            {
                FindSettled: lambda command: self._binding.due(SETTLED, command.limit),
                FindBound: lambda command: self._binding.due(BOUND, command.limit),
                BindBatch: self._bind_batch,
                HandOverBatch: self._hand_over_batch,
            },
        )

    def _bind_batch(self, command: BindBatch) -> BindAnswer:
        with self._engine.locked():
            batch = self._binding.take(command.batch_id, SETTLED, _LEASES.bind_seconds)
        if batch is None:
            return BindAnswer()
        failed = [seq for seq in batch.seqs if not self._bind(seq)]
        with self._engine.locked():
            self._binding.finish(command.batch_id, batch, failed, self._delay_seconds(batch.tries))
        return BindAnswer(bound=len(batch.seqs) - len(failed))

    def _bind(self, seq: int) -> bool:
        """Bind one row; False where its callback raised, so that nothing was bound."""
        waiting = self._callbacks.on_bound.get(self._tables.intents[seq].tool)
        seen = self._seen_if_bound(seq) if waiting is not None else None
        if waiting is not None and seen is not None:
            try:
                self._call_inside(waiting, seen)
            except CallbackFailed as failed:
                self._alert(seq, BIND_FAILED, failed)
                return False
        with self._engine.locked():
            self._binding.bind_rows([seq], tuple(self._callbacks.after_bound))
        return True

    def _seen_if_bound(self, seq: int) -> Seen | None:
        """Return what a callback is shown of a row that would bind now, as it is once bound."""
        with self._engine.locked() as world:
            before = world.store.snapshot()
            bound = self._binding.bind_rows([seq], ()).bound
            seen = self._seen(seq) if bound else None
            world.store.restore(before)
            return seen

    def _call_inside(self, waiting: Waiting[Any], seen: Seen) -> None:
        shown = seen.shown(waiting)
        if is_async(waiting.function):
            self._call(waiting, AsyncMemoryBound(*shown).on(self._sessions))
        else:
            self._call(waiting, MemoryBound(*shown).on(self._sessions))

    # -- after it ----------------------------------------------------------------------------------

    def _hand_over_batch(self, command: HandOverBatch) -> int:
        with self._engine.locked():
            batch = self._binding.take(command.batch_id, BOUND, _LEASES.hand_over_seconds)
        if batch is None:
            return 0
        handed = sum(self._hand_over(seq) for seq in batch.seqs)
        with self._engine.locked():
            left = self._binding.unhanded(batch.seqs)
            delay = self._delay_seconds(batch.tries)
            self._binding.finish(command.batch_id, batch, left, delay)
        return handed

    def _hand_over(self, seq: int) -> bool:
        with self._engine.locked():
            if not self._binding.lease_hand_over(seq, _LEASES.hand_over_seconds):
                return False
            seen = self._seen(seq)
        waiting = self._callbacks.after_bound.get(seen.intent.tool)
        if waiting is not None and not self._called(waiting, seen, HAND_OVER_FAILED):
            with self._engine.locked():
                self._binding.hand_later(seq)
            return False
        with self._engine.locked():
            return self._binding.handed(seq)

    # -- where nothing binds -----------------------------------------------------------------------

    def _tell_next(self) -> bool:
        """Tell the first thing that is due; False where nothing is."""
        with self._engine.locked():
            one = self._to_tell.take(self._callbacks.words)
            if one is None:
                return False
            seen = self._seen(one.seq)
        turn = turn_of(one.word, seen.generation, seen.telling)
        waiting = self._callbacks.of_word(one.word, seen.intent.tool)
        if turn is Turn.CALL and waiting is not None:
            turn = Turn.FORGET if self._called(waiting, seen, TELL_FAILED) else Turn.LATER
        self._told(one, later=turn is Turn.LATER)
        return True

    def _told(self, one: Telling, *, later: bool) -> None:
        with self._engine.locked():
            if later:
                self._to_tell.put_off(one, self._delay_seconds(one.tries))

    # -- calling -----------------------------------------------------------------------------------

    def _seen(self, seq: int) -> Seen:
        """Read what a callback is shown of a row."""
        record = self._tables.intents[seq]
        steps, now = self._engine.world.store.planner.steps([record.name])[record.name]
        generation = next(one for one in steps if one.row.seq == seq)
        telling = tell(steps, record.generation, now)
        assert telling is not None, "the row was just read"
        return Seen(record.intent(created=False), generation, telling)

    def _called(self, waiting: Waiting[Any], seen: Seen, name: str) -> bool:
        """Call it outside of a bind; False where it raised, which is on record then."""
        try:
            self._call(waiting, self._outside(waiting, seen))
        except CallbackFailed as failed:
            self._alert(seen.intent.seq, name, failed)
            return False
        return True

    @staticmethod
    def _outside(waiting: Waiting[Any], seen: Seen) -> Bound[Any] | AsyncBound[Any]:
        shown = seen.shown(waiting)
        return AsyncBound(*shown) if is_async(waiting.function) else Bound(*shown)

    def _call(self, waiting: Waiting[Any], bound: Any) -> None:
        function = waiting.function
        if is_async(function):
            awaited = function
            self._loop.run(lambda: _await(awaited, bound))
            return
        mark = INSIDE.set(True)
        try:
            call(function, bound)
        except CallbackFailed:
            if isinstance(bound, MemoryBound):
                bound.discard()
            raise
        finally:
            INSIDE.reset(mark)

    def _alert(self, seq: int, name: str, failed: CallbackFailed) -> None:
        with self._engine.locked():
            self._tables.note(Note(seq, name, Actor.OUTBOX, failed.error_type))


async def _await(function: AsyncCallback, bound: AsyncBound[Any]) -> None:
    INSIDE.set(True)
    try:
        await call_async(function, bound)
    except CallbackFailed:
        if isinstance(bound, AsyncMemoryBound):
            await bound.discard()
        raise
