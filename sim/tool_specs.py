"""What a virtual tool promises, what it really does, and the shipped adapter that speaks to it.

A specification has two sides: the declaration (key, probe, echo ...), which the adapter stamps on
rows, and the truth (`honours_key`, `keeps_marker`, `echoes`), which the virtual server lives by.
The adapter is the shipped `HttpJsonTool`. May import `outbox` and `tool_adapters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..outbox.contract import Key, KeyKind, ProbeStrength, ToolContract
from ..outbox.defaults import DEFAULTS
from ..tool_adapters.contract import (
    Adapter,
    BaseAdapter,
    Call,
    CompensationPlan,
    CompensationTarget,
    Evidence,
    NoHandle,
    ProbeAnswer,
    Request,
)
from ..tool_adapters.http_answer import EchoHeader
from ..tool_adapters.http_json import HttpCompensation, HttpJsonTool
from ..tool_adapters.http_probe import HttpProbe

BASE_URL = "https://tools.invalid"
MARKER = "marker"
DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One virtual tool. Everything that is not said is not promised, and is true."""

    name: str
    service: str = ""
    """Whose objects it works on; its own name by default. An undo works on its target's."""
    key: str = "none"
    key_window_seconds: float | None = None
    probe: str = "none"
    echo: bool = True
    """Declares that every 2xx carries the key; tools without a key declare no echo."""
    undo: str = ""
    """Name of the tool that undoes an effect of this one."""
    undoes: str = ""
    """"ref": deletes by reference; "marker": finds by marker and proves absence."""
    honours_key: bool = True
    keeps_marker: bool = True
    echoes: bool = True
    replays: bool = True
    """Answers from the key store carry the replay header."""
    forgets_after_seconds: float | None = None
    """When keys are really forgotten; the declared window by default."""
    lag_seconds: float = 0.0
    """How long a new object stays out of the probe's sight."""
    settle_seconds: float = DEFAULTS.settle_seconds
    call_limit_seconds: float = DEFAULTS.call_limit_seconds
    max_sends: int = DEFAULTS.max_sends
    max_resends: int = DEFAULTS.max_resends
    max_probes: int = DEFAULTS.max_probes
    park_after_seconds: float = DEFAULTS.park_after_seconds

    @property
    def shelf(self) -> str:
        """The collection of objects that it works on."""
        return self.service or self.name


SPEC_FIELDS: Mapping[str, str] = {field.name: str(field.type) for field in fields(ToolSpec)}


class VirtualTool(BaseAdapter):
    """A shipped adapter with its declaration built once, and the limits that a world sets."""

    def __init__(self, inner: Adapter, contract: ToolContract) -> None:
        self._inner = inner
        self.contract = contract

    def build(self, call: Call) -> None:
        """Ask the shipped adapter."""
        self._inner.build(call)

    def encode(self, call: Call, handle: Any) -> Request:
        """Ask the shipped adapter."""
        return self._inner.encode(call, handle)

    def classify(self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]) -> Any:
        """Ask the shipped adapter."""
        return self._inner.classify(call, evidence, follow_ups)

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Ask the shipped adapter."""
        return self._inner.probe(call, answers)

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Ask the shipped adapter."""
        return self._inner.compensation(target)


def adapter_of(spec: ToolSpec, specs: Mapping[str, ToolSpec]) -> VirtualTool:
    """Return the adapter of a virtual tool."""
    inner = _undo(spec) if spec.undoes else _maker(spec, specs)
    contract = replace(
        inner.contract, max_resends=spec.max_resends, max_probes=spec.max_probes,
        park_after_seconds=spec.park_after_seconds,
    )  # fmt: skip
    return VirtualTool(inner, contract)


def _maker(spec: ToolSpec, specs: Mapping[str, ToolSpec]) -> HttpJsonTool:
    kind, strength = KeyKind(spec.key), ProbeStrength(spec.probe)
    url = f"{BASE_URL}/{spec.shelf}"
    keyed = kind is not KeyKind.NONE
    return HttpJsonTool(
        tool=spec.name, url=url, lane=spec.name, key=_key(spec), marker_field=MARKER,
        echo=EchoHeader("Idempotency-Key") if spec.echo and keyed else None,
        duplicate_codes=frozenset({DUPLICATE}),
        probe_by=None if strength is ProbeStrength.NONE
        else HttpProbe(f"{url}?marker={{marker}}", strength),
        undo=_undo_of(specs[spec.undo]) if spec.undo else None, **_times(spec),
    )  # fmt: skip


def _undo(spec: ToolSpec) -> HttpJsonTool:
    by_marker = spec.undoes == MARKER
    place = "?marker={marker}" if by_marker else "/{id}"
    return HttpJsonTool(
        tool=spec.name, url=f"{BASE_URL}/{spec.shelf}{place}", method="DELETE", lane=spec.name,
        key=_key(spec), done_statuses=frozenset({404}), ref_pointer=None, **_times(spec),
    )  # fmt: skip


def _undo_of(spec: ToolSpec) -> HttpCompensation:
    if spec.undoes == MARKER:
        return HttpCompensation(spec.name, None, MARKER, ensure_absent=True)
    return HttpCompensation(spec.name, ref_argument="id")


def _key(spec: ToolSpec) -> Key:
    kind = KeyKind(spec.key)
    return Key() if kind is KeyKind.NONE else Key(kind, spec.key_window_seconds)


def _times(spec: ToolSpec) -> dict[str, Any]:
    return {
        "settle_seconds": spec.settle_seconds,
        "call_limit_seconds": spec.call_limit_seconds,
        "max_sends": spec.max_sends,
    }
