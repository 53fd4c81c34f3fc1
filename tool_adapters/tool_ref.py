"""A tool whose code lives elsewhere, by its name and the types of its arguments and result.

Decides nothing that the tool's own process would decide otherwise: the same rules store the
arguments as a function tool's signature. Pure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, overload

from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError, InvalidIntent
from ..outbox.intent import check_lane, check_tool
from ..outbox.type_variables import P, R_co
from .arguments import Encoded
from .contract import IntentDraft
from .results import Results, annotated
from .values.annotations import rule_for
from .values.json_schema import whole_schema
from .values.models import ModelRule, validated
from .values.place import Misfit, Place, Rule
from .values.records import DataclassRule, TypedDictRule, made
from .values.round_trip import round_trip
from .values.strict_json import parse_object

_ROOT = "args"


class ToolRef(Generic[P, R_co]):
    """Names a tool: `ToolRef("tickets.create", args=TicketArgs, result=Ticket)`.

    `args` is a dataclass, a typed dict or a pydantic model whose fields are the tool's arguments;
    `result` is what the tool's annotation says it returns.
    """

    @overload
    def __init__(
        self,
        tool: str,
        *,
        args: Callable[P, object],
        result: type[R_co] = ...,
        version: int = ...,
        lane: str = ...,
    ) -> None: ...
    @overload
    def __init__(
        self: ToolRef[..., R_co],
        tool: str,
        *,
        args: type[Any] = ...,
        result: type[R_co] = ...,
        version: int = ...,
        lane: str = ...,
    ) -> None: ...
    def __init__(
        self,
        tool: str,
        *,
        args: Any = dict,
        result: Any = Any,
        version: int = 1,
        lane: str = "default",
    ) -> None:
        """Raise InvalidIntent for a name that no tool has, ConfigError for types without a rule."""
        check_tool(tool, version)
        check_lane(lane)
        self.tool = tool
        self.version = version
        self.lane = lane
        self._args: Any = args
        self._rule = _record_rule(tool, args)
        self.results: Results[R_co] = Results(annotated(result))

    def __repr__(self) -> str:
        return f"ToolRef({self.tool!r}, version={self.version})"

    def intent(self, /, *args: P.args, **kwargs: P.kwargs) -> IntentDraft[R_co]:
        """Return a draft for `planner.put`. Raises InvalidIntent for arguments it cannot take."""
        try:
            return self._draft(self._made(args, kwargs))
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit

    def intent_from_json(self, text: str) -> IntentDraft[R_co]:
        """Return a draft of arguments that a model wrote. Raises InvalidIntent with the path."""
        stored = parse_object(text, _ROOT, int(DEFAULTS.args_limit_bytes))
        try:
            return self._draft(self._rule.decode(stored, Place(_ROOT)))
        except Misfit as misfit:
            raise self._refusal(misfit) from misfit

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments, for a model to write them by."""
        return whole_schema(self.tool, self._rule.schema)

    def _made(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        make, place = self._args, Place(_ROOT)
        if isinstance(self._rule, ModelRule):
            self._rule.check_names(kwargs, place)
            return validated(lambda: make(*args, **kwargs), place)
        if isinstance(self._rule, DataclassRule):
            try:
                inspect.signature(make).bind(*args, **kwargs)
            except TypeError as error:
                raise Misfit(place, str(error)) from None
        return made(make, place, args, kwargs)

    def _draft(self, args: Any) -> IntentDraft[R_co]:
        stored, given = round_trip(self._rule, args, Place(_ROOT))
        encoded = Encoded.of(given, stored)
        return IntentDraft(
            self.tool, self.version, self.lane, *encoded, read_result=self.results.read
        )

    def _refusal(self, misfit: Misfit) -> InvalidIntent:
        return misfit.refusal(f" ({self.tool})")


def _record_rule(tool: str, args: Any) -> Rule:
    rule = rule_for(args)
    if args is not dict and not isinstance(rule, DataclassRule | TypedDictRule | ModelRule):
        raise ConfigError(
            f"The arguments of tool {tool} are no dataclass, typed dict or pydantic model.",
            next_step="declare the arguments as the fields of one",
        )
    return rule
