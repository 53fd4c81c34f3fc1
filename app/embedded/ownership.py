"""Who has to stop the servers of a data directory, and that it happens on the way out.

One living process owns the servers: the one that started them, or the one that took them over
after their starter had died without stopping them. Everyone else only uses them. May import the
standard library only.

On normal exit, SIGTERM, SIGHUP and Ctrl-C the owner stops its servers. SIGKILL leaves it no
chance: the servers run on, and the next starter of the same data directory adopts them.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from .identity import ProcessIdentity

_FATAL_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Ownership:
    """The owner file of one data directory. Callers hold the directory's lock around changes."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / "owner.json"

    def owner(self) -> ProcessIdentity | None:
        """Read the owner; None when there is none that still lives."""
        try:
            recorded = ProcessIdentity(**json.loads(self._file.read_text()))
        except FileNotFoundError:
            return None
        return recorded if recorded.is_alive() else None

    def take(self) -> None:
        """Record this process as the owner."""
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(ProcessIdentity.own())))
        unfinished.replace(self._file)

    def give_up(self) -> None:
        """Record that nobody owns the servers."""
        self._file.unlink(missing_ok=True)


class ExitHooks:
    """Call a function when this process ends, killed by SIGTERM or SIGHUP included.

    The signals are turned into `SystemExit`, so that context managers unwind. A handler that the
    application has set is left alone, and so are signals when we are not in the main thread.
    """

    def __init__(self, on_exit: Callable[[], None]) -> None:
        self._pid = os.getpid()
        self._on_exit = on_exit
        self._replaced: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Start to watch."""
        atexit.register(self._run)
        if threading.current_thread() is not threading.main_thread():
            return
        for number in _FATAL_SIGNALS:
            if signal.getsignal(number) is signal.SIG_DFL:
                self._replaced[number] = signal.signal(number, _leave)

    def remove(self) -> None:
        """Stop to watch, and put the former handlers back where ours still stand."""
        atexit.unregister(self._run)
        if threading.current_thread() is not threading.main_thread():
            return
        for number, former in self._replaced.items():
            if signal.getsignal(number) is _leave:
                signal.signal(number, former)
        self._replaced.clear()

    def _run(self) -> None:
        # A forked child inherits the registration but not the duty.
        if os.getpid() == self._pid:
            self._on_exit()


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
