"""What a test has a tool answer, in order; a tool that was told nothing really runs.

Decides what an answer may be and whether it means that the effect happened. Pure, but for the
functions that a test gives.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...outbox.errors import ConfigError
from ...outbox.outcome import Accepted, Applied, NotApplied, Outcome, Unknown
from ...tool_adapters.classify_function import outcome_of
from ...tool_adapters.contract import (
    Evidence,
    HttpEvidence,
    HttpRequest,
    NotWritten,
    Phase,
    RaisedOutcome,
    Returned,
)

_OUTCOMES = (Applied, Accepted, NotApplied, Unknown)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answers, for a tool that speaks HTTP: a status and a JSON document."""

    status: int
    document: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def evidence(self) -> HttpEvidence:
        """Return what the exchange left behind."""
        body = b"" if self.document is None else json.dumps(self.document).encode()
        headers = tuple(self.headers.items())
        return HttpEvidence(Phase.COMPLETE, self.status, headers, body, framing_complete=True)


@dataclass(frozen=True, slots=True)
class Concluded:
    """Evidence of a tool that is no function: what the test says its adapter concludes."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Script:
    """One answer. `took_effect` says what an unknown outcome really was; None: nobody knows."""

    answer: Any = field(repr=False)
    took_effect: bool | None = None

    def __post_init__(self) -> None:
        known = isinstance(self.answer, Applied | Accepted | NotApplied)
        if known and self.took_effect is not None:
            raise ConfigError(
                f"an answer of {type(self.answer).__name__} says by itself whether it took effect",
                next_step="leave took_effect out, or answer with what leaves it open: an error",
            )

    def function(self) -> Callable[..., Any]:
        """Return what runs in a function tool's place."""
        answer = self.answer
        if callable(answer) and not isinstance(answer, type):
            return answer  # type: ignore[no-any-return]
        if isinstance(answer, BaseException) or _is_error_type(answer):
            return _raising(answer)
        return lambda *_, **__: answer

    def http(self, request: HttpRequest) -> Any:
        """Return the evidence of an HTTP exchange. Raises ConfigError for what is no answer."""
        answer = self.answer
        if callable(answer) and not isinstance(answer, type):
            answer = _called(answer, request)
        if _is_error_type(answer):
            answer = answer()
        if isinstance(answer, HttpAnswer):
            return answer.evidence()
        if isinstance(answer, HttpEvidence):
            return answer
        if isinstance(answer, _OUTCOMES):
            return Concluded(answer)
        if isinstance(answer, BaseException):
            unsent = isinstance(answer, ConnectionRefusedError)
            phase = Phase.NOT_SENT if unsent else Phase.SENT
            return HttpEvidence(phase, error=f"{type(answer).__name__}: as the test has it")
        raise ConfigError(
            f"a tool that speaks HTTP does not answer with a {type(answer).__name__}",
            next_step="answer with HttpAnswer(status, document), an outcome or an error",
        )


def _is_error_type(answer: Any) -> bool:
    return isinstance(answer, type) and issubclass(answer, BaseException)


def _raising(error: Any) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise error

    return function


def _called(function: Callable[..., Any], request: HttpRequest) -> Any:
    try:
        return function(request)
    except (OSError, NotApplied) as error:
        # A way to answer. Anything else is a mistake in the test, and is told where it happens.
        return error


def took_effect(evidence: Evidence | Concluded, said: bool | None) -> bool | None:
    """Return whether a request took effect, by how it ended and what the test has said."""
    if isinstance(evidence, NotWritten | RaisedOutcome):
        return False
    if isinstance(evidence, Returned):
        return _by_outcome(outcome_of(evidence.value), said)
    if isinstance(evidence, Concluded):
        return _by_outcome(evidence.outcome, said)
    if isinstance(evidence, HttpEvidence):
        return _by_status(evidence, said)
    return said


def _by_outcome(outcome: Outcome, said: bool | None) -> bool | None:
    if isinstance(outcome, Applied | Accepted):
        return True
    return False if isinstance(outcome, NotApplied) else said


def _by_status(evidence: HttpEvidence, said: bool | None) -> bool | None:
    if evidence.phase in (Phase.NOT_SENT, Phase.SENDING):
        return False
    if evidence.status is None or evidence.status >= 500:
        return said
    return evidence.status < 300


class Answers:
    """The scripts of every tool."""

    def __init__(self) -> None:
        self._scripts: dict[str, deque[Script]] = {}
        self._always: dict[str, Script] = {}

    def add(self, tool: str, script: Script, times: int | None) -> None:
        """Have a tool answer so for the next requests; None: whenever nothing else is said."""
        if times is None:
            self._always[tool] = script
            return
        if times < 1:
            raise ConfigError("times is 1 or more", next_step="leave it out for one answer")
        self._scripts.setdefault(tool, deque()).extend([script] * times)

    def next(self, tool: str) -> Script | None:
        """Take the answer to a tool's next request; None where its function really runs."""
        scripts = self._scripts.get(tool)
        return scripts.popleft() if scripts else self.standing(tool)

    def standing(self, tool: str) -> Script | None:
        """Return the answer to whatever has no other, a harmless read of a tool on HTTP too."""
        return self._always.get(tool)
