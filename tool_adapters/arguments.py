"""Arguments of a function tool: which names its signature takes, and their stored JSON form.

Decides whether a caller's arguments are legal, before anything is stored, so that a worker never
meets a call that the function cannot take. Pure: `outbox` and the standard library. Only JSON
types pass here; richer annotations belong into `encode_value` and `decode_value`, both of which
already see the annotation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..outbox.defaults import DEFAULTS
from ..outbox.errors import ConfigError, InvalidIntent
from ..outbox.identity import canonical

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The argument names of one function tool."""

    tool: str
    annotations: Mapping[str, Any]
    required: frozenset[str]
    defaults: Mapping[str, Any]
    takes_any_name: bool

    def encode(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given arguments in their stored form.

        Raises InvalidIntent with the path of the first missing, unknown or unfit argument.
        """
        self.check_names(given)
        encoded = {
            name: encode_value(value, f"args.{name}", self.annotations.get(name))
            for name, value in given.items()
        }
        canonical(encoded, int(DEFAULTS.args_limit_bytes))
        return encoded

    def decode(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them. Raises InvalidIntent on wrong names."""
        self.check_names(stored)
        return {
            name: decode_value(value, self.annotations.get(name)) for name, value in stored.items()
        }

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Raise InvalidIntent unless every required name is there and every name is known."""
        missing = sorted(self.required - set(given))
        if missing:
            raise self._refusal(missing[0], "is required and missing")
        known = self.annotations.keys()
        unknown = [] if self.takes_any_name else sorted(map(str, set(given) - known))
        if unknown:
            raise self._refusal(unknown[0], "is no argument of this tool")

    def _refusal(self, name: str, problem: str) -> InvalidIntent:
        names = ", ".join(self.annotations) or "none"
        return InvalidIntent(
            f"args.{name}: {problem} ({self.tool})",
            next_step=f"put again; the tool's arguments are: {names}",
        )


def encode_value(value: Any, path: str, annotation: Any) -> Any:
    """Return a JSON value for storage; raises InvalidIntent with the path of what is none.

    The annotation decides nothing yet: JSON types stand for themselves.
    """
    canonical(value, int(DEFAULTS.args_limit_bytes), path)
    return _plain(value)


def decode_value(value: Any, annotation: Any) -> Any:
    """Return the stored JSON value as the function takes it."""
    return value


def _plain(value: Any) -> Any:
    """Copy, with tuples as lists: what comes back from storage must equal what was stored."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def read_signature(tool: str, function: Callable[..., Any]) -> Arguments:
    """Return the arguments of `def function(call, *, name, ...)`.

    Raises ConfigError for a function that cannot be called with its arguments by name.
    """
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise _unfit(tool, "must take the call as its first positional parameter")
    others = parameters[1:]
    named = [parameter for parameter in others if parameter.kind in _NAMED]
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in others)
    if len(named) + open_ended != len(others):
        raise _unfit(tool, "must take every argument by name")
    return Arguments(
        tool=tool,
        annotations={parameter.name: parameter.annotation for parameter in named},
        required=frozenset(p.name for p in named if p.default is p.empty),
        defaults=_defaults(tool, named),
        takes_any_name=open_ended,
    )


def _defaults(tool: str, named: list[inspect.Parameter]) -> dict[str, Any]:
    found = {}
    for parameter in named:
        if parameter.default is parameter.empty:
            continue
        try:
            found[parameter.name] = encode_value(parameter.default, parameter.name, None)
        except InvalidIntent as error:
            raise _unfit(tool, f"has a default that is no JSON value: {error.what}") from error
    return found


def _unfit(tool: str, problem: str) -> ConfigError:
    return ConfigError(
        f"The function of tool {tool} {problem}.",
        next_step="write it as def function(call, *, name, ...) with JSON defaults",
    )
