"""Shows how far a run is: a live line on a terminal, plain lines elsewhere, nothing for JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

PLAIN_EVERY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far one side is."""

    ended: int
    steps: int
    kills: int
    unknown: int | None = None
    """Steps that are unknown just now; None where nobody keeps count."""

    def as_text(self) -> str:
        """Return the line without the bar."""
        unknown = "" if self.unknown is None else f"   unknown now {self.unknown}"
        return f"{self.ended}/{self.steps}   kills {self.kills}{unknown}"


class Display(Protocol):
    """What a side shows its progress on."""

    def show(self, snapshot: Snapshot) -> None:
        """Show it, if it is time."""


class Silence:
    """Shows nothing."""

    def show(self, snapshot: Snapshot) -> None:
        """Drop it."""


class PlainLines:
    """Prints a line now and then, on stderr: a log of a build has no use for a bar."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._due_at = 0.0
        self._started_at = time.monotonic()
        self._last: Snapshot | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Print the line if the last one is old enough, or if it is the end."""
        now = time.monotonic()
        is_early = now < self._due_at and snapshot.ended < snapshot.steps
        if is_early or snapshot == self._last:
            return
        self._last = snapshot
        self._due_at = now + PLAIN_EVERY_SECONDS
        seconds = int(now - self._started_at)
        click.echo(f"  {self._title}: {snapshot.as_text()}   {seconds} s", err=True)


class LiveBar:
    """Keeps one line of a terminal up to date."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None, text="")

    def show(self, snapshot: Snapshot) -> None:
        """Draw it."""
        self._progress.update(
            self._task, total=snapshot.steps, completed=snapshot.ended, text=snapshot.as_text()
        )


@contextmanager
def display(title: str, *, quiet: bool) -> Iterator[Display]:
    """Give what suits where the output goes."""
    if quiet:
        yield Silence()
    elif not sys.stderr.isatty():
        yield PlainLines(title)
    else:
        columns = (
            TextColumn("  {task.description:<20}"), BarColumn(bar_width=24),
            TextColumn("{task.fields[text]}"), TimeElapsedColumn(),
        )  # fmt: skip
        with Progress(*columns, console=Console(stderr=True)) as progress:
            yield LiveBar(progress, title)
