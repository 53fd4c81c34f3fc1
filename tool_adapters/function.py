"""Plain Python functions as tools: the `@tool` decorator and the adapter it makes.

Decides what can be a tool at all; what a function's end proves stands in `classify_function`,
which arguments it takes in `arguments`. Pure; the calling stands in `shell.function_transport`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..outbox.contract import Echo, Key, ProbeStrength, ToolContract
from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError
from ..outbox.outcome import Outcome
from .arguments import Arguments, read_signature
from .classify_function import classify_function
from .contract import (
    Absent,
    BaseAdapter,
    Call,
    CompensationPlan,
    CompensationTarget,
    Evidence,
    Found,
    FunctionCall,
    Inconclusive,
    IntentDraft,
    NoHandle,
    ProbeAnswer,
    RaisedError,
    Request,
    Returned,
)

PROBE = "probe"
"""`FunctionCall.purpose` of a harmless look for the effect."""

Undo = Callable[[CompensationTarget], CompensationPlan | IntentDraft | NoHandle]


@dataclass(frozen=True, slots=True)
class FunctionProbe:
    """A function that looks for the effect, and what its Absent proves."""

    function: Callable[..., ProbeAnswer]
    strength: ProbeStrength


def strong(function: Callable[..., ProbeAnswer]) -> FunctionProbe:
    """Declare a probe that reads every write at once and misses nothing: Absent is proof."""
    return FunctionProbe(function, ProbeStrength.STRONG)


def weak(function: Callable[..., ProbeAnswer]) -> FunctionProbe:
    """Declare a probe whose Found is proof and whose Absent is not."""
    return FunctionProbe(function, ProbeStrength.WEAK)


class ToolCall:
    """What a function tool may know of the call it runs for, besides its arguments."""

    __slots__ = ("_call", "_remaining")

    def __init__(self, call: Call, remaining: Callable[[], float]) -> None:
        self._call = call
        self._remaining = remaining

    @property
    def wire_key(self) -> str:
        """The Idempotency-Key to send along: the same for every send of this intent."""
        return self._call.wire_key

    @property
    def namespace(self) -> str:
        """The tenant."""
        return self._call.namespace

    @property
    def intent_id(self) -> str:
        """The intent's id."""
        return self._call.intent_id

    @property
    def generation(self) -> int:
        """The step's version that this intent is for."""
        return self._call.generation

    @property
    def sends(self) -> int:
        """Send marks so far, this one included."""
        return self._call.sends

    @property
    def compensates(self) -> CompensationTarget | None:
        """What this call undoes, if it is a compensation."""
        return self._call.compensates

    @property
    def traceparent(self) -> str | None:
        """W3C trace context of the planner's step."""
        return self._call.traceparent

    @property
    def remaining_seconds(self) -> float:
        """Time left of the call limit; give it to whatever waits on the network."""
        return self._remaining()


class FunctionTool(BaseAdapter):
    """A function made a tool. It can still be called directly, as the function it was."""

    def __init__(
        self,
        function: Callable[..., Any],
        contract: ToolContract,
        probe: FunctionProbe | None,
        compensation: Undo | None,
    ) -> None:
        self.function = function
        self.probe_by = probe
        self.undo = compensation
        self.arguments: Arguments = read_signature(contract.tool, function)
        self.__name__ = getattr(function, "__name__", contract.tool)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._contract = contract

    def __repr__(self) -> str:
        return f"<tool {self.contract.tool} version {self.contract.version}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without any bus."""
        return self.function(*args, **kwargs)

    @property
    def contract(self) -> ToolContract:
        """The declaration made by the decorator."""
        return self._contract

    def intent(self, /, **args: Any) -> IntentDraft:
        """Return a draft for `planner.put`. Raises InvalidIntent for arguments it cannot take."""
        given = self.arguments.encode(args)
        left_out = {k: v for k, v in self.arguments.defaults.items() if k not in given}
        return IntentDraft(
            self.contract.tool, self.contract.version, self.contract.lane, given, left_out
        )

    def build(self, call: Call) -> None:
        """Check the stored arguments against the signature of the code that runs now."""
        self.arguments.decode(call.args)

    def encode(self, call: Call, handle: Any) -> FunctionCall:
        """Return the one call that is the effect."""
        return FunctionCall(call.tool, call.version, call.wire_key, call.args, context=call)

    def classify(
        self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]
    ) -> Outcome | Request:
        """Return what the function's end proves."""
        return classify_function(self.contract.echo, call.wire_key, evidence)

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Return the call of the declared probe, or what it answered."""
        if self.probe_by is None:
            return BaseAdapter.probe(self, call, answers)
        if not answers:
            return FunctionCall(
                call.tool, call.version, call.wire_key, call.args, purpose=PROBE, context=call
            )
        return _probe_answer(answers[-1])

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Return the declared undo of the target."""
        if self.undo is None:
            return NoHandle()
        plan = self.undo(target)
        if isinstance(plan, IntentDraft):
            return CompensationPlan(plan.tool, plan.args, self.contract.ensure_absent)
        return plan


def _probe_answer(evidence: Evidence) -> ProbeAnswer:
    if isinstance(evidence, Returned) and isinstance(evidence.value, Found | Absent | Inconclusive):
        return evidence.value
    if isinstance(evidence, RaisedError):
        return Inconclusive(f"the probe raised {evidence.error_type}")
    return Inconclusive(f"the probe ended as {type(evidence).__name__}")


def tool(
    name: str,
    *,
    version: int = 1,
    lane: str = "default",
    timeout_seconds: float = DEFAULTS.call_limit_seconds,
    key: Key | None = None,
    probe: FunctionProbe | None = None,
    echo: Echo = Echo.NONE,
    settle_seconds: float = DEFAULTS.settle_seconds,
    send_deadline_seconds: float = DEFAULTS.send_deadline_seconds,
    max_sends: int = DEFAULTS.max_sends,
    max_resends: int = DEFAULTS.max_resends,
    max_probes: int = DEFAULTS.max_probes,
    park_after_seconds: float = DEFAULTS.park_after_seconds,
    compensation: Undo | None = None,
    ensure_absent: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]:
    """Turn `def function(call, *, ...)` into a tool. What is not declared is not there.

    `timeout_seconds` is the call limit: past it the outcome is Unknown, while the function runs
    on and what it returns is late evidence. `compensation` maps a CompensationTarget to a draft
    or a plan. Raises ConfigError for what cannot be a tool.
    """
    contract = ToolContract(
        tool=name,
        version=version,
        lane=lane,
        key=key or Key(),
        probe=ProbeStrength.NONE if probe is None else probe.strength,
        echo=echo,
        settle_seconds=settle_seconds,
        call_limit_seconds=timeout_seconds,
        send_deadline_seconds=send_deadline_seconds,
        max_sends=max_sends,
        max_resends=max_resends,
        max_probes=max_probes,
        park_after_seconds=park_after_seconds,
        ensure_absent=ensure_absent,
        compensates=compensation is not None,
    )

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        _refuse_unrunnable(name, function)
        return FunctionTool(function, contract, probe, compensation)

    return decorate


def _refuse_unrunnable(name: str, function: Any) -> None:
    """Raise ConfigError for functions whose call alone runs nothing: a false Applied."""
    runs_later = (
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
        inspect.isgeneratorfunction,
    )
    if any(check(function) for check in runs_later):
        raise ConfigError(
            f"The function of tool {name} is async or a generator: calling it runs nothing.",
            next_step="write it as a plain def that returns when the effect is done",
        )
