"""Plain Python functions as tools: the `@tool` decorator and the adapter it makes.

Decides what can be a tool at all; what a function's end proves stands in `classify_function`,
which arguments it takes in `arguments`. Pure; the calling stands in `shell.function_transport`.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, Protocol, TypeAlias, overload

from ..outbox.contract import Echo, Key, ProbeStrength, ToolContract
from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError
from ..outbox.identity import canonical
from ..outbox.outcome import Accepted, Applied, NotApplied, Outcome, Unknown
from ..outbox.type_variables import P, R, R_co
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
from .results import Results, read_later
from .tool_call import ToolCall
from .values.signatures import Annotations
from .values.strict_json import parse_object

_Outcome: TypeAlias = Applied[R] | Accepted[R] | NotApplied | Unknown
_Value: TypeAlias = R | NotApplied | Unknown
PROBE = "probe"
"""`FunctionCall.purpose` of a harmless look for the effect."""

ProbeFunction = Callable[..., ProbeAnswer | Awaitable[ProbeAnswer]]
Undo = Callable[[CompensationTarget], CompensationPlan | IntentDraft | NoHandle]
Upgrade = Callable[[dict[str, Any], int], Mapping[str, Any]]
"""From stored arguments and the version that they were put with, to those of this version."""


@dataclass(frozen=True, slots=True)
class FunctionProbe:
    """A function that looks for the effect, and what its Absent proves."""

    function: ProbeFunction
    strength: ProbeStrength


def strong(function: ProbeFunction) -> FunctionProbe:
    """Declare a probe that reads every write at once and misses nothing: Absent is proof."""
    return FunctionProbe(function, ProbeStrength.STRONG)


def weak(function: ProbeFunction) -> FunctionProbe:
    """Declare a probe whose Found is proof and whose Absent is not."""
    return FunctionProbe(function, ProbeStrength.WEAK)


class FunctionTool(BaseAdapter, Generic[P, R_co]):
    """A function made a tool. It can still be called directly, as the function it was.

    P are the function's arguments without the call, R is what its annotation says of its result.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        contract: ToolContract,
        probe: FunctionProbe | None,
        compensation: Undo | None,
        upgrade: Upgrade | None = None,
        local_names: Mapping[str, Any] | None = None,
    ) -> None:
        annotations = Annotations(function, local_names)
        self.function = function
        self.upgrade = upgrade
        self.probe_by = probe
        self.undo = compensation
        self.arguments: Arguments = read_signature(contract.tool, function, annotations)
        self.results: Results[R_co] = Results(read_later(contract.tool, annotations.read))
        self.__name__ = getattr(function, "__name__", contract.tool)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._contract = contract

    def __repr__(self) -> str:
        return f"<tool {self.contract.tool} version {self.contract.version}>"

    def __call__(self, call: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function itself, without any bus."""
        return self.function(call, *args, **kwargs)

    @property
    def contract(self) -> ToolContract:
        """The declaration made by the decorator."""
        return self._contract

    def intent(self, /, *args: P.args, **kwargs: P.kwargs) -> IntentDraft[R_co]:
        """Return a draft for `planner.put`. Raises InvalidIntent for arguments it cannot take."""
        return self._draft(self.arguments.by_name(args, kwargs))

    def intent_from_json(self, text: str) -> IntentDraft[R_co]:
        """Return a draft of arguments that a model wrote. Raises InvalidIntent with the path."""
        stored = parse_object(text, "args", int(DEFAULTS.args_limit_bytes))
        return self._draft(self.arguments.decode(stored))

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, for a model to write them by."""
        return self.arguments.json_schema()

    def _draft(self, args: Mapping[str, Any]) -> IntentDraft[R_co]:
        encoded = self.arguments.encode(args)
        contract = self.contract
        return IntentDraft(
            contract.tool, contract.version, contract.lane, *encoded, read_result=self.results.read
        )

    @property
    def oldest_version(self) -> int:
        """The oldest version whose rows can be run: 1 where arguments are upgraded."""
        return self.contract.version if self.upgrade is None else 1

    def upgraded(self, args: Mapping[str, Any], version: int) -> Mapping[str, Any]:
        """Return stored arguments in this version's form. Raises whatever the upgrade raises."""
        if version == self.contract.version or self.upgrade is None:
            return args
        changed = dict(self.upgrade(copy.deepcopy(dict(args)), version))
        canonical(changed, int(DEFAULTS.args_limit_bytes))
        return changed

    def build(self, call: Call) -> None:
        """Check the stored arguments against the signature of the code that runs now."""
        self.arguments.decode(self.upgraded(call.args, call.version))

    def encode(self, call: Call, handle: Any) -> FunctionCall:
        """Return the one call that is the effect.

        It names this version, so that a row sent by another version's code is never sent again
        from here: its digest differs.
        """
        return self._called(call, "effect")

    def _called(self, call: Call, purpose: str) -> FunctionCall:
        args = self.upgraded(call.args, call.version)
        version = self.contract.version
        return FunctionCall(call.tool, version, call.wire_key, args, purpose, context=call)

    def classify(
        self, call: Call, evidence: Evidence, follow_ups: tuple[Evidence, ...]
    ) -> Outcome | Request:
        """Return what the function's end proves."""
        if isinstance(evidence, Returned):
            evidence = Returned(self.results.stored(evidence.value))
        return classify_function(self.contract.echo, call.wire_key, evidence)

    def probe(self, call: Call, answers: tuple[Evidence, ...]) -> Request | ProbeAnswer:
        """Return the call of the declared probe, or what it answered."""
        if self.probe_by is None:
            return BaseAdapter.probe(self, call, answers)
        if not answers:
            return self._called(call, PROBE)
        return _probe_answer(answers[-1])

    def compensation(self, target: CompensationTarget) -> CompensationPlan | NoHandle:
        """Return the declared undo of the target."""
        if self.undo is None:
            return NoHandle()
        plan = self.undo(target)
        if isinstance(plan, IntentDraft):
            return CompensationPlan(
                plan.tool, plan.args, self.contract.ensure_absent, plan.defaults
            )
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
    upgrade: Upgrade | None = None,
) -> ToolDecorator:
    """Turn `def function(call, *, ...)` into a tool. What is not declared is not there.

    `timeout_seconds` is the call limit: past it the outcome is Unknown, while the function runs
    on (an `async def` is cancelled) and what it returns is late evidence. `compensation` maps a
    CompensationTarget to a draft or a plan. `upgrade(args, from_version)` returns the stored
    arguments of an older version's row as this version takes them, the same ones each time.
    Raises ConfigError for what cannot be a tool.
    """
    if not isinstance(name, str):
        raise ConfigError("@tool needs the tool's name", next_step='write @tool("system.action")')
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

    def decorate(function: Callable[..., Any], /) -> FunctionTool[..., Any]:
        _refuse_unrunnable(name, function)
        around = sys._getframe(1)  # Annotations may name what stands in the function around it.
        names = None if around.f_locals is around.f_globals else around.f_locals
        return FunctionTool(function, contract, probe, compensation, upgrade, names)

    return decorate  # type: ignore[return-value]


class ToolDecorator(Protocol):
    """Turns a function into a tool, with the types of its arguments and of its result."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolCall, P], Awaitable[_Outcome[R]]], /
    ) -> FunctionTool[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolCall, P], _Outcome[R]], /
    ) -> FunctionTool[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolCall, P], Awaitable[_Value[R]]], /
    ) -> FunctionTool[P, R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[ToolCall, P], _Value[R]], /
    ) -> FunctionTool[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> FunctionTool[..., Any]:
        """Return the tool. Raises ConfigError for what cannot be one."""


def _refuse_unrunnable(name: str, function: Any) -> None:
    """Raise ConfigError for functions whose call alone runs nothing: a false Applied."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigError(
            f"The function of tool {name} is a generator: calling it runs nothing.",
            next_step="write it as a def or async def that returns when the effect is done",
        )
