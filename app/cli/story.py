"""Tells one intent's history as lines: when, who, under which fence, what, and what is possible.

Pure: it gets what was read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...outbox.compensate import proven_handle
from .again import again
from .naming import display_name
from .output import age
from .possible import Offer, Subject, offers

if TYPE_CHECKING:
    from datetime import datetime

    from ...outbox.model import Row, World
    from ...outbox.shell.history import GenerationRow, HistoryEntry, IntentHistory
    from ...outbox.told import Told

_PROCESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EXECUTION_FACTS = ("attempts", "sends", "resends", "probes")


@dataclass(frozen=True, slots=True)
class Seen:
    """All that was read of an intent at one moment of the store's clock."""

    history: IntentHistory
    told: Told | None
    now: datetime
    rows: Mapping[int, tuple[Row, World]]
    has_tools: bool = False
    """Whether the settings name modules with tools."""


def story(seen: Seen) -> Iterator[str]:
    """Yield the lines of `ackbox show`."""
    history, told, now = seen.history, seen.told, seen.now
    first = history.generations[0]
    begun = first.created_at
    yield (
        f"{display_name(first.namespace, first.intent_id, first.run_id, first.step)} · "
        f"{first.tool} v{first.tool_version} · lane {first.lane} · "
        f"put {age((now - begun).total_seconds())} ago · id {first.intent_id}"
    )
    if told is not None:
        reason = f": {told.reason}" if told.reason else ""
        ref = getattr(told, "ref", None)
        yield f"  {told.word}{reason}{f' · reference {ref}' if ref else ''}"
    divergence = latest_divergence(history)
    for row in history.generations:
        yield ""
        yield from _generation(row, history, begun)
        yield from _possible(offers(_subject(row, seen), divergence))


def latest_divergence(history: IntentHistory) -> int | None:
    """Return the number that a release or a close has to quote, None where none is on record."""
    numbers = [e.number for e in history.entries if (e.kind, e.name) == ("event", "divergence")]
    return max(numbers, default=None)


def _generation(row: GenerationRow, history: IntentHistory, begun: datetime) -> Iterator[str]:
    yield f"{_title(row)}: {row.state.value} · fence {row.fence}{_facts(row)}"
    shown = [_line(entry, begun) for entry in history.entries if entry.seq == row.seq]
    widths = [max((len(line[column]) for line in shown), default=0) for column in range(3)]
    for line in shown:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        yield f"  {'  '.join(cells)}  {line[3]}".rstrip()


def _title(row: GenerationRow) -> str:
    if row.compensates is None:
        return f"generation {row.generation}"
    return f"compensation {display_name(row.namespace, row.intent_id, None, None, row.generation)}"


def _facts(row: GenerationRow) -> str:
    numbers = [f"{name} {getattr(row, name)}" for name in _EXECUTION_FACTS if getattr(row, name)]
    claims = {
        "superseded": not row.live,
        "called off": not row.wanted and row.settled_at is None,
        "parked": row.parked_at is not None,
        "DIVERGED": row.diverged_at is not None,
        "key not trusted": not row.key_trusted,
        "in doubt": row.in_doubt,
        "being undone": row.undo is not None,
        "bound": row.bound_at is not None,
        f"gate {row.gate}": row.gate is not None,
    }
    facts = [*numbers, *(name for name, holds in claims.items() if holds)]
    return "".join(f" · {fact}" for fact in facts)


def _line(entry: HistoryEntry, begun: datetime) -> tuple[str, str, str, str]:
    who = f"{entry.actor} {_brief(entry.actor_name)}" if entry.actor_name else entry.actor
    fence = "" if entry.fence is None else f"fence {entry.fence}"
    return _offset((entry.at - begun).total_seconds()), who, fence, _what(entry)


def _brief(name: str) -> str:
    """Return a process's id cut as people quote it, any other name whole."""
    return name[:8] if _PROCESS.fullmatch(name) else name


def _what(entry: HistoryEntry) -> str:
    if entry.kind != "event":
        proven = f"{entry.kind}: {entry.name}"
        ref = f" · reference {entry.ref}" if entry.ref else ""
        return f"{proven}{ref}{f' · {entry.reason}' if entry.reason else ''}"
    moved = f" {entry.from_state} -> {entry.to_state}" if entry.from_state else ""
    if not entry.from_state and entry.to_state:
        moved = f" -> {entry.to_state}"
    if entry.from_state == entry.to_state:
        moved = ""
    number = f" {entry.number}" if entry.name == "divergence" else ""
    return f"{entry.name}{number}{moved}{f' · {entry.reason}' if entry.reason else ''}"


def _offset(seconds: float) -> str:
    return f"+{seconds:.3f}s" if seconds < 60 else f"+{age(seconds)}"


def _subject(shown: GenerationRow, seen: Seen) -> Subject:
    row, world = seen.rows[shown.seq]
    name = display_name(
        shown.namespace, shown.intent_id, shown.run_id, shown.step, shown.generation
    )
    if shown.generation == 0 and len({r.generation for r in seen.history.generations}) > 1:
        name += "~g0"  # the short name speaks of the live generation
    kinds = [e.kind for e in seen.history.entries if e.seq == shown.seq and e.ref == shown.ref]
    handle = proven_handle(kinds[-1], shown.ref) if kinds else None
    return Subject(row, world, name, shown.compensates, handle, seen.has_tools)


def _possible(found: Sequence[Offer]) -> Iterator[str]:
    """Yield what may be said at once, then what only a send that may still arrive forbids."""
    for seconds in sorted({math.ceil(offer.in_seconds) for offer in found}):
        when = f"possible in {seconds} s, when no send can arrive any more" if seconds else ""
        yield f"  {when or 'possible'}:"
        for offer in found:
            if math.ceil(offer.in_seconds) == seconds:
                yield f"    {again(offer.command)}"
