"""What a tool declares about itself: its key, its probe, its echo and its limits.

Pure. A declaration is stamped on a row at claim (one `contract` row per distinct declaration), so
that a later deploy cannot change what an open row may do.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from .defaults import DEFAULTS, Limits


class KeyKind(StrEnum):
    """What sending the same wire key twice does at the tool."""

    NONE = "none"
    """Nothing is promised: a second send is a second effect."""
    IDEMPOTENT = "idempotent"
    """The tool replays or refuses a second use inside the key window."""
    CLIENT_ID = "client_id"
    """The caller picks the identity of the created thing; a second create meets the first."""


class ProbeStrength(StrEnum):
    """What an Absent of the tool's probe proves."""

    NONE = "none"
    WEAK = "weak"
    """Found proves the effect; Absent proves nothing."""
    STRONG = "strong"
    """On a quiet row with a trusted key, Absent proves that nothing happened."""


class Echo(StrEnum):
    """How a 2xx shows that the tool saw our key (a 2xx without it is a protocol miss)."""

    NONE = "none"
    """The tool never echoes: its 2xx is Applied."""
    KEY = "key"
    """The answer carries the wire key or an id derived from it, in a header or in the object."""
    REF = "ref"
    """The tool's contract says that a returned object id means the key was honoured."""


@dataclass(frozen=True, slots=True)
class Key:
    """A tool's promise about its Idempotency-Key. `window_seconds` None means for ever."""

    kind: KeyKind = KeyKind.NONE
    window_seconds: float | None = 0.0


def idempotent(window: timedelta | None) -> Key:
    """Declare that the tool deduplicates by key for `window` after the first send."""
    return Key(KeyKind.IDEMPOTENT, None if window is None else window.total_seconds())


def client_id(window: timedelta | None) -> Key:
    """Declare that our key is the identity of the created object, held for `window`."""
    return Key(KeyKind.CLIENT_ID, None if window is None else window.total_seconds())


@dataclass(frozen=True, slots=True)
class ToolContract:
    """One tool's declaration. A tool that declares nothing has neither key nor probe."""

    tool: str
    version: int = 1
    lane: str = "default"
    key: Key = field(default_factory=Key)
    probe: ProbeStrength = ProbeStrength.NONE
    echo: Echo = Echo.NONE
    settle_seconds: float = DEFAULTS.settle_seconds
    send_deadline_seconds: float = DEFAULTS.send_deadline_seconds
    call_limit_seconds: float = DEFAULTS.call_limit_seconds
    clock_allowance_seconds: float = DEFAULTS.clock_allowance_seconds
    max_sends: int = DEFAULTS.max_sends
    max_resends: int = DEFAULTS.max_resends
    max_probes: int = DEFAULTS.max_probes
    park_after_seconds: float = DEFAULTS.park_after_seconds
    ensure_absent: bool = False
    """The declared compensation finds by exact marker and proves absence by a strong read."""
    compensates: bool = False
    """The tool declares a compensation at all."""
    compensate_unknown: bool = False
    """`on_unknown = "compensate"`: the ladder may order the ensure-absent compensation."""

    @property
    def ack_seconds(self) -> float:
        """Lease of a send, from the mark on."""
        return self.send_deadline_seconds + self.call_limit_seconds + self.clock_allowance_seconds

    @property
    def margin_seconds(self) -> float:
        """Time before the end of the key window after which no resend may be marked.

        Holds the send deadline too: the first byte leaves at most that much after the mark.
        """
        return self.ack_seconds + self.settle_seconds

    @property
    def may_resend(self) -> bool:
        """Whether the key window leaves room for a resend at all."""
        if self.key.kind is KeyKind.NONE:
            return False
        needed = self.margin_seconds + self.ack_seconds + self.settle_seconds
        return self.key.window_seconds is None or self.key.window_seconds > needed

    def document(self) -> dict[str, Any]:
        """Return the declaration as a JSON object with stable keys."""
        return asdict(self)

    def digest(self) -> str:
        """Return the SHA-256 that names this distinct declaration."""
        text = json.dumps(self.document(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def contract_from_document(document: dict[str, Any]) -> ToolContract:
    """Rebuild a declaration from `ToolContract.document`."""
    fields = dict(document)
    key = fields.pop("key")
    return ToolContract(
        key=Key(KeyKind(key["kind"]), key["window_seconds"]),
        probe=ProbeStrength(fields.pop("probe")),
        echo=Echo(fields.pop("echo")),
        **fields,
    )


def contradictions(contract: ToolContract, limits: Limits) -> list[str]:
    """Return what in the declaration contradicts itself or the outbox's limits, as sentences."""
    problems = []
    if contract.ensure_absent and contract.probe is not ProbeStrength.STRONG:
        problems.append(f"{contract.tool}: an ensure-absent compensation needs a strong probe")
    if contract.compensate_unknown and not contract.ensure_absent:
        problems.append(f"{contract.tool}: on_unknown=compensate needs an ensure-absent undo")
    window = contract.key.window_seconds
    if window is not None and window > limits.retention_seconds:
        problems.append(f"{contract.tool}: retention is shorter than the key window")
    return problems
