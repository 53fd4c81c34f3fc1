"""How answers look: JSON for programs, a table within 100 columns for people, ages for times.

rich draws only on a terminal; elsewhere the same table is plain text. May import click and, where
a terminal reads along, rich.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

WIDTH = 100
_GAP = 2
_CUT = "…"
_LAST_WIDTH = 32
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "m"))


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(document, indent=2))


def age(seconds: float) -> str:
    """Return a time span as people read it: 45s, 14m, 2h, 3d."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def print_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, give: Sequence[int] = ()
) -> None:
    """Print rows under titles. `give`: the columns that are cut first where it gets too wide."""
    if sys.stdout.isatty():
        _print_rich(titles, rows, give)
        return
    widths = fitted([titles, *rows], give)
    for row in (titles, *rows):
        cells = [_cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo((" " * _GAP).join(cells).rstrip())


def print_uncut(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows whose last cell moves to a line of its own where the others leave no room."""
    short = [(*row[:-1], row[-1][:_LAST_WIDTH]) for row in (titles, *rows)]
    widths = fitted(short, (len(titles) - 2,))
    indent = sum(widths[:-1]) + _GAP * (len(widths) - 1)
    for *cells, last in (titles, *rows):
        front = (" " * _GAP).join(c.ljust(w) for c, w in zip(cells, widths, strict=False))
        if len(front) > indent - _GAP or indent + len(last) > WIDTH:
            click.echo(front.rstrip())
            front = " " * (max(_GAP, min(indent, WIDTH - len(last))) - _GAP)
        click.echo(f"{front}{' ' * _GAP}{last}".rstrip())


def fitted(rows: Sequence[Sequence[str]], give: Sequence[int], limit: int = WIDTH) -> list[int]:
    """Return the columns' widths, together within the limit as far as `give` allows."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for column in give:
        over = sum(widths) + _GAP * (len(widths) - 1) - limit
        if over > 0:
            widths[column] = max(len(rows[0][column]), widths[column] - over, 12)
    return widths


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + _CUT


def _print_rich(titles: Sequence[str], rows: Sequence[Sequence[str]], give: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    widths = fitted([titles, *rows], give, console.width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for title, width in zip(titles, widths, strict=True):
        table.add_column(title, no_wrap=True, overflow="ellipsis", width=width)
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(table)


def style_of(word: str) -> dict[str, Any]:
    """Return click's styling of a word; click drops it where no terminal reads along."""
    bold, _, colour = _STYLES.get(word, "").rpartition(" ")
    return {"fg": colour or None, "bold": bool(bold) or None}


_STYLES = {
    "indeterminate": "yellow",
    "unknown": "yellow",
    "failed": "red",
    "committed": "green",
    "ok": "green",
    "WARN": "yellow",
    "FAIL": "bold red",
}
