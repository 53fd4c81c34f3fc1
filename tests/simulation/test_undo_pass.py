"""Several effects undone in worlds: the shipped pass over the store, killed wherever it stands."""

from collections.abc import Iterator
from typing import Any

import pytest

from ackbox.outbox.undo_order import UndoReport, UndoRequest
from ackbox.sim.invariants import Monitors
from ackbox.sim.process import Forest
from ackbox.sim.records import Frozen
from ackbox.sim.running import carry_out, unfinished
from ackbox.sim.tool_specs import ToolSpec
from ackbox.sim.world import World
from ackbox.sim.world_spec import WorldSpec

TOOLS = (
    ToolSpec("tool", key="idempotent", probe="strong", undo="undo"),
    ToolSpec("undo", service="tool", undoes="ref", key="idempotent"),
)
STEPS = ("a", "b", "c")
COMMANDS = 6
"""Commands of a pass that asks for one undo, and one more."""


class Undoing:
    """A world with committed steps, and the pass that undoes them."""

    def __init__(self, *steps: str, tools: tuple[ToolSpec, ...] = TOOLS) -> None:
        self.world = World(WorldSpec(tools), forest=Forest(remember=False))
        self.monitors = Monitors(self.world)
        for step in steps:
            self.put(step)
            self.settle()
            self.world.apply(("wait", 1.0))

    def put(self, step: str) -> None:
        """Store an intent."""
        self.world.apply(("put", step, "tool", Frozen(title=step)))

    def settle(self) -> None:
        """Let the world run on."""
        carry_out(self.world, {"do": "settle"}, self.world.apply)

    def run(self, kill_before: int | None = None, **said: Any) -> UndoReport | None:
        """Run one pass; None where it was killed before its n-th command was answered."""
        request = UndoRequest("default", said.pop("steps", STEPS), **said)
        world = self.world
        world.begin("hold", "undo", "undo", request, 10)
        answered = 0
        while "undo" in world.tasks:
            if answered == kill_before:
                world.apply(("crash", "hold"))
                return None
            world.apply(("step", "undo"))
            answered += 1
        (report,) = [fact[2] for fact in world.journal if fact[0] == "ended"]
        assert isinstance(report, UndoReport)
        return report

    def passes(self, limit: int = 10, **said: Any) -> UndoReport:
        """Run passes, the world going on in between, until one finds nothing to do.

        Returns the last pass's report, which is not done where an undo stops the others.
        """
        report = None
        for _ in range(limit):
            report = self.run(**said)
            if report is not None and report.done:
                return report
            self.settle()
        assert report is not None, "nothing kills these passes"
        return report

    def orders(self) -> list[str]:
        """Return the steps whose undo was inserted, in the order of the rows."""
        intents = self.world.store.tables.intents
        return [
            intents[one.compensates].intent_id
            for one in intents.values()
            if one.compensates is not None
        ]

    def states(self) -> list[str]:
        """Return the states of the steps' live rows."""
        rows = self.world.store.tables.rows
        return [rows[self.world.row_of(step)].state.value for step in STEPS]


def words(report: UndoReport) -> Iterator[tuple[str, str]]:
    """Yield what a report says of each step."""
    for entry in report.entries:
        yield entry.intent_id, entry.word.value


def sound(undoing: Undoing) -> bool:
    """Return whether no rule broke and nothing is left over."""
    return undoing.monitors.violations == [] and unfinished(undoing.world) == []


def test_everything_is_undone_the_latest_first() -> None:
    """One after the other, each once; a pass afterwards finds nothing to do."""
    undoing = Undoing(*STEPS)
    assert undoing.passes().done
    assert undoing.orders() == ["c", "b", "a"]
    assert undoing.states() == ["compensated"] * 3
    assert sum(undoing.world.tools.standing.values()) == 0
    undoing.passes()
    assert undoing.world.tools.undone == 3
    assert sound(undoing)


def test_dependants_are_undone_before_what_they_stand_on() -> None:
    """Although the step below was settled last."""
    undoing = Undoing("b", "c", "a")
    assert undoing.passes(built_on=(("b", "a"), ("c", "b"))).done
    assert undoing.orders() == ["c", "b", "a"]
    assert sound(undoing)


@pytest.mark.parametrize("kill_before", range(COMMANDS))
def test_a_pass_that_dies_asks_for_nothing_twice(kill_before: int) -> None:
    """Killed before each of its commands, every time: the next one goes on from the rows."""
    undoing = Undoing(*STEPS)
    for _ in range(8):
        undoing.run(kill_before)
        undoing.run()
        undoing.settle()
    assert undoing.orders() == ["c", "b", "a"]
    assert undoing.world.tools.undone == 3
    assert sound(undoing)


def test_two_passes_at_once_ask_for_the_same() -> None:
    """The second one finds what the first has inserted."""
    undoing = Undoing(*STEPS)
    request = UndoRequest("default", STEPS)
    for name in ("one", "two"):
        undoing.world.begin("hold", "undo", name, request, 10)
    while undoing.world.tasks:
        for name in list(undoing.world.tasks):
            undoing.world.apply(("step", name))
    assert undoing.orders() == ["c"]
    undoing.settle()
    assert sound(undoing)


def refuse(undoing: Undoing, fate: str) -> None:
    """Let the undo that is open meet a fate at the tool, and the world run on."""
    world = undoing.world
    name = next(i.intent_id for i in reversed(world.store.tables.intents.values()) if i.compensates)
    world.apply(("claim", "w1", name))
    carry_out(world, {"do": "run", "who": "w1", "fate": fate}, world.apply)
    undoing.settle()


def test_an_undo_that_failed_stops_the_earlier_ones() -> None:
    """Until somebody asks anew; then it is undone, and the others after it."""
    undoing = Undoing(*STEPS)
    undoing.run()
    refuse(undoing, "refused")
    report = undoing.passes()
    assert list(words(report)) == [("c", "stopped"), ("b", "later"), ("a", "later")]
    assert report.entries[0].code == "compensation_failed"
    assert undoing.orders() == ["c"]
    undoing.run(again=True)
    undoing.settle()
    assert undoing.passes().done
    assert undoing.orders() == ["c", "c", "b", "a"]
    assert sound(undoing)


def test_an_undo_of_which_nobody_knows_stops_the_earlier_ones() -> None:
    """A keyless undo without a probe is a person's turn, and so is the rest."""
    keyless = (TOOLS[0], ToolSpec("undo", service="tool", undoes="ref"))
    undoing = Undoing(*STEPS, tools=keyless)
    undoing.run()
    refuse(undoing, "error_after_effect")
    report = undoing.passes()
    assert list(words(report)) == [("c", "stopped"), ("b", "later"), ("a", "later")]
    assert report.entries[0].code == "parked"
    assert undoing.states() == ["committed"] * 3
    assert sound(undoing)


def test_what_was_not_sent_is_called_off_first() -> None:
    """The queued step never takes effect, and the two others are undone."""
    undoing = Undoing("a", "b")
    undoing.put("c")
    report = undoing.run()
    assert report is not None
    assert list(words(report)) == [("c", "nothing"), ("b", "open"), ("a", "later")]
    undoing.settle()
    assert undoing.passes().done
    assert undoing.states() == ["compensated", "compensated", "cancelled"]
    assert sound(undoing)


def test_a_step_on_its_way_is_waited_for() -> None:
    """Its outcome comes first, then it is undone first (fault case 155)."""
    undoing = Undoing("a", "b")
    undoing.put("c")
    world = undoing.world
    world.apply(("claim", "w1", "c"))
    carry_out(world, {"do": "run", "who": "w1", "until": "sent"}, world.apply)
    report = undoing.run()
    assert report is not None
    assert list(words(report)) == [("c", "waiting"), ("b", "later"), ("a", "later")]
    assert undoing.orders() == []
    undoing.settle()
    assert undoing.passes().done
    assert undoing.orders() == ["c", "b", "a"]
    assert sound(undoing)


def test_an_adopted_effect_is_undone_once() -> None:
    """Two generations, one effect, one undo; both rows are compensated."""
    undoing = Undoing("a", "b", "c")
    undoing.world.apply(("supersede", "c"))
    undoing.settle()
    assert undoing.passes().done
    assert undoing.orders() == ["c", "b", "a"]
    assert undoing.states() == ["compensated"] * 3
    assert undoing.world.tools.undone == 3
    assert sound(undoing)
