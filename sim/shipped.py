"""Finds the traces that ship with ackbox, and reads any other one from a text.

May import `trace` and `importlib.resources`.
"""

from __future__ import annotations

from importlib.resources import files

from .trace import Trace, read_trace

_FOLDER = files(__package__ or "ackbox.sim") / "traces"


def shipped_names() -> list[str]:
    """Return the names of all shipped traces, in alphabetical order."""
    found = [one.name for one in _FOLDER.iterdir() if one.name.endswith(".json")]
    return sorted(name.removesuffix(".json") for name in found)


def shipped_text(name: str) -> str:
    """Return a shipped trace's text. Raises FileNotFoundError for a name that is none."""
    return (_FOLDER / f"{name}.json").read_text(encoding="utf-8")


def shipped(name: str) -> Trace:
    """Return a shipped trace. Raises FileNotFoundError for a name that is none."""
    return read_trace(shipped_text(name))
