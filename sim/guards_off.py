"""Tables with a guard left out: copies of the shipped one, handed to single worlds.

The shipped table is never written to. A guard is left out of every edge that has it, and of the
rule of binding. May import the pure core and `world`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..outbox.guards import GUARDS
from ..outbox.transitions import BIND, EDGES, Edge
from .world import World


def table_without(guard: str, edges: frozenset[str] = frozenset()) -> dict[str, Edge]:
    """Return the table without a guard: in the named edges alone, or everywhere.

    Raises KeyError for a guard or edge that there is not.
    """
    left_out = GUARDS[guard]
    table = {edge.name: edge for edge in (*EDGES, BIND)}
    for name in edges or frozenset(table):
        edge = table[name]
        guards = tuple(one for one in edge.guards if one is not left_out)
        table[name] = replace(edge, guards=guards)
    return table


def leave_out(guard: str, *edges: str) -> Callable[[World], None]:
    """Return what makes one world go by a table without a guard."""
    table: Mapping[str, Edge] = table_without(guard, frozenset(edges))

    def plant(world: World) -> None:
        world.store.tables.edges = table

    return plant
