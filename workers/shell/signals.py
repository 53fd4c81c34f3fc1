"""Turns a signal, or the death of the parent process, into something a loop can wait on.

A Python signal handler runs between two byte codes of the main thread, so it must take no lock
that the main thread may hold: it only writes one byte to a pipe.
Shell. Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import MutableMapping
from contextlib import suppress

PARENT_FD_VARIABLE = "ACKBOX_PARENT_FD"
ORPHAN_EXIT_CODE = 70


class WakePipe:
    """A pipe that a signal handler may write to and a loop waits on."""

    def __init__(self) -> None:
        """Open both ends, neither inherited by child processes."""
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)

    def wake(self) -> None:
        """Wake the waiter; safe in a signal handler and from any thread."""
        with suppress(BlockingIOError):  # full of wake-ups already
            os.write(self._write_fd, b"!")

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for a wake-up and swallow it; False when the time passed first."""
        poll = select.poll()  # unlike select, good for any number of open files
        poll.register(self._read_fd, select.POLLIN)
        is_ready = bool(poll.poll(None if seconds is None else seconds * 1000))
        if is_ready:
            os.read(self._read_fd, 4096)
        return is_ready

    def close(self) -> None:
        """Close both ends. No handler may still point here."""
        os.close(self._write_fd)
        os.close(self._read_fd)


def watch_parent(
    grace_seconds: float, environ: MutableMapping[str, str] = os.environ
) -> threading.Thread | None:
    """Follow a pool that started this process into its death, even by SIGKILL.

    The pool keeps the other end of a pipe open for as long as it lives. When it is gone this
    process sends itself SIGTERM, and ends hard if it is still here after the grace.
    Returns None when no pool started this process.
    """
    number = environ.pop(PARENT_FD_VARIABLE, None)
    if number is None:
        return None
    parent_fd = int(number)
    os.set_inheritable(parent_fd, False)
    watcher = threading.Thread(
        target=_follow, args=(parent_fd, grace_seconds), name="parent-watch", daemon=True
    )
    watcher.start()
    return watcher


def _follow(parent_fd: int, grace_seconds: float) -> None:
    while os.read(parent_fd, 64):
        pass  # the pool never writes; only the end of file means something
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(grace_seconds)
    os._exit(ORPHAN_EXIT_CODE)
