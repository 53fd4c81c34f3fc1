"""The table that the demo ends with.

Pure text; colour and width are the terminal's business.
"""

from __future__ import annotations

from collections.abc import Iterator

from .figures import Figures

_NOTHING = "–"
_KEYLESS_NOTE = "(tool without key or probe)"


def title(services: str, seed: int) -> str:
    """Return the first line."""
    return f"ackbox demo · {services} · seed {seed}"


def table(figures: Figures) -> Iterator[str]:
    """Yield the table's lines: ackbox on the left, bare RQ on the right."""
    ours, naive = figures.ackbox, figures.naive
    yield _row("", "ackbox", "plain RQ with Retry")
    yield _row("steps", figures.steps, figures.steps)
    yield _row("effects counted at the tools", ours.effects, naive.effects)
    yield _row("duplicate tickets, mails, charges", ours.duplicates, naive.duplicates)
    yield _row("lost", ours.lost, naive.lost)
    note = _KEYLESS_NOTE if figures.unknown else ""
    yield _row("parked for a person", figures.unknown, _NOTHING, note)
    yield _row("late results rejected as stale", figures.stale_rejected, _NOTHING)


def way_on(show_hint: str) -> Iterator[str]:
    """Yield the last line: it leads on. The rows are kept, and `show` finds their servers."""
    yield f"  What happened to one step: {show_hint}"


def remarks(figures: Figures) -> Iterator[str]:
    """Yield what a reader of the table must know besides."""
    yield from figures.remarks
    if figures.ackbox.doubled_steps:
        yield f"doubled: {', '.join(figures.ackbox.doubled_steps)}"
    if figures.ackbox.lost_steps:
        yield f"lost: {', '.join(figures.ackbox.lost_steps)}"
    if not figures.naive.duplicates:
        yield "plain RQ doubled nothing this time: no kill hit it between effect and answer"


def _row(name: str, ours: object, naive: object, note: str = "") -> str:
    return f"  {name:<34}{ours!s:>6}{naive!s:>23}   {note}".rstrip()
