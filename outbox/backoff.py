"""How long to wait before the next try: exponential, capped, with full jitter.

Pure: the random share is an input, so that the simulator and the tests choose it.
"""

from __future__ import annotations

from .defaults import DEFAULTS, Limits


def backoff_seconds(tries: int, share: float, limits: Limits = DEFAULTS) -> float:
    """Return the delay after `tries` tries (1 is the first), in seconds.

    `share` in [0, 1] is the part of the full delay to wait (full jitter); 1 gives the bound.
    """
    doublings = min(max(tries, 1) - 1, 30)
    bound = min(limits.backoff_cap_seconds, limits.backoff_base_seconds * 2.0**doublings)
    return bound * min(max(share, 0.0), 1.0)
