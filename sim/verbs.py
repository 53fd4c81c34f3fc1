"""Every event that a trace may hold: its fields, their kinds, and the choice that it stands for.

A primitive event is one choice of a world. A composite one (`run`, `pass`, `settle`, `expect`) is
carried out by `running` as a row of choices, or looks without touching. May import `records`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .records import Frozen

TEXT, NUMBER, WHOLE, TRUTH, OBJECT, LIST = "text", "number", "whole number", "true or false", (
    "object"
), "list"  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verb:
    """One kind of event. `fields` in the order of a choice; those in `needed` must be there."""

    summary: str
    fields: Mapping[str, str]
    needed: tuple[str, ...] = ()
    composite: bool = False


_WHO = {"who": TEXT}
_STEP = {"step": TEXT}
_GENERATION = {"generation": WHOLE}

VERBS: dict[str, Verb] = {
    # -- planners --------------------------------------------------------------------------------
    "put": Verb(
        "a planner stores a step's intent",
        {**_STEP, "tool": TEXT, "args": OBJECT, "held_for": TEXT, "deadline_seconds": NUMBER,
         "not_before_seconds": NUMBER, "read_set": OBJECT},
        ("step", "tool"),
    ),
    "ask_again": Verb(
        "a planner times out and puts again; `mint` true is the bug that takes a new id",
        {**_STEP, "mint": TRUTH}, ("step",),
    ),
    "supersede": Verb(
        "a planner replaces the live generation", {**_STEP, "args": OBJECT, **_GENERATION},
        ("step",),
    ),
    "cancel": Verb("a planner calls the step off", _STEP, ("step",)),
    "compensate": Verb("somebody asks for the effect to be undone", {**_STEP, **_GENERATION},
                       ("step",)),
    "touch": Verb("the version of a domain in a read set goes up", {"domain": TEXT}, ("domain",)),
    "pause": Verb("sends of a tool stop, or go on again", {"tool": TEXT}, ("tool",)),
    "late": Verb(
        "a late answer is handed in as evidence; `says`: a reference, not_applied, miss",
        {**_STEP, **_GENERATION, "fence": WHOLE, "says": TEXT}, ("step",),
    ),
    # -- people ----------------------------------------------------------------------------------
    "decide": Verb("a gate is approved or rejected", {**_STEP, "decision": TEXT},
                   ("step", "decision")),
    "says": Verb(
        "a person says landed, not_landed, requeue, undone, release, close_stands, close_undone",
        {**_STEP, "what": TEXT, **_GENERATION, "fence": WHOLE, "may_duplicate": TRUTH,
         "quotes": TRUTH},
        ("step", "what"),
    ),
    "undo_by_hand": Verb("somebody undoes the effect at the tool", {**_STEP, **_GENERATION},
                         ("step",)),
    "refused": Verb(
        "an event that has to be refused with a code", {"event": TEXT, "code": TEXT, "with": LIST},
        ("event", "code"),
    ),
    # -- processes -------------------------------------------------------------------------------
    "claim": Verb("a wake token reaches a worker, which claims and begins",
                  {**_WHO, **_STEP, "limit": WHOLE, "lost": TRUTH}, ("who",)),
    "start": Verb("a role begins a pass, the reconciler a look at each due row",
                  {"role": TEXT, **_WHO}, ("role",)),
    "step": Verb("a task's waiting command is answered, or meets a fault",
                 {**_WHO, "fault": TEXT}, ("who",)),
    "crash": Verb("a process is killed", _WHO, ("who",)),
    "restart": Verb("a dead process starts again", _WHO, ("who",)),
    "freeze": Verb("a process stands still, its heart too", _WHO, ("who",)),
    "thaw": Verb("a frozen process goes on", _WHO, ("who",)),
    "break": Verb("an adapter raises in one method from now on, or is mended",
                  {"tool": TEXT, "command": TEXT}, ("tool", "command")),
    # -- the wire and time -----------------------------------------------------------------------
    "arrive": Verb("a request reaches its tool, with a fate", {**_WHO, "fate": TEXT}, ("who",)),
    "answer": Verb("the tool's answer reaches its process", _WHO, ("who",)),
    "cut": Verb("the connection breaks; the request may still travel", _WHO, ("who",)),
    "lose": Verb("the request is lost on its way", _WHO, ("who",)),
    "wait": Verb("time passes", {"seconds": NUMBER}, ("seconds",)),
    # -- composites ------------------------------------------------------------------------------
    "run": Verb(
        "a task goes on: to its end, to before a command, or until it has sent or arrived",
        {**_WHO, "until": TEXT, "fate": TEXT}, ("who",), composite=True,
    ),
    "pass": Verb("a role's whole pass, without a fault", {"role": TEXT, **_WHO}, ("role",),
                 composite=True),
    "settle": Verb("the world runs on, without further faults, until it is quiet", {},
                   composite=True),
    "expect": Verb(
        "a row has to look so now", {**_STEP, **_GENERATION, "row": OBJECT, "told": TEXT},
        ("step",), composite=True,
    ),
}  # fmt: skip


def choice_of(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a checked primitive event as a choice."""
    verb = event["do"]
    values = [_frozen(event.get(name)) for name in VERBS[verb].fields]
    if verb == "refused":
        return (verb, event["event"], event["code"], *(_frozen(v) for v in event.get("with", ())))
    while values and values[-1] is None:
        values.pop()
    return (verb, *values)


def event_of(choice: tuple[Any, ...]) -> dict[str, Any]:
    """Return a choice as an event; `choice_of` is its inverse."""
    verb, values = choice[0], choice[1:]
    if verb == "refused":
        return {"do": verb, "event": values[0], "code": values[1], "with": list(values[2:])}
    pairs = zip(VERBS[verb].fields, values, strict=False)
    return {"do": verb, **{name: _plain(v) for name, v in pairs if v is not None}}


def _frozen(value: Any) -> Any:
    return Frozen(value) if isinstance(value, dict) else value


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Frozen) else value
