"""Guards whose absence no world has shown: the reason, and searches to the end without each.

A reason is an opinion; beside it stand small worlds that were explored without the guard, every
order and every crash point, and broke no rule. May import `explore`, its worlds and `guards_off`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .explore import Explorer, SmallWorld
from .explore_offers import Faults
from .explore_worlds import LATE, PUT, SMALL, spec_of
from .guards_off import leave_out

_REQUEUE = ("says", "s", "requeue")
_FROZEN = SmallWorld(
    "frozen_keyless", "a process that stands still beyond its lease", spec_of("keyless"), (PUT,),
    Faults(freezes=1, redeliveries=1),
)  # fmt: skip
_RESTARTED = SmallWorld(
    "restarted_keyless", "a worker that dies and comes back", spec_of("keyless"), (PUT,),
    Faults(crashes=1, restarts=1, redeliveries=1),
)  # fmt: skip
_WINDOWED_REQUEUE = SmallWorld(
    "windowed_requeue", "a person queues again inside or outside the key window",
    spec_of("windowed"), (PUT,), Faults(cuts=1), (_REQUEUE, LATE),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Why no world shows a guard's absence, and the worlds that were searched for it."""

    reason: str
    worlds: tuple[SmallWorld, ...]


UNNEEDED: dict[str, Unneeded] = {
    "servable": Unneeded(
        "it saves claims that would be given back at once: a row that is claimed by a worker "
        "without its tool is never sent",
        (_RESTARTED,),
    ),
    "own_claim": Unneeded(
        "every claim takes a new fence, so that own_fence refuses every attempt but the latest; "
        "two processes can hold one fence only after a lost COMMIT, where the row is read again "
        "by its owner",
        (_RESTARTED, SMALL["lost_commits_twice"]),
    ),
    "diverged": Unneeded(
        "only the hold pass and the opening of a divergence take this edge, and both name "
        "diverged rows alone; a row that is held without need is released at the next pass",
        (SMALL["keyless_person"], SMALL["undone_by_hand"]),
    ),
    "owner_alive": Unneeded(
        "until the reaper has taken the row nobody else can hold it, and after that the fence "
        "refuses the mark; it saves a send that would be reaped at once",
        (_FROZEN, _RESTARTED),
    ),
    "transient": Unneeded(
        "a final refusal names another edge; to try again what was refused is idle and safe",
        (SMALL["keyless_refusals"],),
    ),
    "refusable": Unneeded(
        "a passing refusal names another edge while sends are left; to give up early is unkind "
        "and safe",
        (SMALL["keyless_refusals"],),
    ),
    "person_may_clear": Unneeded(
        "it makes a person say that the effect may happen twice; whoever queues a row again that "
        "did land is mistaken, and is allowed one more effect with or without it",
        (SMALL["keyless_requeue"], _WINDOWED_REQUEUE),
    ),
}


def search_without(guard: str) -> list[dict[str, Any]]:
    """Explore a guard's worlds to their ends with the guard left out of the whole table."""
    plant, found = leave_out(guard), []
    for world in UNNEEDED[guard].worlds:
        explored = Explorer(world, plant=plant).run()
        found.append({
            "world": world.name, "about": world.about, "states": explored.states,
            "schedules": str(explored.schedules), "violations": explored.violations,
        })  # fmt: skip
    return found
