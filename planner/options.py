"""What a put may be given besides the call itself, and the checked draft that comes of it.

Pure; may import `tool_adapters` and `outbox`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypedDict

from ..outbox.defaults import Limits
from ..outbox.errors import InvalidIntent
from ..outbox.identity import DEFAULT_NAMESPACE
from ..outbox.intent import Content, Draft, Terms, content_of, draft_of
from ..outbox.type_variables import R
from ..tool_adapters.contract import IntentDraft


class PutOptions(TypedDict, total=False):
    """Options of `put`, `draft` and each item of `put_many`. All of them may be left out, but
    either `run_id` and `step` or `intent_id` must name the intent.
    """

    run_id: str | None
    """The plan's run; no colon. With `step` it gives the intent its id."""
    step: str | None
    """The step's name inside the run."""
    intent_id: str | None
    """The id itself, where the plan has one."""
    namespace: str
    """The tenant; the planner's own by default."""
    lane: str | None
    """The lane; the tool's by default."""
    version: int | None
    """The tool's version; the draft's, or 1."""
    not_before: datetime | None
    """Nothing is claimed before this."""
    deadline: datetime | None
    """Nothing is sent after this; what was not sent is cancelled."""
    read_set: Mapping[str, int] | None
    """Versions of domains that must still hold when the effect is sent."""
    held_for: str | None
    """The approval policy without whose decision nothing is sent."""
    traceparent: str | None
    """W3C trace context."""
    tracestate: str | None
    """W3C trace state."""


_NAMES = ("namespace", "run_id", "step", "intent_id")
_TERMS = ("read_set", "not_before", "deadline", "traceparent", "tracestate", "held_for")


def checked_draft(
    call: IntentDraft[R] | str,
    args: Mapping[str, Any] | None,
    limits: Limits,
    options: Mapping[str, Any],
) -> Draft[R]:
    """Return what can be stored. Raises InvalidIntent for anything that cannot."""
    _refuse_misspelt(options)
    content = checked_content(call, args, limits, options.get("lane"), options.get("version"))
    terms = Terms(**{name: options.get(name) for name in _TERMS})
    names: dict[str, Any] = {name: options.get(name) for name in _NAMES}
    names["namespace"] = options.get("namespace", DEFAULT_NAMESPACE)
    read_result = call.read_result if isinstance(call, IntentDraft) else None
    draft = draft_of(content, terms, **names)
    return replace(draft, read_result=read_result)


def _refuse_misspelt(options: Mapping[str, Any]) -> None:
    """Refuse an option that is none: without its deadline or gate, the effect would go out."""
    for name in options:
        if name not in PutOptions.__annotations__:
            near = get_close_matches(name, PutOptions.__annotations__, 1)
            raise InvalidIntent(
                f"a put has no option {name!r}" + (f"; did you mean {near[0]}?" if near else ""),
                next_step="options are " + ", ".join(PutOptions.__annotations__),
            )


def checked_content(
    call: IntentDraft | str,
    args: Mapping[str, Any] | None,
    limits: Limits,
    lane: str | None = None,
    version: int | None = None,
) -> Content:
    """Return the call with its digests. Raises InvalidIntent."""
    if isinstance(call, str):
        given = {} if args is None else args
        return content_of(call, 1 if version is None else version, lane or "default", given,
                          limits=limits)  # fmt: skip
    if not isinstance(call, IntentDraft):
        raise InvalidIntent(
            f"{type(call).__name__} is neither a tool's draft nor a tool's name",
            next_step="put my_tool.intent(argument=...), or put('tool.name', {...})",
        )
    if args is not None:
        raise InvalidIntent(
            "a draft has its arguments already", next_step="leave args out, or give a tool's name"
        )
    return content_of(
        call.tool, call.version if version is None else version, lane or call.lane, call.args,
        call.defaults, limits,
    )  # fmt: skip
