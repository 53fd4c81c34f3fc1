"""Runs a pass (a generator of the pure core) against the production store and the bus.

Decides nothing: each command type has one handler. Shell.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeVar

Answer = TypeVar("Answer")
Handlers = Mapping[type[Any], Callable[[Any], Any]]


def run_pass(steps: Generator[Any, Any, Answer], handlers: Handlers) -> Answer:
    """Drive a pass to its end and return what it returned. KeyError: no handler for a command."""
    reply: Any = None
    while True:
        try:
            command = steps.send(reply)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer
        reply = handlers[type(command)](command)
