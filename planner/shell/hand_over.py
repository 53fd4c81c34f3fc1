"""Hands bound rows over to a plan's after_bound callbacks: at least once.

A lease on the row keeps two consumers apart, and `handed_at` is written when the callback has
returned; until then the row comes again. Shell.
"""

from __future__ import annotations

import threading

from ...outbox.commands import HandOverBatch
from ...outbox.shell.bind_store import BOUND
from .callback_runner import CallbackRunner, Leases
from .callbacks import CallbackFailed

__all__ = ["HandOver", "Leases"]

HAND_OVER_FAILED = "hand_over_failed"


class HandOver:
    """Hands batches of bound rows over. Between two calls it looks whether it is to stop."""

    def __init__(self, runner: CallbackRunner, stop: threading.Event) -> None:
        self._runner = runner
        self._store = runner.bind_store
        self._callbacks = runner.callbacks.after_bound
        self.stop = stop

    def hand_over(self, command: HandOverBatch) -> int:
        """Run after_bound for the rows of a batch that nobody is at; returns how many returned."""
        run, seconds = self._runner.database.run, self._runner.leases.hand_over_seconds
        if self.stop.is_set():
            return 0
        batch = run(lambda c: self._store.take(c, command.batch_id, BOUND, seconds))
        if batch is None:
            return 0
        handed = sum(self._hand_over_row(*row) for row in batch.rows if row[1] in self._callbacks)
        self._end_unheard([seq for seq, tool in batch.rows if tool not in self._callbacks])
        seqs = [seq for seq, _ in batch.rows]
        left = run(lambda c: self._store.unhanded(c, seqs))
        delay = 0.0 if self.stop.is_set() else self._runner.delay_seconds(batch.tries)
        run(lambda c: self._store.finish(c, batch, left, delay))
        return handed

    def _end_unheard(self, seqs: list[int]) -> None:
        """Leave rows without a function to consumers whose plan has it, and not for ever."""
        kept = self._runner.leases.kept_seconds
        if seqs:
            self._runner.database.run(lambda c: self._store.hand_unheard(c, seqs, kept))

    def _hand_over_row(self, seq: int, tool: str) -> bool:
        run, seconds = self._runner.database.run, self._runner.leases.hand_over_seconds
        if self.stop.is_set() or not run(lambda c: self._store.lease_hand_over(c, seq, seconds)):
            return False
        seen = run(lambda c: self._runner.read(c, seq))
        self._reach("before_hand_over", seen.intent.intent_id)
        try:
            self._runner.call_outside(self._callbacks[tool], seen)
        except CallbackFailed as failed:
            run(lambda c: self._store.hand_later(c, seq))
            self._runner.alert(seq, HAND_OVER_FAILED, failed)
            return False
        self._reach("after_hand_over", seen.intent.intent_id)
        handed = run(lambda c: self._store.handed(c, seq))
        self._reach("after_handed", seen.intent.intent_id)
        return handed

    def _reach(self, point: str, intent_id: str) -> None:
        self._runner.faults.reach(point, intent_id)
