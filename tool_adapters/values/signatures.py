"""Reading a function's signature: its parameters by name, each annotation by itself.

Decides that annotations are read as late as needed: a name that only type checkers import, or one
that is defined further down, is no fault until a value meets it. Pure.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature without evaluating its annotations."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _words(annotation: Any) -> list[str]:
    return re.findall(r"\w+", annotation) if isinstance(annotation, str) else []


class Annotations:
    """The annotations of one function, evaluated one by one."""

    def __init__(self, function: Callable[..., Any], local_names: Mapping[str, Any] | None) -> None:
        signature = signature_of(function)
        self._raw: dict[str, Any] = {
            name: parameter.annotation for name, parameter in signature.parameters.items()
        }
        self._raw["return"] = signature.return_annotation
        self._globals = getattr(inspect.unwrap(function), "__globals__", {})
        written = {word for one in self._raw.values() for word in _words(one)}
        self._locals = {n: one for n, one in (local_names or {}).items() if n in written}

    def read(self, name: str) -> Any:
        """Return what the annotation of a parameter, or of `return`, means; Any without one.

        Raises NameError where it names something that is not defined.
        """
        raw = self._raw[name]
        if raw is inspect.Parameter.empty:
            return Any
        holder: Any = types.SimpleNamespace(__annotations__={name: raw})
        hints = typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)
        return hints[name]
