"""What a plan hears of that binds nothing: the words it may ask for, and when each is still true.

Pure; may import `told`, `telling`, `model` and `commands`. The list of what is to be told is
written with the events themselves, so nothing here decides what is on it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .errors import ConfigError
from .telling import Generation, Telling
from .told import Compensated, UnknownOutcome

UNKNOWN = "unknown"
PARKED = "parked"
COMPENSATED = "compensated"
TOLD_WORDS = (UNKNOWN, PARKED, COMPENSATED)
_BIND_WORDS = frozenset({"committed", "failed", "cancelled"})


def check_word(word: object) -> str:
    """Return a word that on_told may be asked for. Raises ConfigError for any other."""
    if word in TOLD_WORDS:
        return str(word)
    step = f"ask for one of: {', '.join(TOLD_WORDS)}"
    if word in _BIND_WORDS:
        step = f"use on_bound or after_bound: {word} binds"
    raise ConfigError(f"on_told does not fire for {word!r}", next_step=step)


@dataclass(frozen=True, slots=True)
class ToTell:
    """One thing on the list, leased to this consumer. `tries` guards the lease."""

    tell_id: int
    seq: int
    word: str
    tries: int
    tool: str
    intent_id: str


@dataclass(frozen=True, slots=True)
class TakeToTell:
    """Lease what waits longest. Reply: ToTell or None."""


@dataclass(frozen=True, slots=True)
class Tell:
    """Call what waits for it, or let go of it. Reply: bool, whether a callback has returned."""

    leased: ToTell


class Turn(StrEnum):
    """What to do with something on the list."""

    CALL = "call"
    FORGET = "forget"
    """The word is not true any more; what followed tells itself."""
    LATER = "later"
    """Contradicting facts hide the word until a person has decided."""


def turn_of(word: str, row: Generation, telling: Telling) -> Turn:
    """Return whether the word still holds of a row, by what is told of it now."""
    told = telling.told
    if word == UNKNOWN:
        holds = isinstance(told, UnknownOutcome)
    elif word == PARKED:
        holds = row.row.parked_at is not None
    elif isinstance(told, UnknownOutcome):
        return Turn.LATER
    else:
        holds = isinstance(told, Compensated)
    return Turn.CALL if holds else Turn.FORGET


def tell_pass(limit: int) -> Generator[Any, Any, int]:
    """Tell what is due, the longest waiting first; returns how much was looked at."""
    for number in range(limit):
        leased: ToTell | None = yield TakeToTell()
        if leased is None:
            return number
        yield Tell(leased)
    return limit
