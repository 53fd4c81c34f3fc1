"""The relay's pass: lanes with ready rows become wake tokens.

Pure; may import `commands`. It looks at rows, never at what it has rung before: a token that was
lost, or that came before its transaction committed, is simply rung again.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from .commands import FindReadyLanes, ReadyLane, Ring


def relay_pass(token_limit: int) -> Generator[Any, Any, tuple[ReadyLane, ...]]:
    """Ring every lane that has ready rows; returns them with the age of their oldest row."""
    lanes: tuple[ReadyLane, ...] = yield FindReadyLanes()
    for lane in lanes:
        yield Ring(lane.lane, token_limit)
    return lanes
