"""Intents as values: the draft that is about to be stored, the stored one, and how to name one.

Decides what a draft may look like before anything is written. Pure; may import `identity`,
`errors` and `defaults`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeAlias

from .defaults import DEFAULTS, Limits
from .errors import InvalidIntent
from .identity import (
    DEFAULT_NAMESPACE,
    NAME_LIMIT,
    canonical,
    check_identity,
    check_name,
    fingerprint,
    is_derived,
    is_lane_name,
    mint_intent_id,
    wire_key,
)
from .type_variables import R, R_co

TOOL_LIMIT = 200
MAX_VERSION = 2**31 - 1
MAX_DOMAIN_VERSION = 2**63 - 1
_TRACE_LIMIT = 512
_NEXT = "ackbox put --help"


class ResultReader(Protocol[R_co]):
    """Turns a stored result into what the tool's signature says."""

    def __call__(self, stored: Any, /) -> R_co:
        """Return the result. Raises InvalidIntent where the stored JSON is none of that type."""


@dataclass(frozen=True, slots=True)
class Intent(Generic[R_co]):
    """One stored (intent_id, generation). `created` tells a new one from one found stored.

    `Intent[R]`: what `wait` and `get` tell of it has a result of type R. That knowledge is code,
    so it is no part of equality and is lost where an intent is pickled.
    """

    seq: int
    namespace: str
    intent_id: str
    generation: int
    tool: str
    lane: str
    run_id: str | None = None
    step: str | None = None
    created: bool = False
    read_result: ResultReader[R_co] | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the row's names without the reader."""
        return Intent, tuple(getattr(self, name) for name in self.__slots__[:-1])

    def read_by(self, read_result: ResultReader[R] | None) -> Intent[R]:
        """Return the same intent, its result to be read by `read_result`."""
        return replace(self, read_result=read_result)  # type: ignore[return-value, arg-type]

    @property
    def wire_key(self) -> str:
        """The Idempotency-Key that every send of this intent carries."""
        return wire_key(self.namespace, self.intent_id, self.generation)


StepName: TypeAlias = Intent[Any] | tuple[str, str] | str
"""How a caller names a step: a stored intent, (run_id, step), or the intent_id."""
TypedName: TypeAlias = Intent[R] | tuple[str, str] | str
"""The same, where the type of the step's result matters: an `Intent[R]` knows it."""


def reader_of(name: TypedName[R]) -> ResultReader[R] | None:
    """Return how the named step's result is read, where the name knows it."""
    return name.read_result if isinstance(name, Intent) else None


@dataclass(frozen=True, slots=True)
class Address:
    """Where a step stands. `generation` None means whichever is live."""

    namespace: str
    intent_id: str
    generation: int | None = None


@dataclass(frozen=True, slots=True)
class Draft(Generic[R_co]):
    """A checked generation 0, ready to be stored. `held_for` names the approval policy it needs."""

    namespace: str
    intent_id: str
    tool: str
    tool_version: int
    lane: str
    args: Mapping[str, Any] = field(repr=False)
    fingerprint: str
    content: str
    run_id: str | None = None
    step: str | None = None
    read_set: Mapping[str, int] | None = None
    not_before: datetime | None = None
    deadline: datetime | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    held_for: str | None = None
    read_result: ResultReader[R_co] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Content:
    """What a call does: its tool and its arguments, as given and as stored."""

    tool: str
    tool_version: int
    lane: str
    args: Mapping[str, Any] = field(repr=False)
    fingerprint: str
    content: str


@dataclass(frozen=True, slots=True)
class Terms:
    """When and under what conditions an intent may be executed."""

    read_set: Mapping[str, int] | None = None
    not_before: datetime | None = None
    deadline: datetime | None = None
    traceparent: str | None = None
    tracestate: str | None = None
    held_for: str | None = None


def address_of(name: StepName, namespace: str = DEFAULT_NAMESPACE) -> Address:
    """Return where the named step stands. Raises InvalidIntent for a malformed name."""
    if isinstance(name, Intent):
        return Address(name.namespace, name.intent_id, name.generation)
    if isinstance(name, tuple):
        return Address(namespace, _minted(namespace, *name))
    if not (isinstance(name, str) and is_derived(name)):
        check_identity(namespace, name)
    return Address(namespace, name)


def content_of(
    tool: str,
    version: int,
    lane: str,
    args: Mapping[str, Any],
    filled_in: Mapping[str, Any] | None = None,
    limits: Limits = DEFAULTS,
) -> Content:
    """Check what a call does and take its digests.

    `fingerprint` covers the arguments as the caller gave them, so that a new default in a tool's
    signature is no conflict; `content` covers what is stored, whatever defaults `filled_in`. What
    is stored is a copy: the caller may change its arguments before they are written.
    """
    check_tool(tool, version)
    check_lane(lane)
    limit = int(limits.args_limit_bytes)
    given = fingerprint(tool, args, limit)
    stored = {**args, **(filled_in or {})}
    whole = fingerprint(tool, stored, limit) if filled_in else given
    copied = json.loads(json.dumps(stored, ensure_ascii=False))
    return Content(tool, version, lane, copied, given, whole)


def draft_of(
    content: Content,
    terms: Terms,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    run_id: str | None = None,
    step: str | None = None,
    intent_id: str | None = None,
) -> Draft:
    """Name a call and check its terms. Raises InvalidIntent.

    Either (run_id, step) names it, and the id is minted from both, or `intent_id` does.
    """
    named = run_id is not None and step is not None
    if (run_id is None) != (step is None) or named == (intent_id is not None):
        raise InvalidIntent(
            "an intent is named by run_id and step together, or by intent_id",
            next_step="give run_id and step (--run-id and --step on the command line)",
        )
    if run_id is not None and step is not None:
        intent_id = _minted(namespace, run_id, step)
    assert intent_id is not None
    check_identity(namespace, intent_id)
    _check_terms(terms)
    return Draft(
        namespace=namespace, intent_id=intent_id, run_id=run_id, step=step,
        tool=content.tool, tool_version=content.tool_version, lane=content.lane,
        args=content.args, fingerprint=content.fingerprint, content=content.content,
        read_set=terms.read_set, not_before=terms.not_before,
        deadline=terms.deadline, traceparent=terms.traceparent, tracestate=terms.tracestate,
        held_for=terms.held_for,
    )  # fmt: skip


def _minted(namespace: str, run_id: str, step: str) -> str:
    check_name(namespace, "namespace")
    for name, what in ((run_id, "run_id"), (step, "step")):
        check_name(name, what)
        if len(name) > NAME_LIMIT:
            raise InvalidIntent(f"{what} is over {NAME_LIMIT} characters", next_step=_NEXT)
    if ":" in run_id:
        raise InvalidIntent(
            f"run_id {run_id!r} holds a colon, and `run:step` splits at the first one",
            next_step="name the run without a colon",
        )
    return mint_intent_id(namespace, run_id, step)


def check_tool(tool: str, version: int) -> None:
    """Raise InvalidIntent for a tool name or a version that cannot be stored and served."""
    check_name(tool, "tool")
    if len(tool) > TOOL_LIMIT:
        raise InvalidIntent(f"the tool's name is over {TOOL_LIMIT} characters", next_step=_NEXT)
    if type(version) is not int or not 0 < version <= MAX_VERSION:
        raise InvalidIntent("a tool's version is a whole number from 1 on", next_step=_NEXT)


def check_lane(lane: str) -> None:
    """Raise InvalidIntent for a lane that cannot have a queue."""
    if not is_lane_name(lane):
        raise InvalidIntent(
            f"lane {lane!r} is not 1 to 64 letters, digits, _ or -, or it is the reserved name",
            next_step="name the lane otherwise",
        )


def _check_terms(terms: Terms) -> None:
    for name in ("not_before", "deadline"):
        moment = getattr(terms, name)
        if moment is None:
            continue
        if not isinstance(moment, datetime) or moment.tzinfo is None:
            raise InvalidIntent(
                f"{name} must be a datetime with a time zone", next_step="pass an aware datetime"
            )
    for name, version in (terms.read_set or {}).items():
        check_name(name, "read_set")
        if type(version) is not int or not 0 <= version <= MAX_DOMAIN_VERSION:
            raise InvalidIntent(f"read_set.{name} must be a whole number", next_step=_NEXT)
    for text in (terms.traceparent, terms.tracestate):
        canonical(text, _TRACE_LIMIT, "trace context")
    if terms.held_for is not None:
        check_name(terms.held_for, "held_for")
