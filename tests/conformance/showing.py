"""What two stores are compared by: replies, events and observations by place, not by number."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from .outboxes import Outbox


def shown(value: Any, outbox: Outbox) -> Any:
    """Return a reply with rows by their place, and without what is a store's own."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: shown(one, outbox) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one, outbox) for one in value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    pairs = dict(_members(value))
    for name in ("seq", "target", "owner"):
        if isinstance(pairs.get(name), int):
            pairs[name] = outbox.seqs().index(pairs[name])
    return {"is": type(value).__name__, **{n: shown(v, outbox) for n, v in pairs.items()}}


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        found = getattr(value, field.name)
        # Words for people carry seconds and row numbers.
        if field.name not in ("detail", "seconds_left", "next_step"):
            yield field.name, float(found) if field.name == "oldest_seconds" else found


def facts(outbox: Outbox, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return events or observations with rows by their place; reasons name rows, so left out."""
    places = {seq: place for place, seq in enumerate(outbox.seqs())}
    return sorted(
        (tuple([places.get(row[0], row[0]), *(one for one in row[1:6])]) for row in rows), key=repr
    )
