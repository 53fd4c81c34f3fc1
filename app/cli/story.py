"""Tells one intent's history as lines: when, who, under which fence, what, and what is possible.

Pure: it gets what was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .again import again
from .naming import display_name
from .output import age
from .possible import possible_commands

if TYPE_CHECKING:
    from datetime import datetime

    from ...outbox.shell.history import GenerationRow, HistoryEntry, IntentHistory
    from ...outbox.told import Told

_PROCESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EXECUTION_FACTS = ("attempts", "sends", "resends", "probes")


def story(history: IntentHistory, told: Told | None, now: datetime) -> Iterator[str]:
    """Yield the lines of `ackbox show`."""
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
        yield from _possible(row, divergence)


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


def _possible(row: GenerationRow, divergence: int | None) -> Iterator[str]:
    name = display_name(row.namespace, row.intent_id, row.run_id, row.step, row.generation)
    commands = possible_commands(row, name, divergence)
    if not commands:
        return
    later = f" (quiet in {row.quiet_in_seconds:.0f} s)" if row.quiet_in_seconds > 0 else ""
    yield f"  possible{later}:"
    for command in commands:
        yield f"    {again(command)}"
