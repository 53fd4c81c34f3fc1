"""The trace format: a world, the events that happen in it, and what is expected of the end.

Reads and checks a trace; every complaint names the line and the member. What the events mean stands
in `verbs`, how they are carried out in `running`. May import `verbs`, `world_spec`, `invariants`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..outbox.model import State
from . import verbs
from .invariants import RULES
from .json_lines import Path, lines_of
from .verbs import VERBS
from .world_spec import LIMIT_NAMES, TOOL_OPTIONS, WorldSpec, world_of
from .world_values import COUNTER_NAMES

VERSION = 1
_TOP = {"ackbox_trace", "name", "about", "covers", "world", "events", "expected"}
_WORLD = {"tools", "workers", "reconcilers", "limits", "hands_over", "unserved", "throttled"}
_EXPECTED = {"counters", "states", "told", "violations"}
_KINDS: Mapping[str, tuple[type[Any], ...]] = {
    verbs.TEXT: (str,),
    verbs.NUMBER: (int, float),
    verbs.WHOLE: (int,),
    verbs.TRUTH: (bool,),
    verbs.OBJECT: (dict,),
    verbs.LIST: (list,),
}


class TraceError(Exception):
    """A trace that cannot be read or run, with the line and the member at fault."""

    def __init__(self, text: str, line: int, member: str) -> None:
        super().__init__(f"line {line}, {member or 'top'}: {text}")
        self.text = text
        self.line = line
        self.member = member


@dataclass(frozen=True, slots=True)
class Expected:
    """What a trace says about its end. What it does not name is not compared."""

    counters: Mapping[str, int] = field(default_factory=dict)
    states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The states of a step's generations, in order."""
    told: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[str, ...] = ()
    """The rules that break, each once, in alphabetical order."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "counters": dict(self.counters),
            "states": {step: list(states) for step, states in self.states.items()},
            "told": dict(self.told),
            "violations": list(self.violations),
        }


@dataclass(frozen=True, slots=True)
class Trace:
    """A checked trace. `lines` holds the line of each event where it came from a text."""

    name: str
    about: str
    world: WorldSpec
    events: tuple[Mapping[str, Any], ...]
    expected: Expected
    covers: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    def line(self, number: int) -> int:
        """Return the line of an event, or its number from 1 on."""
        return self.lines[number] if number < len(self.lines) else number + 1

    def text(self) -> str:
        """Return the trace as JSON, one event a line."""
        head = {
            "ackbox_trace": VERSION, "name": self.name, "about": self.about,
            "covers": list(self.covers), "world": self.world.document(),
        }  # fmt: skip
        shown = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()]
        events = ",\n".join(f"    {json.dumps(dict(event))}" for event in self.events)
        tail = json.dumps(self.expected.document())
        return "\n".join(
            ["{", *shown, '  "events": [', events, "  ],", f'  "expected": {tail}', "}", ""]
        )


def read_trace(text: str) -> Trace:
    """Read and check a trace. Raises TraceError."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(f"no JSON: {error.msg}", error.lineno, "") from error
    except RecursionError as error:
        raise TraceError("nested too deeply", 1, "") from error
    checker = _Checker(lines_of(text))
    checker.top(document)
    return _trace(document, checker.lines)


def _trace(document: Mapping[str, Any], lines: Mapping[Path, int]) -> Trace:
    expected = document.get("expected", {})
    states = {step: tuple(found) for step, found in expected.get("states", {}).items()}
    return Trace(
        name=document["name"],
        about=document.get("about", ""),
        world=world_of(document["world"]),
        events=tuple(document["events"]),
        expected=Expected(
            counters=expected.get("counters", {}),
            states=states,
            told=expected.get("told", {}),
            violations=tuple(sorted(expected.get("violations", ()))),
        ),
        covers=tuple(document.get("covers", ())),
        lines=tuple(lines["events", number] for number in range(len(document["events"]))),
    )


class _Checker:
    """Complains about the first thing that is wrong."""

    def __init__(self, lines: dict[Path, int]) -> None:
        self.lines = lines

    def fail(self, text: str, *path: str | int) -> None:
        """Raise TraceError for the value at a path, or for the nearest one around it."""
        at: Path = path
        while at not in self.lines:
            at = at[:-1]
        raise TraceError(text, self.lines[at], ".".join(map(str, path)))

    def _known(self, found: Iterable[str], known: Iterable[str], *path: str | int) -> None:
        for name in found:
            if name not in known:
                self.fail(f"unknown member; known are {', '.join(sorted(known))}", *path, name)

    def _kind(self, value: Any, kind: str, *path: str | int) -> None:
        right = isinstance(value, _KINDS[kind])
        if kind in (verbs.NUMBER, verbs.WHOLE) and isinstance(value, bool):
            right = False
        if not right:
            self.fail(f"is no {kind}", *path)

    def top(self, document: Any) -> None:
        """Check the whole document."""
        if not isinstance(document, dict):
            self.fail("a trace is a JSON object")
        version = document.get("ackbox_trace")
        if version != VERSION:
            self.fail(f"version {version!r} is not {VERSION}, the one that is read here",
                      "ackbox_trace")  # fmt: skip
        self._known(document, _TOP)
        for name, kind in (("name", "text"), ("world", "object"), ("events", "list")):
            if name not in document:
                self.fail("is missing", name)
            self._kind(document[name], kind, name)
        self._kind(document.get("about", ""), "text", "about")
        self._kind(document.get("covers", []), "list", "covers")
        self.world(document["world"])
        for number, event in enumerate(document["events"]):
            self.event(event, number)
        self.expected(document.get("expected", {}))

    def world(self, world: Mapping[str, Any]) -> None:
        """Check the world: its tools, processes and limits."""
        self._known(world, _WORLD, "world")
        if not isinstance(world.get("tools"), dict) or not world["tools"]:
            self.fail("a world has at least one tool", "world", "tools")
        for name, options in world["tools"].items():
            self._kind(options, "object", "world", "tools", name)
            self._known(options, TOOL_OPTIONS, "world", "tools", name)
            for option, value in options.items():
                self._option(option, value, "world", "tools", name, option)
        for names in ("workers", "reconcilers"):
            self._kind(world.get(names, []), "list", "world", names)
        self._kind(world.get("throttled", False), "true or false", "world", "throttled")
        self._kind(world.get("limits", {}), "object", "world", "limits")
        self._known(world.get("limits", {}), LIMIT_NAMES, "world", "limits")
        for name, value in world.get("limits", {}).items():
            self._kind(value, "number", "world", "limits", name)

    def _option(self, option: str, value: Any, *path: str | int) -> None:
        declared = TOOL_OPTIONS[option]
        if declared == "str":
            self._kind(value, "text", *path)
        elif declared == "bool":
            self._kind(value, "true or false", *path)
        elif declared == "int":
            self._kind(value, "whole number", *path)
        elif value is not None:
            self._kind(value, "number", *path)
        allowed = {"key": ("none", "idempotent", "client_id"), "probe": ("none", "weak", "strong"),
                   "undoes": ("", "ref", "marker")}.get(option)  # fmt: skip
        if allowed is not None and value not in allowed:
            self.fail(f"{value!r} is none of {', '.join(allowed)}", *path)

    def event(self, event: Any, number: int) -> None:
        """Check one event: its verb, its members and their kinds."""
        self._kind(event, "object", "events", number)
        verb = VERBS.get(event.get("do", ""))
        if verb is None:
            self.fail(f"there is no event {event.get('do')!r}", "events", number, "do")
        assert verb is not None
        self._known([name for name in event if name not in ("do", "note")], verb.fields,
                    "events", number)  # fmt: skip
        for name in verb.needed:
            if name not in event:
                self.fail("is missing", "events", number, name)
        for name, kind in verb.fields.items():
            if name in event:
                self._kind(event[name], kind, "events", number, name)

    def expected(self, expected: Any) -> None:
        """Check what is expected of the end."""
        self._kind(expected, "object", "expected")
        self._known(expected, _EXPECTED, "expected")
        for name, value in expected.get("counters", {}).items():
            self._known([name], COUNTER_NAMES, "expected", "counters")
            self._kind(value, "whole number", "expected", "counters", name)
        for step, states in expected.get("states", {}).items():
            self._kind(states, "list", "expected", "states", step)
            for number, state in enumerate(states):
                if state not in {one.value for one in State}:
                    self.fail(f"there is no state {state!r}", "expected", "states", step, number)
        for number, rule in enumerate(expected.get("violations", ())):
            if rule not in RULES:
                self.fail(f"there is no rule {rule!r}", "expected", "violations", number)
