"""The chart of the headline: duplicates against work in front of a person, as one SVG file.

Written from the results document alone. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..svg import STYLE, line, picture, rectangle, text
from .page import ARMS, BARS

WIDTH = 760.0
_LABELS = 250.0
_ROOM = 56.0
"""Right of the longest bar, for its number."""
_BAR, _GAP, _GROUP_GAP, _TOP = 14.0, 4.0, 18.0, 46.0
_COLOURS = {"duplicates": "bad", "parked": "wait", "failed": "soft"}
_WORDS = {
    "duplicates": "duplicate effects",
    "parked": "in front of a person",
    "failed": "failed with nothing done",
}


def chart(results: Mapping[str, Any]) -> str:
    """Return the chart as an SVG file."""
    arms = results["headline"]
    group = len(BARS) * (_BAR + _GAP) + _GROUP_GAP
    height = _TOP + len(arms) * group
    parts = [rectangle(0, 0, WIDTH, height, "f-paper"), *_legend()]
    parts.append(line(_LABELS, _TOP - 8, _LABELS, height - 8, "s-rule"))
    most = max(one[name] for one in arms.values() for name in BARS) or 1
    for number, (arm, one) in enumerate(arms.items()):
        parts += _group(arm, one, _TOP + number * group, (WIDTH - _LABELS - _ROOM) / most)
    about = "Duplicate effects, parked and failed intents of each arm of the headline workload"
    return picture(WIDTH, height, about, parts, STYLE)


def _legend() -> Iterator[str]:
    for number, name in enumerate(BARS):
        x = _LABELS + number * 165
        yield rectangle(x, 12, 12, 12, f"f-{_COLOURS[name]}")
        yield text(x + 18, 22, _WORDS[name], "small f-soft")


def _group(arm: str, one: Mapping[str, Any], top: float, scale: float) -> Iterator[str]:
    middle = top + len(BARS) * (_BAR + _GAP) / 2
    yield text(_LABELS - 12, middle + 3, ARMS[arm], "", "end")
    for number, name in enumerate(BARS):
        y, value = top + number * (_BAR + _GAP), one[name]
        # A bar of one would hardly be seen; a bar of nothing is none.
        width = max(value * scale, 1.5) if value else 0.0
        if value:
            yield rectangle(_LABELS, y, width, _BAR, f"f-{_COLOURS[name]}")
        yield text(_LABELS + width + 6, y + 11, str(value), "small")
