"""The tools of the acceptance tests, loaded by workers: `ACKBOX_TOOLS=support_tools:build`.

All of them have their effect at the fake provider named by ACKBOX_TEST_TOOL_URL, which counts on
its own side. Limits are far where no test waits for them, so that no call misses one because the
machine is busy. The tools with a key or a probe are asked again when an attempt is quiet, so theirs
are as short as they can be; `brief` is for the tests of the limits themselves.
"""

import os
import signal
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ackbox.outbox.contract import ProbeStrength, ToolContract
from ackbox.tool_adapters.contract import Adapter, Call, Evidence, Prepared, Request
from ackbox.tool_adapters.fake_tools import FOR_EVER, KEY_HEADER
from ackbox.tool_adapters.function import FunctionTool
from ackbox.tool_adapters.http_json import HttpCompensation, HttpJsonTool
from ackbox.tool_adapters.http_probe import HttpProbe
from ackbox.tool_adapters.tool_call import ToolCall

TOOL_URL = "ACKBOX_TEST_TOOL_URL"
FAR: dict[str, Any] = {"send_deadline_seconds": 20.0, "call_limit_seconds": 40.0}
NEAR: dict[str, Any] = {"send_deadline_seconds": 4.0, "call_limit_seconds": 4.0}
BRIEF: dict[str, Any] = {"send_deadline_seconds": 2.5, "call_limit_seconds": 2.0}
CLOCK_ALLOWANCE_SECONDS = 0.2
SETTLE_SECONDS = 0.3
_LOOK_SECONDS = 0.02
_GATE_SECONDS = 300.0


class ShortTool(HttpJsonTool):
    """A tool over HTTP whose rows become quiet within seconds."""

    @property
    def contract(self) -> ToolContract:
        """Return the declaration with a short allowance between deadlines."""
        declared = super().contract
        return replace(declared, clock_allowance_seconds=CLOCK_ALLOWANCE_SECONDS)


class GatedTool(ShortTool):
    """Stays in executing until the file that its argument `gate` names is there."""

    def prepare(self, call: Call, answers: tuple[Evidence, ...]) -> Request | Prepared:
        """Wait for the gate, if there is one."""
        pass_gate(call.args.get("gate"))
        return Prepared(call.handle)


class PoisonTool(ShortTool):
    """Kills its own process before the mark, every time."""

    def prepare(self, call: Call, answers: tuple[Evidence, ...]) -> Request | Prepared:
        """SIGKILL this process."""
        os.kill(os.getpid(), signal.SIGKILL)
        return Prepared(call.handle)


def pass_gate(gate: Any) -> None:
    """Wait until a file is there; None is an open gate."""
    end_at = time.monotonic() + _GATE_SECONDS
    while gate is not None and not Path(gate).exists() and time.monotonic() < end_at:
        threading.Event().wait(_LOOK_SECONDS)


def charge(call: ToolCall) -> str:
    """Take effect once at the fake provider's keyless endpoint, from inside a function."""
    request = urllib.request.Request(f"{os.environ[TOOL_URL]}/charges", data=b"{}", method="POST")
    request.add_header("Idempotency-Key", call.wire_key)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.status)


def blocking(call: ToolCall, *, gate: str, title: str = "") -> str:
    """Take effect, then run on until the gate opens, whatever the limit says."""
    status = charge(call)
    pass_gate(gate)
    return status


def hogging(call: ToolCall, *, seconds: float) -> str:
    """Take effect, then hold on to the interpreter as far as pure Python can."""
    status = charge(call)
    end_at = time.monotonic() + seconds
    while time.monotonic() < end_at:
        pass
    return status


def _function_tool(name: str, function: Callable[..., str], limits: dict[str, Any]) -> FunctionTool:
    contract = ToolContract(
        name, clock_allowance_seconds=CLOCK_ALLOWANCE_SECONDS, settle_seconds=SETTLE_SECONDS,
        **limits,
    )  # fmt: skip
    return FunctionTool(function, contract, None, None)


def build() -> list[Adapter]:
    """Return every tool, for the provider of this run."""
    url = os.environ[TOOL_URL]
    settle = {"settle_seconds": SETTLE_SECONDS}
    gated = FAR | {"call_limit_seconds": _GATE_SECONDS}
    far, near, brief = FAR | settle, NEAR | settle, BRIEF | settle
    probe = HttpProbe(f"{url}/mails?marker={{marker}}", ProbeStrength.STRONG)
    undo = HttpCompensation("undo", ref_argument="id")
    gone = frozenset({404})
    return [
        ShortTool(tool="keyed", url=f"{url}/tickets", key=FOR_EVER, echo=KEY_HEADER, **near),
        ShortTool(
            tool="probed", url=f"{url}/mails", marker_field="marker", probe_by=probe, **near
        ),
        ShortTool(tool="keyless", url=f"{url}/charges", **far),
        ShortTool(tool="brief", url=f"{url}/charges", **brief),
        ShortTool(tool="strict", url=f"{url}/charges", required=frozenset({"title"}), **far),
        ShortTool(
            tool="undoable", url=f"{url}/tickets", key=FOR_EVER, echo=KEY_HEADER, undo=undo, **far
        ),
        ShortTool(
            tool="undo", url=f"{url}/tickets/{{id}}", method="DELETE", key=FOR_EVER,
            done_statuses=gone, ref_pointer=None, **far,
        ),
        GatedTool(tool="gated", url=f"{url}/charges", **far),
        GatedTool(
            tool="gated_keyed", url=f"{url}/tickets", key=FOR_EVER, echo=KEY_HEADER, **near
        ),
        PoisonTool(tool="poison", url=f"{url}/charges", **far),
        _function_tool("blocking", blocking, BRIEF),
        _function_tool("patient", blocking, gated),
        _function_tool("hogging", hogging, gated),
    ]  # fmt: skip
