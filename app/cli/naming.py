"""Finds the intent that somebody names: the exact id, `run:step`, or the beginning of an id.

A name may have the tenant in front (`tenant/...`) and a generation behind (`...~g1`). A command
that changes something takes no beginnings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...outbox.errors import InvalidIntent, Refused
from ...outbox.identity import check_name, is_derived, mint_intent_id, undo_id

if TYPE_CHECKING:
    from ...outbox.shell.history import GenerationRow, IntentRow
    from .opening import Opened

_SHAPE = re.compile(
    r"(?:(?P<namespace>[^/~]+)/)?(?P<name>[^/~]+)(?:~undo(?P<undo>\d+))?(?:~g(?P<generation>\d+))?"
)
_SHOWN_CANDIDATES = 5
_NEXT = "ackbox ls"


@dataclass(frozen=True, slots=True)
class Named:
    """The step that a name stands for. `generation` is None where none was named."""

    namespace: str
    intent_id: str
    generation: int | None
    shown: str


def find(outbox: Opened, text: str, *, namespace: str = "default", exact: bool = False) -> Named:
    """Return what the name stands for. `exact`: a beginning is not enough.

    Raises InvalidIntent for a malformed name or several candidates, Refused("not_found") for none.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise InvalidIntent(
            f"{text!r} names no intent", next_step=_NEXT, effect_may_exist="Nothing was changed."
        )
    space = match["namespace"] or namespace
    try:
        check_name(space, "namespace")
        name = check_name(match["name"], "intent id")
    except InvalidIntent as error:
        raise InvalidIntent(
            error.what, next_step=_NEXT, effect_may_exist="Nothing was changed."
        ) from None
    generation = int(match["generation"]) if match["generation"] else None
    for base in _meanings(space, name):
        intent_id = base if match["undo"] is None else undo_id(base, int(match["undo"]))
        if rows := _generations(outbox, space, intent_id):
            return _named(rows, space, intent_id, generation)
    return _by_beginning(outbox, space, name, generation, exact)


def display_name(
    namespace: str, intent_id: str, run_id: str | None, step: str | None, generation: int = 0
) -> str:
    """Return the shortest name that `find` understands."""
    name = f"{run_id}:{step}" if run_id and step and not is_derived(intent_id) else intent_id
    front = "" if namespace == "default" else f"{namespace}/"
    return f"{front}{name}{f'~g{generation}' if generation else ''}"


def shortened(text: str, intent_id: str, shown: str) -> str:
    """Put the short name into the commands of a text that name the whole id."""
    whole = rf"(ackbox [a-z-]+ )(?:[^\s/]+/)?{re.escape(intent_id)}(?:~g\d+)?(?=[\s,]|$)"
    return re.sub(whole, lambda match: f"{match[1]}{shown}", text)


def _meanings(namespace: str, name: str) -> list[str]:
    """Return the ids that a name may mean, the exact one first."""
    run_id, colon, step = name.partition(":")
    minted = [mint_intent_id(namespace, run_id, step)] if colon and run_id and step else []
    return [name, *minted]


def _generations(outbox: Opened, namespace: str, intent_id: str) -> list[GenerationRow]:
    from ...outbox.shell.history import generations

    found = outbox.run(lambda c: generations(c, outbox.statements, intent_id, namespace))
    return [one for one in found if one.intent_id == intent_id]


def _named(
    rows: list[GenerationRow], namespace: str, intent_id: str, generation: int | None
) -> Named:
    first = rows[0]
    if generation is not None and all(one.generation != generation for one in rows):
        numbers = ", ".join(str(one.generation) for one in rows)
        raise Refused(
            "not_found",
            f"ackbox show {display_name(namespace, intent_id, first.run_id, first.step)}",
            what=f"there is no generation {generation} of it, only {numbers}",
        )
    shown = display_name(namespace, intent_id, first.run_id, first.step, generation or 0)
    return Named(namespace, intent_id, generation, shown)


def _by_beginning(
    outbox: Opened, namespace: str, name: str, generation: int | None, exact: bool
) -> Named:
    from ...outbox.shell.history import IntentFilter, list_intents

    wanted = IntentFilter(namespace=namespace, prefix=name)
    rows = outbox.run(lambda c: list_intents(c, outbox.statements, wanted, limit=50))
    found = {row.intent_id: row for row in rows}
    if not found:
        raise Refused("not_found", _NEXT, what=f"nothing is stored under {name!r}")
    if len(found) > 1:
        raise _ambiguous(name, list(found.values()))
    ((intent_id, row),) = found.items()
    shown = display_name(namespace, intent_id, row.run_id, row.step)
    if exact:
        raise InvalidIntent(
            f"{name!r} is only the beginning of an id, and this command changes something",
            next_step=f"give the whole name: {shown}",
            effect_may_exist="Nothing was changed.",
        )
    return _named(_generations(outbox, namespace, intent_id), namespace, intent_id, generation)


def _ambiguous(name: str, rows: list[IntentRow]) -> InvalidIntent:
    shown = [display_name(r.namespace, r.intent_id, r.run_id, r.step) for r in rows]
    more = "" if len(shown) <= _SHOWN_CANDIDATES else ", ..."
    return InvalidIntent(
        f"{name!r} is the beginning of several ids: {', '.join(shown[:_SHOWN_CANDIDATES])}{more}",
        next_step="give one of them, or more of the beginning",
        effect_may_exist="Nothing was changed.",
    )
