"""The table of explored worlds: explored one after the other, each kept as soon as it is done.

A search of some worlds takes minutes. What is finished stands in the results file at once, and is
not done again as long as the world is described in the same words. May import `sim`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ...sim.explore import Explored, SmallWorld
from ...sim.explore_worlds import DEFAULT, TABLE

RESULTS = Path("sim/results/explored.json")
PAGE = Path("docs/reference/explorer.md")
BEGIN, END = "<!-- explored: begin -->\n", "<!-- explored: end -->"
_HEAD = "| world | what may happen | states | schedules | violations |\n|---|---|---|---|---|\n"
Explore = Callable[[SmallWorld], Explored]


def digest_of(world: SmallWorld) -> str:
    """Return what changes when the description of a world does."""
    described = (world.spec.document(), world.plan, world.statements, world.faults)
    return hashlib.sha256(repr(described).encode()).hexdigest()[:16]


def row_of(found: Explored) -> dict[str, Any]:
    """Return a line of the table."""
    world = found.world
    return {**found.as_dict(), "about": world.about, "described": digest_of(world)}


def kept_rows() -> dict[str, dict[str, Any]]:
    """Return the finished lines of the results file whose worlds are still described so."""
    if not RESULTS.exists():
        return {}
    document = json.loads(RESULTS.read_text("utf-8"))
    rows = {row["world"]: row for row in [*document["worlds"], document.get("default", {})] if row}
    current = {world.name: digest_of(world) for world in (DEFAULT, *TABLE)}
    return {
        name: row
        for name, row in rows.items()
        if row["complete"] and row.get("described") == current.get(name, "")
    }


def document_of(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the results file's content; worlds without a line are named as missing."""
    worlds = [rows[world.name] for world in TABLE if world.name in rows]
    return {
        "default": rows.get(DEFAULT.name),
        "worlds": worlds,
        "explored": sum(row["complete"] for row in worlds),
        "states": sum(row["states"] for row in worlds),
        "violations": sum(row["violations"] for row in rows.values()),
        "cut": [row["world"] for row in worlds if not row["complete"]],
        "missing": [world.name for world in TABLE if world.name not in rows],
    }


def page_of(page: str, document: dict[str, Any]) -> str:
    """Return the documentation page with the table between its marks written anew."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    worlds = document["worlds"]
    whole = sum(row["complete"] for row in worlds)
    said = (
        f"{whole} of {len(TABLE)} worlds were explored to the end: {document['states']:,} states, "
        f"{document['violations']} violations.\n\n"
    )
    return before + BEGIN + said + _HEAD + "".join(_line(row) for row in worlds) + END + after


def _line(row: dict[str, Any]) -> str:
    schedules = _short(int(row["schedules"])) if row["complete"] else "cut"
    cells = (f"`{row['world']}`", row["about"], f"{row['states']:,}", schedules, row["violations"])
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"


def _short(number: int) -> str:
    if number < 10**9:
        return f"{number:,}"
    digits = str(number)
    return f"{digits[0]}.{digits[1]} x 10^{len(digits) - 1}"


def explore_worlds(
    worlds: Iterable[SmallWorld], explore: Explore, *, write: bool, anew: bool
) -> dict[str, Any]:
    """Explore worlds that have no line yet, or all of them, and return the table's document.

    The file is read again before each line is added: another run may add lines at the same time.
    """
    rows: dict[str, dict[str, Any]] = {}
    for world in worlds:
        known = None if anew or not write else kept_rows().get(world.name)
        rows[world.name] = known or row_of(explore(world))
        if write:
            _write(document_of({**kept_rows(), **rows}))
    return document_of({**kept_rows(), **rows} if write else rows)


def _write(document: dict[str, Any]) -> None:
    RESULTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page_of(PAGE.read_text("utf-8"), document), encoding="utf-8")
