"""Tells a plan's on_told callbacks what binds nothing: at least once, one at a time.

A lease on the entry of the list keeps two consumers apart, and the entry goes when the callback
has returned. Shell.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

from ...outbox.on_told import TakeToTell, Tell, ToTell, Turn, tell_pass, turn_of
from ...outbox.shell.pass_driver import run_pass
from ...outbox.shell.tell_store import Asked, TellStore
from .callback_runner import CallbackRunner, Seen
from .callbacks import CallbackFailed

TELL_FAILED = "tell_failed"
FORGET_LIMIT = 1000


class Teller:
    """The on_told callbacks of one plan."""

    def __init__(self, runner: CallbackRunner, stop: threading.Event) -> None:
        self._runner = runner
        self._store = TellStore(runner.statements)
        self.stop = stop

    @property
    def _asked(self) -> Collection[Asked]:
        return self._runner.callbacks.on_told.keys()

    def run_once(self, limit: int) -> int:
        """Tell what is due, let go of what nobody has asked for; returns how much that was."""
        told = 0
        if self._asked:
            handlers: dict[type[Any], Any] = {
                TakeToTell: lambda _: self._take(),
                Tell: lambda command: self._tell(command.leased),
            }
            told = run_pass(tell_pass(limit), handlers)
        return max(told, self.forget())

    def forget(self) -> int:
        """Let go of what no callback of this plan, nor by now of another one, waits for."""
        kept = self._runner.leases.kept_seconds
        return self._runner.database.run(
            lambda c: self._store.forget(c, self._asked, kept, FORGET_LIMIT)
        )

    def _take(self) -> ToTell | None:
        if self.stop.is_set():
            return None
        seconds = self._runner.leases.hand_over_seconds
        return self._runner.database.run(lambda c: self._store.take(c, self._asked, seconds))

    def _tell(self, leased: ToTell) -> bool:
        run = self._runner.database.run
        seen = run(lambda c: self._runner.read(c, leased.seq))
        turn = turn_of(leased.word, seen.generation, seen.telling)
        if turn is Turn.LATER:
            self._later(leased)
            return False
        called = turn is Turn.CALL and self._call(leased, seen)
        if turn is Turn.FORGET or called:
            run(lambda c: self._store.done(c, leased))
        return called

    def _call(self, leased: ToTell, seen: Seen) -> bool:
        """Call what waits for it; False where it raised and will be called again."""
        callback = self._runner.callbacks.of_word(leased.word, leased.tool)
        self._runner.faults.reach("before_tell", leased.intent_id)
        try:
            if callback is not None:
                self._runner.call_outside(callback, seen)
        except CallbackFailed as failed:
            self._later(leased)
            self._runner.alert(leased.seq, TELL_FAILED, failed)
            return False
        self._runner.faults.reach("after_tell", leased.intent_id)
        return True

    def _later(self, leased: ToTell) -> None:
        delay = self._runner.delay_seconds(leased.tries)
        self._runner.database.run(lambda c: self._store.later(c, leased, delay))
