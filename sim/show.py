"""Shows what happened in a run: a timeline to read, or a Mermaid sequence diagram.

May import `trace_run` and `verbs`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .trace_run import Moment, Outcome
from .verbs import event_of

PLANNERS = frozenset({"put", "ask_again", "supersede", "cancel", "compensate", "pause", "touch"})
PEOPLE = frozenset({"decide", "says", "undo_by_hand"})
WIRE = frozenset({"arrive", "lose", "answer", "cut"})
LIVES = frozenset({"crash", "restart", "freeze", "thaw"})


def timeline(outcome: Outcome) -> str:
    """Return one line for each choice: the time, what happened, and what the store logged."""
    lines = [f"{outcome.name}"]
    lines += [_line(moment) for moment in outcome.moments]
    lines.append("")
    for step, states in outcome.states.items():
        told = outcome.told.get(step, "")
        lines.append(f"  {step}: {', '.join(states)}; told {told}")
    effects = outcome.counters["external_commits"]
    lines.append(f"  effects: {effects}, undone: {outcome.counters['undone']}")
    lines += [f"  BROKEN {one.rule}: {one.text}" for one in outcome.violations]
    lines += [f"  NOT AS EXPECTED {text}" for text in outcome.complaints]
    return "\n".join(lines) + "\n"


def _line(moment: Moment) -> str:
    caused = [f"row {seq} {name}" for seq, name, _ in moment.logged]
    caused += [f"EFFECT {ref}" for ref in moment.arrived]
    tail = f"   -> {', '.join(caused)}" if caused else ""
    return f"  {moment.seconds:9.1f} s  {words(moment)}{tail}"


def words(moment: Moment) -> str:
    """Return what happened as a line: the verb, its fields, the command that was answered."""
    event = event_of(moment.choice)
    verb = event.pop("do")
    if moment.command:
        event["command"] = moment.command
    return " ".join([verb, *(f"{name}={value}" for name, value in event.items())])


def mermaid(outcome: Outcome) -> str:
    """Return a sequence diagram of who told whom, for a Markdown page."""
    lines = ["sequenceDiagram"]
    lines += [f"  participant {name}" for name in _participants(outcome)]
    for moment in outcome.moments:
        lines += [f"  {line}" for line in _arrows(moment)]
    return "\n".join(lines) + "\n"


def _participants(outcome: Outcome) -> list[str]:
    workers: list[str] = []
    for moment in outcome.moments:
        for name in _names(moment):
            if name not in workers:
                workers.append(name)
    return ["planner", "outbox", *(name for name in workers if name != "planner"), "tool"]


def _names(moment: Moment) -> Iterator[str]:
    verb = moment.choice[0]
    if verb in PEOPLE:
        yield "person"
    elif verb in ("start",):
        yield actor(moment.choice[2] if len(moment.choice) > 2 else moment.choice[1])
    elif verb not in PLANNERS and verb not in ("wait", "late", "refused", "break"):
        yield actor(moment.choice[1])


def actor(name: str) -> str:
    """Return the process that a task or a request belongs to."""
    return name.partition(":")[0].partition("#")[0]


def _arrows(moment: Moment) -> Iterator[str]:
    verb, said = moment.choice[0], words(moment).replace(";", ",")
    who = next(_names(moment), "planner")
    if verb == "wait":
        yield f"Note over outbox: {moment.choice[1]:g} s pass"
    elif verb in LIVES:
        yield f"Note over {who}: {verb}"
    elif verb == "arrive":
        yield f"{who}->>tool: request {'(effect)' if moment.arrived else ''}".rstrip()
    elif verb in ("answer",):
        yield f"tool-->>{who}: answer"
    elif verb in WIRE:
        yield f"{who}-x tool: {verb}"
    elif moment.logged or verb in PLANNERS or verb in PEOPLE:
        yield f"{who}->>outbox: {said}"
    for seq, name, state in moment.logged:
        if state is not None:
            yield f"Note right of outbox: row {seq} {name}, {state}"
