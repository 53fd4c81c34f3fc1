"""What a function tool gets as its first argument.

Decides nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..outbox.errors import ConfigError
from .contract import Call, CompensationTarget

Resource = TypeVar("Resource")


class ToolCall:
    """What a function tool may know of the call it runs for, besides its arguments."""

    __slots__ = ("_call", "_find", "_remaining")

    def __init__(
        self,
        call: Call,
        remaining: Callable[[], float],
        find: Callable[[type[Any]], Any] | None = None,
    ) -> None:
        self._call = call
        self._remaining = remaining
        self._find = find

    def resource(self, kind: type[Resource]) -> Resource:
        """Return what the lifespan of the tool's `Tools(..., lifespan=...)` opened, by its type.

        The exact type first, then a subclass. Raises ConfigError where there is none: inside a
        call that is an unknown outcome, like any error.
        """
        if self._find is None:
            raise ConfigError(
                f"no lifespan is open for tool {self._call.tool}",
                next_step="give Tools(..., lifespan=...) one that yields it",
                code="no_resource",
            )
        found: Resource = self._find(kind)
        return found

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
