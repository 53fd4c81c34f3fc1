"""The type variables of what planners and tools type: a tool's arguments and its result.

Decides that a class written without its type argument means `Any`. Type checkers read that default
from `typing_extensions`; at run time the standard library's variables do. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    R_co = TypeVar("R_co", covariant=True)

__all__ = ["P", "R", "R_co"]
