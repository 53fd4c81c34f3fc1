"""Answers an attempt's adapter and wire commands: calls the adapter, performs the exchanges.

Decides nothing about outcomes. A user's adapter may raise anywhere: that is the reply `Raised`.
Shell; the transports bring their own threads and sockets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from ...outbox.commands import Claimed
from ...outbox.contract import ProbeStrength
from ...outbox.defaults import Limits
from ...outbox.errors import InvalidIntent
from ...outbox.outcome import Accepted, Applied, NotApplied, Unknown
from ...tool_adapters.bounded import bounded
from ...tool_adapters.contract import (
    Absent,
    Adapter,
    Call,
    Evidence,
    Found,
    FunctionCall,
    HttpRequest,
    Inconclusive,
    NotWritten,
    Prepared,
)
from ...tool_adapters.registry import Tools
from ...tool_adapters.shell.boottime import boottime_seconds
from ...tool_adapters.shell.event_loop import ToolLoop
from ...tool_adapters.shell.function_run import place_of
from ...tool_adapters.shell.function_transport import FunctionTransport
from ...tool_adapters.shell.http_transport import HttpTransport
from ...tool_adapters.shell.resources import Resources
from ..calling import call_of
from ..commands import Build, Classify, Encode, Exchange, Fetch, NoTool, Prepare, Probe, Raised

_log = structlog.get_logger(__name__)
Late = Callable[[Evidence], None]
"""What is told when a function returns although its attempt has stopped waiting."""
_REQUEST = (HttpRequest, FunctionCall)
_ANSWERS: dict[type[Any], tuple[type[Any], ...]] = {
    Build: (type(None),),
    Prepare: (Prepared, *_REQUEST),
    Encode: _REQUEST,
    Classify: (Applied, Accepted, NotApplied, Unknown, *_REQUEST),
    Probe: (Found, Absent, Inconclusive, *_REQUEST),
}
"""What an adapter may answer; anything else would break the procedure that goes on with it."""


@dataclass(slots=True)
class Timing:
    """Deadlines of one attempt on the boot-time clock, in seconds."""

    prepare_by: float
    send_by: float | None = None


class ToolDriver:
    """The adapters and transports of one process, and the resources of its tools."""

    def __init__(self, registry: Tools, limits: Limits, http: HttpTransport | None = None) -> None:
        """Open the lifespans. Raises ConfigError naming the one that cannot be opened."""
        self._registry = registry
        self._limits = limits
        self._loop = ToolLoop()
        self._resources = Resources(registry, self._loop)
        self._http = http or HttpTransport()
        self._functions = FunctionTransport(registry.lookup, self._loop, self._resources.finder)

    def close(self) -> None:
        """End calls in flight, then close what they used; their rows are the reaper's."""
        self._loop.cancel_all()
        self._resources.close()
        self._functions.close()
        self._http.close()

    @property
    def hang_seconds(self) -> float:
        """How long an adapter's own code may take before somebody has to look at it."""
        return self._limits.prepare_limit_seconds

    def adapter(self, claim: Claimed) -> Adapter | None:
        """Return the adapter that a claimed row needs, None where this process lacks it."""
        return self._registry.lookup(claim.tool, claim.version)

    def timing(self) -> Timing:
        """Start the clock of an attempt's harmless requests."""
        return Timing(boottime_seconds() + self._limits.prepare_limit_seconds)

    def start_send(self, claim: Claimed, timing: Timing) -> None:
        """Start the send deadline; called before the mark is asked for."""
        adapter = self.adapter(claim)
        seconds = adapter.contract.send_deadline_seconds if adapter else 0.0
        timing.send_by = boottime_seconds() + seconds

    def answer(self, command: Any, timing: Timing, on_late: Late) -> Any:
        """Return the reply to one adapter or wire command."""
        adapter = self.adapter(command.claim)
        if adapter is None:
            return NoTool()
        match command:
            case Fetch(request=request):
                return self._fetch(adapter, request, timing)
            case Exchange(request=request):
                seconds = adapter.contract.call_limit_seconds
                return self._exchange(request, timing.send_by, seconds, on_late)
        return self._ask(adapter, command, timing)

    def _ask(self, adapter: Adapter, command: Any, timing: Timing) -> Any:
        try:
            answer = self._answer_of(adapter, command, timing)
        except NotApplied as outcome:
            return Raised("NotApplied", outcome=self._storable(outcome))
        except InvalidIntent as error:
            # Its text names a path and never a value; the place would be the codec's own.
            answer = Raised("InvalidIntent", error.what)
        except BaseException as error:  # noqa: BLE001 - a tool author's code: raising is an answer
            # SystemExit and a cancellation too: they would end the thread that all attempts share.
            answer = Raised(type(error).__name__, place_of(error))
        if not isinstance(answer, (*_ANSWERS[type(command)], Raised)):
            answer = Raised("BadAnswer", f"{type(command).__name__} got {type(answer).__name__}")
        if isinstance(answer, Raised):
            _log_raised(command, answer)
        return answer

    def _answer_of(self, adapter: Adapter, command: Any, timing: Timing) -> Any:
        call = call_of(command.claim)
        match command:
            case Build():
                adapter.build(call)
                return None
            case Prepare(answers=answers):
                if boottime_seconds() > timing.prepare_by:
                    return Raised("PrepareLimit")
                return adapter.prepare(call, answers)
            case Encode(handle=handle):
                return adapter.encode(call, handle)
            case Classify(evidence=evidence, follow_ups=follow_ups):
                return self._storable(adapter.classify(call, evidence, follow_ups))
            case Probe(answers=answers):
                return self._storable(_as_stamped(adapter, call, adapter.probe(call, answers)))
        raise TypeError(f"no such command: {type(command).__name__}")

    def _storable(self, answer: Any) -> Any:
        return bounded(answer, self._limits.result_limit_bytes)

    def _fetch(self, adapter: Adapter, request: Any, timing: Timing) -> Evidence:
        left_seconds = adapter.contract.call_limit_seconds
        if timing.send_by is None:
            left_seconds = min(left_seconds, timing.prepare_by - boottime_seconds())
        if left_seconds <= 0:
            return NotWritten("prepare limit passed")
        return self._exchange(request, None, left_seconds, lambda evidence: None)

    def _exchange(
        self, request: Any, send_by: float | None, limit_seconds: float, on_late: Late
    ) -> Evidence:
        if isinstance(request, HttpRequest):
            return self._http.exchange(
                request, send_by_boottime=send_by, limit_seconds=limit_seconds,
                response_limit_bytes=16 * self._limits.result_limit_bytes,
            )  # fmt: skip
        assert isinstance(request, FunctionCall)
        return self._functions.exchange(
            request, send_by_boottime=send_by, limit_seconds=limit_seconds, on_late=on_late
        )


def _log_raised(command: Any, raised: Raised) -> None:
    """Say why a call cannot be prepared or understood: the row itself keeps a code only."""
    claim: Claimed = command.claim
    _log.warning(
        "adapter_raised", tool=claim.tool, version=claim.version, namespace=claim.namespace,
        intent_id=claim.intent_id, method=type(command).__name__.lower(),
        error=raised.error_type, where=raised.where,
    )  # fmt: skip


def _as_stamped(adapter: Adapter, call: Call, answer: Any) -> Any:
    """Return a probe's answer as proof that the row's own declaration may count on.

    Rows are judged by the declaration that their claim stamped. Where another version's code
    answers, and its own declaration promises less, its Absent is none.
    """
    own = adapter.contract
    if call.version == own.version or own.probe is ProbeStrength.STRONG:
        return answer
    return Inconclusive("another version's weak probe") if isinstance(answer, Absent) else answer
