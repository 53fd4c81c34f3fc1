"""What a wake token runs, and where the process finds the thing that drains.

Decides that a token for an unknown outbox or lane does nothing, and that a process which holds
store connections does not fork. Shell. Imports the standard library only: the factory of the
drainer stands above this package, so it is named by a dotted string.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

DRAINER_VARIABLE = "ACKBOX_DRAINER"
DEFAULT_FACTORY = "ackbox.app.worker_process:build_drainer"
DRAIN_SECONDS = 2.0
MAX_LIMIT = 1000


class LaneDrainer(Protocol):
    """Claims ready rows of a lane and starts their attempts; attempts outlive the call.

    Its threads must be daemon threads: a worker that gave up waiting must still be able to exit.
    """

    def drain(self, outbox: str, lane: str, limit: int, seconds: float) -> int:
        """Claim until the lane is empty, `limit` is reached, time is over or the slots are full.

        Returns the number of rows claimed, promptly. A store that does not answer is 0 claims,
        not an exception. After `stop_claiming` it claims nothing.

        Raises:
            UnknownLane: this process serves no such outbox or lane.
        """
        ...

    def stop_claiming(self) -> None:
        """Claim no more, from tokens or from freed slots. May be called twice, by any thread."""
        ...

    def wait_idle(self, grace_seconds: float) -> bool:
        """Wait until no attempt is in flight; False when the grace was too short.

        After `stop_claiming` what is executing is given back first. Before it (burst mode),
        slots that become free go on claiming, and idle means that nothing is left in flight.
        """
        ...


class UnknownLane(LookupError):
    """A token names an outbox or a lane that this process does not serve."""


class ForkRefused(RuntimeError):
    """Code tried to fork a process whose connections the child would share."""


DrainerFactory = Callable[[], LaneDrainer]


class _Seat:
    """The one drainer of this process, built at its first use and never carried over a fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.factory: DrainerFactory | None = None
        self.drainer: LaneDrainer | None = None
        self.owner_pid = 0
        self.counts: Counter[str] = Counter()
        self.guarded_pid = 0
        self.hooked = False


_seat = _Seat()


def install_factory(factory: DrainerFactory | None) -> None:
    """Set how this process builds its drainer; None returns to the setting. Forgets the old one."""
    with _seat.lock:
        _seat.factory = factory
        _seat.drainer = None


def current_drainer() -> LaneDrainer:
    """Return the drainer of this process, built on first use.

    Taken from `install_factory`, else from `ACKBOX_DRAINER` (`module:function`), else from the
    composition root. A drainer that an ancestor process built is never used.

    Raises:
        ImportError, AttributeError: the setting names nothing that can be imported.
    """
    with _seat.lock:
        if _seat.drainer is None or _seat.owner_pid != os.getpid():
            _seat.drainer = (_seat.factory or _configured_factory())()
            _seat.owner_pid = os.getpid()
        return _seat.drainer


def _configured_factory() -> DrainerFactory:
    module_name, _, function_name = os.environ.get(DRAINER_VARIABLE, DEFAULT_FACTORY).partition(":")
    factory: DrainerFactory = getattr(importlib.import_module(module_name), function_name)
    return factory


def drain_token(outbox: str, lane: str, limit: int) -> None:
    """Run one wake token: let the drainer claim up to `limit` rows of the lane.

    What the claims lead to is never told to RQ. A malformed token and one for a lane that is not
    served here are counted and do nothing; an error of the drainer fails the token only.
    """
    if not _is_well_formed(outbox, lane, limit):
        _count("malformed")
        return
    try:
        claimed = current_drainer().drain(outbox, lane, min(limit, MAX_LIMIT), DRAIN_SECONDS)
    except UnknownLane:
        _count("unknown_lane")
        return
    _count("empty" if claimed == 0 else "drained")


def _is_well_formed(outbox: object, lane: object, limit: object) -> bool:
    names = isinstance(outbox, str) and isinstance(lane, str)
    return names and type(limit) is int and limit > 0


def token_counts() -> Mapping[str, int]:
    """Return the tokens that this process ran, by outcome.

    Keys: drained, empty, unknown_lane, malformed.
    """
    with _seat.lock:
        return dict(_seat.counts)


def _count(outcome: str) -> None:
    with _seat.lock:
        _seat.counts[outcome] += 1


def forbid_forks() -> None:
    """Refuse `os.fork` in this process from now on: its connections cannot be shared.

    Starting another program (subprocess, posix_spawn) stays possible. An audit hook cannot be
    taken out again, so it is put in once and looks at a flag.
    """
    _seat.guarded_pid = os.getpid()
    if not _seat.hooked:
        _seat.hooked = True
        sys.addaudithook(_refuse_fork)


def allow_forks() -> None:
    """End `forbid_forks`: the connections are closed."""
    _seat.guarded_pid = 0


def _refuse_fork(event: str, _args: tuple[object, ...]) -> None:
    if event in ("os.fork", "os.forkpty") and _seat.guarded_pid == os.getpid():
        raise ForkRefused("this worker holds connections; start a new program instead of forking")
