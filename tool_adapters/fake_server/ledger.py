"""What really happened at the fake provider: the oracle of every test.

Pure: the standard library; time is always passed in. It counts effects by the wire key that came
with the request, whether or not the endpoint looks at keys, so that a doubled effect shows where
the provider itself is blind.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

_GENERATION = re.compile(r"~g\d+$")


@dataclass(slots=True)
class StoredObject:
    """One created thing. Deleted ones stay visible to no read but count as effects."""

    id: str
    endpoint: str
    wire_key: str
    marker: str | None
    fields: dict[str, Any]
    created_at: float
    deleted: bool = False

    def document(self) -> dict[str, Any]:
        """Return the object as the provider shows it."""
        return {"id": self.id, "marker": self.marker, **self.fields}


@dataclass(slots=True)
class KeyEntry:
    """What the key store holds for one key of one endpoint."""

    body: bytes
    first_seen_at: float
    status: int | None = None
    """None while the first request with the key is still at work."""
    answer: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """Objects, key store and counts of one fake provider. Not thread-safe: one loop owns it."""

    def __init__(self) -> None:
        self.objects: list[StoredObject] = []
        self.keys: dict[tuple[str, str], KeyEntry] = {}
        self.effects: Counter[tuple[str, str]] = Counter()
        self.undone: Counter[tuple[str, str]] = Counter()
        self.requests: Counter[str] = Counter()

    def create(
        self, endpoint: str, wire_key: str, fields: dict[str, Any], now: float
    ) -> StoredObject:
        """Perform one effect and count it."""
        number = len(self.objects) + 1
        marker = fields.get("marker")
        kept = {name: value for name, value in fields.items() if name not in ("id", "marker")}
        created = StoredObject(
            f"{endpoint}-{number}", endpoint, wire_key, marker, kept, created_at=now
        )
        self.objects.append(created)
        self.effects[endpoint, wire_key] += 1
        return created

    def find(self, endpoint: str, marker: str, visible_since: float) -> list[StoredObject]:
        """Return the living objects with exactly this marker that a read can see."""
        return [
            one
            for one in self.objects
            if one.endpoint == endpoint
            and one.marker == marker
            and not one.deleted
            and one.created_at <= visible_since
        ]

    def by_id(self, endpoint: str, identity: str) -> StoredObject | None:
        """Return the living object of that id, or None."""
        found = (one for one in self.objects if one.endpoint == endpoint and one.id == identity)
        return next((one for one in found if not one.deleted), None)

    def delete(self, found: StoredObject, wire_key: str) -> None:
        """Undo an effect; the undo is an effect of its own, under its own key."""
        found.deleted = True
        self.undone[found.endpoint, found.wire_key] += 1
        self.effects[f"{found.endpoint}.delete", wire_key] += 1

    def effects_of(self, wire_key: str) -> int:
        """Return how many effects came with this wire key, over all endpoints."""
        return sum(count for (_, key), count in self.effects.items() if key == wire_key)

    def document(self) -> dict[str, Any]:
        """Return all counts as JSON: by wire key, by intent and by endpoint."""
        by_key: Counter[str] = Counter()
        by_intent: Counter[str] = Counter()
        by_endpoint: dict[str, dict[str, int]] = {}
        for (endpoint, key), count in self.effects.items():
            by_key[key] += count
            by_intent[_GENERATION.sub("", key)] += count
            by_endpoint.setdefault(endpoint, {})[key] = count
        return {
            "total": sum(self.effects.values()),
            "effects": dict(by_key),
            "intents": dict(by_intent),
            "endpoints": by_endpoint,
            "undone": {key: count for (_, key), count in self.undone.items()},
            "requests": dict(self.requests),
        }
