"""Waiting for a condition of another process, with a deadline. Standard library only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def wait_for(
    condition: Callable[[], bool], deadline_seconds: float, every_seconds: float = 0.02
) -> bool:
    """Ask until the condition holds (True) or the deadline has passed (False)."""
    end = time.monotonic() + deadline_seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() >= end:
            return False
        pause.wait(every_seconds)
    return True
