"""The words between the fake provider and its shell: a request, and the steps of its answer.

Pure values, standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Incoming:
    """One parsed request."""

    method: str
    endpoint: str
    identity: str | None
    query: dict[str, str]
    wire_key: str
    body: bytes

    def fields(self) -> dict[str, Any]:
        """Return the JSON object of the body. Raises ValueError for anything else."""
        document = json.loads(self.body or b"{}")
        if not isinstance(document, dict):
            raise ValueError("the body must be a JSON object")
        return document


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass. The reply is the time now."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Drop:
    """End the connection without an answer."""


@dataclass(frozen=True, slots=True)
class Later:
    """Run the create later, after the client has gone. The connection is dropped first."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and how its bytes go out."""

    status: int
    document: dict[str, Any] | list[Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    drip_seconds: float = 0.0
    cut: bool = False
    garbage: bool = False


Step: TypeAlias = Wait | Drop | Later | Reply
Script: TypeAlias = Generator[Step, float, None]


@dataclass(slots=True)
class Switches:
    """What one endpoint promises and keeps."""

    honours_key: bool = False
    key_window_seconds: float | None = None
    """None: for ever."""
    echo: str = "none"
    """`header`, `body` or `none`: where a 201 repeats the wire key."""
    keeps_marker: bool = True
    has_probe: bool = False
    index_lag_seconds: float = 0.0
    accepts: bool = False
    """Answer 202 instead of 201."""


def default_switches() -> dict[str, Switches]:
    """Return the three endpoints: key-honouring, probe only, and neither."""
    return {
        "tickets": Switches(honours_key=True, echo="header", has_probe=True),
        "mails": Switches(has_probe=True),
        "charges": Switches(keeps_marker=False),
    }
