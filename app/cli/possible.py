"""What a person may still do about a row, read off the one table of edges. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...outbox.model import State
from ...outbox.transitions import EDGE

if TYPE_CHECKING:
    from ...outbox.shell.history import GenerationRow

_COMMANDS = {
    "release.person": "ackbox release {name} --reason TEXT",
    "withdraw.cancel": "ackbox cancel {name}",
    "acknowledge.person": "ackbox resolve {name} --landed REF --reason TEXT",
    "refuse.person": "ackbox resolve {name} --not-landed --reason TEXT",
    "clear.person": "ackbox resolve {name} --not-landed --requeue --reason TEXT",
    "compensate.person": "ackbox resolve {name} --undone --reason TEXT",
}
"""A person's edges and the commands that ask for them, in the order in which they are offered."""
_UNDOABLE = (State.COMMITTED, State.INDETERMINATE)


def possible_commands(row: GenerationRow, name: str, divergence: int | None) -> list[str]:
    """Return the commands that fit the row's state; the guards judge again when one is run."""
    if row.diverged_at is not None:
        quoted = "N" if divergence is None else str(divergence)
        return [
            f"ackbox close-divergence {name} {quoted} --stands --reason TEXT",
            f"ackbox close-divergence {name} {quoted} --undone --reason TEXT",
            *([f"ackbox release {name} --divergence {quoted} --reason TEXT"]
              if row.state is State.HELD else []),
        ]  # fmt: skip
    if row.undo is not None:
        return []
    found = [
        words.format(name=name)
        for edge, words in _COMMANDS.items()
        if row.state in EDGE[edge].sources and _fits(edge, row)
    ]
    if row.state in _UNDOABLE and row.adopted_from is None and row.compensates is None:
        found.append(f"ackbox resolve {name} --compensate --reason TEXT")
    return found


def _fits(edge: str, row: GenerationRow) -> bool:
    if edge == "withdraw.cancel":
        return row.live and row.compensates is None
    if edge in ("release.person", "clear.person"):
        return row.wanted
    return row.adopted_from is None
