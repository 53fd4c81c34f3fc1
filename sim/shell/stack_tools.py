"""The tools of a replayed world as real adapters: the declarations of `sim.tool_specs`, over HTTP.

A worker finds what to build in `tools.json` beside the fault plan of its run. Every virtual tool
lives at the endpoint of the fake provider that keeps the same promises; limits are short, so that
what has to wait for one does not wait for long. May import `tool_adapters` and `sim`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ...outbox.shell.fault_points import PLAN_VARIABLE
from ...tool_adapters.contract import (
    Adapter,
    Call,
    Evidence,
    HttpRequest,
    ProbeAnswer,
    Request,
)
from ..tool_specs import BASE_URL, ToolSpec, VirtualTool, adapter_of

TOOLS_PLACE = f"{__name__}:build"
TOOLS_FILE = "tools.json"
SETTLE_SECONDS = 0.6
CALL_LIMIT_SECONDS = 2.5
SEND_DEADLINE_SECONDS = 1.5
CLOCK_ALLOWANCE_SECONDS = 0.2
PARK_AFTER_SECONDS = 6.0


class StackTool(VirtualTool):
    """A virtual tool's shipped adapter that speaks to the fake provider."""

    def __init__(self, inner: VirtualTool, place: str, endpoint: str) -> None:
        super().__init__(inner, replace(
            inner.contract, send_deadline_seconds=SEND_DEADLINE_SECONDS,
            clock_allowance_seconds=CLOCK_ALLOWANCE_SECONDS,
        ))  # fmt: skip
        self._place = place
        self._endpoint = endpoint

    def encode(self, call: Call, handle: Any) -> Request:
        """Ask the shipped adapter, and send its request to the provider."""
        return self._moved(super().encode(call, handle))

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Ask the shipped adapter, and send its read to the provider."""
        asked = super().probe(call, answers)
        return self._moved(asked) if isinstance(asked, HttpRequest) else asked

    def _moved(self, request: Request) -> Request:
        if not isinstance(request, HttpRequest):
            return request
        return replace(request, url=request.url.replace(self._place, self._endpoint, 1))


def endpoint_of(spec: ToolSpec, specs: Mapping[str, ToolSpec]) -> str:
    """Return the provider's endpoint that promises what the maker of a tool's objects does."""
    makers = [one for one in specs.values() if one.shelf == spec.shelf and not one.undoes]
    maker = makers[0] if makers else spec
    if maker.key != "none":
        return "tickets"
    return "mails" if maker.probe != "none" else "charges"


def stack_tools(specs: Mapping[str, ToolSpec], url: str) -> list[Adapter]:
    """Return the adapters of a world's tools for one provider."""
    short = {name: _short(spec) for name, spec in specs.items()}
    return [
        StackTool(
            adapter_of(spec, short), f"{BASE_URL}/{spec.shelf}", f"{url}/{endpoint_of(spec, short)}"
        )
        for spec in short.values()
    ]


def _short(spec: ToolSpec) -> ToolSpec:
    return replace(
        spec, settle_seconds=SETTLE_SECONDS, call_limit_seconds=CALL_LIMIT_SECONDS,
        park_after_seconds=PARK_AFTER_SECONDS,
    )  # fmt: skip


def write_tools(folder: Path, specs: Mapping[str, ToolSpec], url: str) -> None:
    """Write down what the workers of a run build."""
    document = {"url": url, "tools": [asdict(spec) for spec in specs.values()]}
    (folder / TOOLS_FILE).write_text(json.dumps(document), encoding="utf-8")


def build() -> list[Adapter]:
    """Build the tools of this worker's run."""
    place = Path(os.environ[PLAN_VARIABLE]).with_name(TOOLS_FILE)
    document = json.loads(place.read_text(encoding="utf-8"))
    specs = [ToolSpec(**one) for one in document["tools"]]
    return stack_tools({spec.name: spec for spec in specs}, document["url"])
