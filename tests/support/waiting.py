"""Wait on a condition instead of for a time."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")
DEADLINE_SECONDS = 90.0
"""Only a failure waits this long: a busy machine is no failure."""


def wait_until(
    condition: Callable[[], T],
    deadline_seconds: float = DEADLINE_SECONDS,
    message: str = "",
    every_seconds: float = 0.02,
) -> T:
    """Ask until the condition is true and return its value; fail the test at the deadline."""
    end = time.monotonic() + deadline_seconds
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() >= end:
            pytest.fail(f"not within {deadline_seconds:g} s: {message or condition}")
        pause.wait(every_seconds)
    return value
