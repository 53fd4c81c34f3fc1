"""Suspended production generators that can be forked: a process is its role, arguments, replies.

A generator cannot be copied. So a process is a `Node`: the place that a reply log leads to. Nodes
form a tree for each (role, arguments); a node knows the command that the shipped generator yields
there. Advancing follows a child or grows one: from the live generator where this node was the last
to be advanced, else from a new one that is fed the whole log again. Equal logs give the same node,
so that a node's number is part of a state key. A crash is dropping the node.

May import the procedures of `outbox` and `workers`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from itertools import count
from typing import Any, TypeAlias

from ..outbox.bind import bind_pass
from ..outbox.commands import Claimed, Record
from ..outbox.gates import gate_pass
from ..outbox.hold import hold_pass
from ..outbox.outcome import Outcome
from ..outbox.reap import reap_pass
from ..outbox.relay import relay_pass
from ..outbox.undo_order import undo_pass
from ..workers.attempt import attempt, report
from ..workers.reconcile import reconcile
from ..workers.throttle import throttled_attempt

Steps: TypeAlias = Generator[Any, Any, Any]


def evidence(claim: Claimed, outcome: Outcome, number: int) -> Steps:
    """Hand in what became known of an attempt after it was over, as a late answer does."""
    recorded = yield Record(claim, outcome, kind="evidence", number=number)
    return recorded


ROLES: Mapping[str, Callable[..., Steps]] = {
    "attempt": attempt,
    "throttled_attempt": throttled_attempt,
    "report": report,
    "evidence": evidence,
    "reconcile": reconcile,
    "reap": reap_pass,
    "hold": hold_pass,
    "undo": undo_pass,
    "relay": relay_pass,
    "gate": gate_pass,
    "bind": bind_pass,
}
"""The shipped procedures by the name that a world starts them under."""


class Node:
    """One point in the life of a process. `command` is what it waits for; None once it ended."""

    __slots__ = ("_live", "_make", "children", "command", "local", "number", "parent", "reply",
                 "result")  # fmt: skip

    def __init__(
        self, number: int, make: Callable[[], Steps], parent: Node | None, reply: Any, live: Steps
    ) -> None:
        self.number = number
        self.parent = parent
        self.reply = reply
        self.children: dict[Hashable, Node] = {}
        self.local: Node | None = None
        """Where the process stands after the steps that touch nothing shared."""
        self.result: Any = None
        self._make = make
        self._live: Steps | None = live
        self.command: Any = None
        self.move(reply)

    def move(self, reply: Any) -> None:
        """Send the live generator a reply: this node then stands where that leads to."""
        assert self._live is not None, "one caller at a time moves a process on"
        try:
            self.command = self._live.send(reply)
        except StopIteration as stop:
            self.command, self.result, self._live = None, stop.value, None

    @property
    def ended(self) -> bool:
        """Whether the process has returned."""
        return self.command is None

    def replies(self) -> list[Any]:
        """Return the reply log that leads here."""
        log: list[Any] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            log.append(node.reply)
            node = node.parent
        return log[::-1]

    def take_live(self) -> Steps:
        """Return a generator that waits for this node's reply; only one caller gets it."""
        live, self._live = self._live, None
        return live if live is not None else self._rebuild()

    def _rebuild(self) -> Steps:
        steps = self._make()
        reply: Any = None
        for following in self.replies():
            steps.send(reply)
            reply = following
        steps.send(reply)
        return steps


class Forest:
    """All processes of one world and its forks. `remember` False keeps no tree: one run, no fork.

    With memory off a process is one node that moves, and no reply is hashed.
    """

    def __init__(self, *, remember: bool = True, roles: Mapping[str, Any] = ROLES) -> None:
        self.remember = remember
        self.grown = 0
        """Replies that a generator was sent: how much of the shipped code ran."""
        self._roles = roles
        self._roots: dict[Hashable, Node] = {}
        self._numbers = count(1)

    def start(self, role: str, *arguments: Any) -> Node:
        """Return the first node of a process."""
        if self.remember:
            known = self._roots.get((role, arguments))
            if known is not None:
                return known

        def make() -> Steps:
            steps: Steps = self._roles[role](*arguments)
            return steps

        node = self._grow(make, None, None, make())
        if self.remember:
            self._roots[role, arguments] = node
        return node

    def advance(self, node: Node, reply: Any) -> Node:
        """Return the node after a reply; the old one stays usable where nodes are remembered.

        Elsewhere it is the same node, further on.
        """
        if not self.remember:
            self.grown += 1
            node.move(reply)
            return node
        child = node.children.get(reply)
        if child is None:
            child = self._grow(node._make, node, reply, node.take_live())
            node.children[reply] = child
        return child

    def _grow(
        self, make: Callable[[], Steps], parent: Node | None, reply: Any, live: Steps
    ) -> Node:
        self.grown += 1
        return Node(next(self._numbers), make, parent, reply, live)
