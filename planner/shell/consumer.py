"""The result consumer: binds what is settled and hands it to the plan.

Its durable work lists are the store's; tokens and rings only end a wait early. Shell. The factory
that a token finds its consumer by is named by dotted string.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Collection
from typing import Any

from ...outbox.bind import BindReport, BindTogether, bind_pass, hand_over_pass
from ...outbox.commands import BindAnswer, BindBatch, FindBound, FindSettled, HandOverBatch
from ...outbox.defaults import DEFAULTS, Limits
from ...outbox.shell.bind_store import BOUND, SETTLED, BindStore
from ...outbox.shell.database import Database
from ...outbox.shell.fault_points import FaultPoints
from ...outbox.shell.loops import Loop
from ...outbox.shell.pass_driver import run_pass
from ...outbox.shell.statements import Statements
from ..plan import Plan
from .binding import Binder
from .callback_runner import CallbackRunner, Leases
from .hand_over import HandOver
from .telling import Teller

POLL_SECONDS = 0.5
BATCH_LIMIT = 100
TOKEN_PASSES = 50
FORGET_EVERY_POLLS = 10
"""A plan that nothing is told to looks that seldom at what it must let go of."""
CONSUMER_VARIABLE = "ACKBOX_CONSUMER"
DEFAULT_FACTORY = "ackbox.app.consumer_process:build_consumer"


def _drop(_: Collection[str]) -> None:
    """Ring nothing: the relay's poll finds what a callback has put."""


class ResultConsumer:
    """Binds for one plan; without callbacks a whole pass binds in one statement.

    Every consumer of an outbox must run the same plan: a row is bound once, by whoever comes
    first. Safe to run in several processes and threads at once.
    """

    def __init__(
        self,
        database: Database,
        plan: Plan | None = None,
        *,
        limits: Limits = DEFAULTS,
        leases: Leases | None = None,
        rung: Callable[[Collection[str]], None] = _drop,
        poll_seconds: float = POLL_SECONDS,
        batch_limit: int = BATCH_LIMIT,
        faults: FaultPoints | None = None,
    ) -> None:
        """`rung` is given the lanes of what on_bound callbacks have put, after their commit."""
        statements = Statements(database.schema, limits)
        self._database = database
        self._plan = plan or Plan()
        self._store = BindStore(statements)
        self._runner = CallbackRunner(
            database, self._plan.callbacks, statements, limits, leases or Leases(),
            faults or FaultPoints(None),
        )  # fmt: skip
        never = threading.Event()
        self._binder = Binder(self._runner, rung)
        self._hand_over = HandOver(self._runner, never)
        self._teller = Teller(self._runner, never)
        self._poll_seconds = poll_seconds
        self._batch_limit = batch_limit
        self._woken = threading.Event()
        self._bound = threading.Event()

    # -- one pass --------------------------------------------------------------------------------

    def run_once(self) -> BindReport:
        """Bind, hand over and tell what is due. Raises StoreUnavailable without the database."""
        report = self._bind_once(hands_over=True)
        if self._plan.callbacks.words:
            self._teller.run_once(self._batch_limit)
        return report

    def _bind_once(self, *, hands_over: bool) -> BindReport:
        steps = bind_pass(self._batch_limit, together=not self._plan.waits, hands_over=hands_over)
        return run_pass(steps, self._handlers())

    def _call_once(self) -> bool:
        """Run what callbacks wait for outside of binds; returns whether there may be more."""
        handed = run_pass(hand_over_pass(self._batch_limit), self._handlers())
        looked_at = self._teller.run_once(self._batch_limit)
        return max(handed, looked_at) >= self._batch_limit

    def _handlers(self) -> dict[type[Any], Callable[[Any], Any]]:
        return {
            FindSettled: lambda command: self._due(SETTLED, command.limit),
            FindBound: lambda command: self._due(BOUND, command.limit),
            BindTogether: self._bind_together,
            BindBatch: self._binder.bind,
            HandOverBatch: self._hand_over.hand_over,
        }

    def _due(self, stage: str, limit: int) -> tuple[int, ...]:
        return self._database.run(lambda c: self._store.due(c, stage, limit))

    def _bind_together(self, command: BindTogether) -> BindAnswer:
        return self._database.run(lambda c: self._store.bind_together(c, command.batch_ids))

    # -- as a role -------------------------------------------------------------------------------

    def run(self, stop: threading.Event) -> None:
        """Run until stopped, woken by `wake` and by a jittered poll; then close what was used."""
        for thread in self.start(stop):
            thread.join()
        self.close()

    def start(self, stop: threading.Event) -> list[threading.Thread]:
        """Start two loops, so that no slow callback holds up a bind; returns their threads.

        Whoever starts them waits for them after `stop`, then calls `close`.
        """
        self._hand_over.stop = self._teller.stop = stop
        bind = Loop(
            "consumer", self._bind_and_wake, poll_seconds=self._poll_seconds, stop=stop,
            wake=self._woken,
        )  # fmt: skip
        seconds = self._poll_seconds * (1 if self._calls else FORGET_EVERY_POLLS)
        hand_over = Loop(
            "callbacks", self._call_once, poll_seconds=seconds, stop=stop, wake=self._bound
        )
        return [bind.start(), hand_over.start()]

    @property
    def _calls(self) -> bool:
        """Whether the plan has anything to be called outside of binds."""
        return bool(self._plan.callbacks.after_bound or self._plan.callbacks.words)

    def _bind_and_wake(self) -> bool:
        report = self._bind_once(hands_over=False)
        if report.bound and self._calls:
            self._bound.set()
        return report.full

    def wake(self) -> None:
        """End the present wait of `run` early."""
        self._woken.set()

    def close(self) -> None:
        """End the loop of `async def` callbacks and its connection; the next call starts anew."""
        self._binder.close()
        self._runner.loop.close()

    def drain(self, passes: int = TOKEN_PASSES) -> BindReport:
        """Run passes until one finds less than its limit; what a wake token does."""
        report = self.run_once()
        while report.full and passes > 1:
            passes -= 1
            report = self.run_once()
        self._teller.forget()
        return report


ConsumerFactory = Callable[[], ResultConsumer]


class _Seat:
    """The one consumer that this process's tokens wake, never carried over a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.factory: ConsumerFactory | None = None
        self.consumer: ResultConsumer | None = None
        self.owner_pid = 0


_seat = _Seat()


def install_consumer_factory(factory: ConsumerFactory | None) -> None:
    """Set how this process builds its consumer; None returns to the setting."""
    with _seat.lock:
        _seat.factory = factory
        _seat.consumer = None


def current_consumer() -> ResultConsumer:
    """Return this process's consumer, built on first use.

    Taken from `install_consumer_factory`, else from ACKBOX_CONSUMER (`module:function`), else
    from the composition root. Raises ImportError or AttributeError for a setting that names
    nothing.
    """
    with _seat.lock:
        if _seat.consumer is None or _seat.owner_pid != os.getpid():
            _seat.consumer = (_seat.factory or _configured_factory())()
            _seat.owner_pid = os.getpid()
        return _seat.consumer


def _configured_factory() -> ConsumerFactory:
    place = os.environ.get(CONSUMER_VARIABLE, DEFAULT_FACTORY)
    module_name, _, function_name = place.partition(":")
    factory: ConsumerFactory = getattr(importlib.import_module(module_name), function_name)
    return factory


def consume_token(outbox: str) -> None:
    """Run one token of the result queue: bind what is due. The queue is told nothing of it."""
    current_consumer().drain()
