"""A tool's result: stored by the return annotation, and read by it where the planner is told.

Decides that the effect is never doubted for its result: what the annotation cannot store goes on as
it is, to be stored by its value or left out with its digest. Pure.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, reduce
from operator import or_
from typing import Any, Generic, Union, get_args, get_origin

from ..outbox.errors import ConfigError, InvalidIntent
from ..outbox.outcome import Accepted, Applied, NotApplied, Unknown
from ..outbox.type_variables import R_co
from .values.annotations import rule_for
from .values.place import Misfit, Place, Rule

_ROOT = "result"
_WITH_RESULT = (Applied, Accepted)
_WITHOUT_RESULT = (NotApplied, Unknown)


class Results(Generic[R_co]):
    """The results of one tool. The annotation is read at the first result, not before."""

    def __init__(self, annotation: Callable[[], Any]) -> None:
        self._annotation = annotation

    @cached_property
    def _rule(self) -> Rule:
        return rule_for(result_annotation(self._annotation()))

    def stored(self, value: Any) -> Any:
        """Return what a function returned, its result as JSON where the annotation allows it.

        Whatever goes wrong here leaves the value as it is: the effect stands without it.
        """
        try:
            if isinstance(value, _WITHOUT_RESULT) or _is_no_value(value):
                return value
            if not isinstance(value, _WITH_RESULT):
                return Applied(result=self._rule.encode(value, Place(_ROOT)))
            if value.result is None:
                return value
            return replace(value, result=self._rule.encode(value.result, Place(_ROOT)))
        except Exception:  # noqa: BLE001 - a tool's own object: whatever it raises
            return value

    def read(self, stored: Any, /) -> R_co:
        """Return the result as annotated. Raises InvalidIntent where the JSON is none of it."""
        try:
            result: R_co = self._rule.decode(stored, Place(_ROOT))
        except Misfit as misfit:
            raise misfit.refusal() from misfit
        except Exception as error:  # noqa: BLE001 - a user's own class: whatever it raises
            # A traceback that showed it would show what the user's own code says of the values.
            raise _unreadable(error) from None
        return result


def _unreadable(error: Exception) -> InvalidIntent:
    return InvalidIntent(
        f"{_ROOT}: reading it raised {type(error).__name__}",
        next_step="read the stored result: told.as_dict()",
    )


def annotated(annotation: Any) -> Callable[[], Any]:
    """Return the annotation to be read later: it is there already."""
    return lambda: annotation


def read_later(tool: str, read: Callable[[str], Any]) -> Callable[[], Any]:
    """Return a signature's return annotation, to be read later."""

    def annotation() -> Any:
        try:
            return read("return")
        except NameError as error:
            raise ConfigError(
                f"The function of tool {tool} returns a type that is not defined: {error}.",
                next_step="import the type where the function stands",
            ) from error

    return annotation


def result_annotation(annotation: Any) -> Any:
    """Return the result's own annotation: outcomes that a tool may return instead are taken off."""
    origin = get_origin(annotation)
    if origin in _WITH_RESULT:
        return get_args(annotation)[0]
    if annotation in _WITH_RESULT:
        return Any
    if origin not in (Union, types.UnionType):
        return annotation
    parts = [result_annotation(one) for one in get_args(annotation) if one not in _WITHOUT_RESULT]
    return reduce(or_, parts) if parts and Any not in parts else Any


def _is_no_value(value: Any) -> bool:
    """Return whether a return is a slip: a class, an exception, or something that never ran."""
    never_ran = inspect.isawaitable(value) or inspect.isgenerator(value)
    return never_ran or inspect.isasyncgen(value) or isinstance(value, type | BaseException)
