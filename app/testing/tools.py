"""The tools of a memory bus: the shipped driver and adapters, with answers that a test may script.

Adapters are asked, functions are called and lifespans opened by what a worker process has for it;
only HTTP is never spoken. Composition.
"""

from __future__ import annotations

import copy
import inspect
import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from typing import Any

from ...outbox.commands import Claimed
from ...outbox.defaults import Limits, broken_constraints
from ...outbox.errors import ConfigError, InvalidIntent
from ...outbox.outcome import Outcome
from ...sim.clock import VirtualClock
from ...sim.tools import VirtualTools
from ...tool_adapters.bounded import bounded
from ...tool_adapters.contract import Adapter, Evidence, HttpRequest
from ...tool_adapters.function import FunctionTool
from ...tool_adapters.registry import Tools
from ...tool_adapters.shell.function_transport import FunctionTransport
from ...tool_adapters.shell.http_transport import HttpTransport
from ...workers.commands import Classify, Probe
from ...workers.shell.tool_driver import ToolDriver
from .answers import Answers, Concluded, Script, took_effect
from .ledger import Ledger

INSIDE: ContextVar[bool] = ContextVar("ackbox_testing_inside", default=False)
"""Whether this code was called by a bus: a tool's function, or a callback."""


class BusTools(VirtualTools):
    """The tools as the world of the simulator sees them: their answers are given beforehand."""

    def __init__(self, registry: Tools, clock: VirtualClock) -> None:
        super().__init__((), clock)
        self.registry = registry
        names = [contract.tool for contract in registry.contracts()]
        latest = {name: registry.latest(name) for name in names}
        self.adapters = {name: one for name, one in latest.items() if one is not None}
        self.answer: Any = None
        """What the request that arrives next left behind."""

    def arrive(self, tool: str, seq: int, request: HttpRequest, fate: str = "ok") -> Any:
        """Return the answer that was given beforehand."""
        self.requests += 1
        answer, self.answer = self.answer, None
        return answer

    def read(self, tool: str, request: HttpRequest) -> Any:
        """Return the answer that was given beforehand."""
        return self.arrive(tool, 0, request)


class BusDriver(ToolDriver):
    """A worker's driver whose tools may have answers from a test."""

    def __init__(self, registry: Tools, limits: Limits, answers: Answers, ledger: Ledger) -> None:
        super().__init__(registry, limits, HttpTransport(_never_used()))
        self._functions = FunctionTransport(self._lookup, self._loop, self._resources.finder)
        self._answers = answers
        self._ledger = ledger
        self._script: Script | None = None

    # -- asking ------------------------------------------------------------------------------------

    def ask(self, command: Any) -> Any:
        """Return an adapter's reply to a command that sends nothing."""
        adapter = self.adapter(command.claim)
        if adapter is not None and isinstance(command, Classify | Probe):
            if isinstance(command, Classify) and isinstance(command.evidence, Concluded):
                outcome: Outcome = bounded(
                    command.evidence.outcome, self._limits.result_limit_bytes
                )
                return outcome
            if isinstance(command, Probe) and self._ledger.answers_for(command.claim.wire_key):
                return self._ledger.probe(command.claim.wire_key, adapter.contract)
        return self.answer(command, self.timing(), lambda evidence: None)

    # -- sending -----------------------------------------------------------------------------------

    def effect(self, claim: Claimed, request: Any, now: datetime) -> Any:
        """Send the effect once, count it, and return how it ended."""
        adapter = self.adapter(claim)
        assert adapter is not None, "the request was built by it"
        script = self._answers.next(claim.tool)
        evidence = self._sent(adapter, request, script)
        said = None if script is None else script.took_effect
        happened = took_effect(evidence, said)
        answer = getattr(evidence, "value", getattr(evidence, "outcome", None))
        self._ledger.note(
            claim, adapter.contract, self._args(adapter, claim), now, happened, answer,
            scripted=script is not None,
        )  # fmt: skip
        return evidence

    def read(self, claim: Claimed, request: Any) -> Any:
        """Make one harmless read."""
        adapter = self.adapter(claim)
        assert adapter is not None, "the request was built by it"
        script = self._answers.standing(claim.tool) if isinstance(request, HttpRequest) else None
        return self._sent(adapter, request, script)

    def _sent(self, adapter: Adapter, request: Any, script: Script | None) -> Any:
        if isinstance(request, HttpRequest):
            if script is None:
                raise _speaks_http(adapter.contract.tool)
            return script.http(request)
        seconds = adapter.contract.call_limit_seconds
        self._script = script if request.purpose == "effect" else None
        return self._exchange(request, None, seconds, _ignore)

    def _lookup(self, tool: str, version: int) -> Any:
        """Return the adapter to call, with what the test has run in its function's place."""
        adapter = self._registry.lookup(tool, version)
        if not isinstance(adapter, FunctionTool):
            return adapter
        called = copy.copy(adapter)
        called.function = _marked(self._script.function() if self._script else adapter.function)
        if adapter.probe_by is not None:
            probe = _marked(adapter.probe_by.function)
            called.probe_by = replace(adapter.probe_by, function=probe)
        return called

    @staticmethod
    def _args(adapter: Adapter, claim: Claimed) -> Mapping[str, Any]:
        return decoded(adapter, claim.args, claim.version)


def checked_tools(registry: Tools, limits: Limits) -> Tools:
    """Return the tools. Raises ConfigError for what no worker would start with."""
    problems = [*broken_constraints(limits), *registry.problems(limits)]
    if problems:
        raise ConfigError("; ".join(problems), next_step="change the tool's declaration")
    return registry


def decoded(adapter: Adapter | None, args: Mapping[str, Any], version: int) -> Mapping[str, Any]:
    """Return stored arguments as a tool's function gets them; as stored where there is none."""
    if not isinstance(adapter, FunctionTool):
        return args
    try:
        return adapter.arguments.decode(adapter.upgraded(args, version))
    except InvalidIntent:
        return args


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a mark on the context that it runs in; `async def` stays that."""
    if inspect.iscoroutinefunction(function):

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            INSIDE.set(True)
            return await function(*args, **kwargs)

        return awaited

    def called(*args: Any, **kwargs: Any) -> Any:
        INSIDE.set(True)
        return function(*args, **kwargs)

    return called


def _never_used() -> ssl.SSLContext:
    """Return a context that has read no certificates: that takes longer than a whole test."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _ignore(evidence: Evidence) -> None:
    """A function that returns after its limit: nobody waits any more."""


def _speaks_http(tool: str) -> ConfigError:
    return ConfigError(
        f"tool {tool} speaks HTTP, and a bus in memory has no network",
        next_step=f"say what it answers: bus.answer({tool!r}, HttpAnswer(201, {{...}}))",
    )
