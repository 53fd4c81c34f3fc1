"""File locks that the kernel gives back when their holder dies, whatever kills it.

Two uses: a short exclusive section per data directory, and a lock that a server process inherits
and so holds for exactly as long as it (and its last child) lives. May import the standard library.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...outbox.errors import ConfigError
from .waiting import wait_for


@contextmanager
def exclusive(path: Path, *, deadline_seconds: float, reason: str) -> Iterator[int]:
    """Hold an exclusive lock on a file; yields its descriptor.

    The descriptor is closed at the end, not unlocked: a process that inherited it keeps the lock.
    Raises `ConfigError` with `reason` when someone else holds the lock until the deadline.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not wait_for(lambda: _try_lock(descriptor), deadline_seconds):
            raise ConfigError(
                f"{reason} (lock {path} was not free for {deadline_seconds:g} s)",
                next_step=f"look who holds it: fuser -v {path}",
            )
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Say whether any process holds the lock on this file."""
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
