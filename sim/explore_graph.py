"""Counts the schedules of a state graph: its maximal paths, by dynamic programming.

A loop of states is a row of passes that change nothing in the end (a held row is looked at again
and again): a loop counts as one place, since a schedule that goes around it is no other schedule.
Pure, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Graph: TypeAlias = Sequence[Sequence[int]]


def places(graph: Graph) -> list[int]:
    """Return the place of each state: the number of the loop it is in, or one of its own.

    Every place has a higher number than all that it leads to.
    """
    finder = _Places(graph)
    for state in range(len(graph)):
        if finder.order[state] == 0:
            finder.walk(state)
    return finder.place


class _Places:
    """Tarjan's strongly connected components, without recursion."""

    def __init__(self, graph: Graph) -> None:
        self.order = [0] * len(graph)
        self.place = [-1] * len(graph)
        self._graph = graph
        self._low = [0] * len(graph)
        self._open: list[int] = []
        self._met = 0
        self._made = 0

    def walk(self, start: int) -> None:
        path = [self._enter(start)]
        while path:
            state, following = path[-1]
            fresh = self._next_fresh(state, following)
            if fresh is not None:
                path.append(self._enter(fresh))
                continue
            path.pop()
            if path:
                above = path[-1][0]
                self._low[above] = min(self._low[above], self._low[state])
            if self._low[state] == self.order[state]:
                self._close(state)

    def _enter(self, state: int) -> tuple[int, Iterator[int]]:
        self._met += 1
        self.order[state] = self._low[state] = self._met
        self._open.append(state)
        return state, iter(self._graph[state])

    def _next_fresh(self, state: int, following: Iterator[int]) -> int | None:
        for other in following:
            if self.order[other] == 0:
                return other
            if self.place[other] < 0:
                self._low[state] = min(self._low[state], self.order[other])
        return None

    def _close(self, root: int) -> None:
        state = -1
        while state != root:
            state = self._open.pop()
            self.place[state] = self._made
        self._made += 1


def ends(graph: Graph, place: Sequence[int]) -> list[int]:
    """Return one state of every place that nothing leaves: there schedules end."""
    left = {
        place[state]
        for state, following in enumerate(graph)
        if any(place[other] != place[state] for other in following)
    }
    first: dict[int, int] = {}
    for state, own in enumerate(place):
        if own not in left:
            first.setdefault(own, state)
    return sorted(first.values())


def count_schedules(graph: Graph, place: Sequence[int], start: int = 0) -> int:
    """Return the number of maximal paths from a state; two choices between places are two paths."""
    members: dict[int, list[int]] = {}
    for state, own in enumerate(place):
        members.setdefault(own, []).append(state)
    paths: dict[int, int] = {}
    for own in sorted(members):
        onwards = [
            paths[place[other]]
            for state in members[own]
            for other in graph[state]
            if place[other] != own
        ]
        paths[own] = sum(onwards) if onwards else 1
    return paths[place[start]]
