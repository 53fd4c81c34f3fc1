"""The one clock of send deadlines and call limits: monotonic, and it counts suspension.

A laptop that sleeps between the send mark and the first byte must find its deadline passed, so
plain CLOCK_MONOTONIC of Linux will not do. Where the system has no CLOCK_BOOTTIME (macOS), its
CLOCK_MONOTONIC counts suspension already.
"""

from __future__ import annotations

import time

_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime_seconds() -> float:
    """Return seconds since some fixed point, suspension included; never set back."""
    return time.clock_gettime(_CLOCK)
