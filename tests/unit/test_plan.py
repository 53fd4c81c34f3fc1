"""A plan's registrations: which words and tools, which function wins, what is refused."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ackbox.outbox.errors import ConfigError
from ackbox.outbox.model import Row, State
from ackbox.outbox.on_told import TOLD_WORDS, ToTell, Turn, tell_pass, turn_of
from ackbox.outbox.telling import Generation, tell
from ackbox.planner.plan import Plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def nothing(_: Any) -> None:
    """Do nothing with a row."""


@pytest.mark.parametrize("word", ["committed", "failed", "cancelled", "in_flight", "", "Unknown"])
def test_a_word_that_on_told_does_not_fire_for_is_refused_with_what_to_use(word: str) -> None:
    """Binding words name the other callbacks, any other word gets the list."""
    with pytest.raises(ConfigError) as refused:
        Plan().on_told(word)
    binds = word in ("committed", "failed", "cancelled")
    wanted = "on_bound or after_bound" if binds else ", ".join(TOLD_WORDS)
    assert wanted in refused.value.next_step


def of_word(plan: Plan, word: str, tool: str) -> Any:
    """Return the function that a word of a tool has."""
    found = plan.callbacks.of_word(word, tool)
    return found and found.function


@pytest.mark.parametrize("word", TOLD_WORDS)
def test_each_word_has_one_function_and_one_for_each_tool(word: str) -> None:
    """A second one for the same is refused; a tool's own is taken before the general one."""
    plan = Plan()
    general, own = (lambda _: None), (lambda _: None)
    plan.on_told(word)(general)
    plan.on_told(word, tool="mail.send")(own)
    assert of_word(plan, word, "mail.send") is own
    assert of_word(plan, word, "tickets.create") is general
    assert plan.callbacks.words == {word}
    assert not plan.waits
    with pytest.raises(ConfigError, match="already"):
        plan.on_told(word)(general)
    with pytest.raises(ConfigError, match="already"):
        plan.on_told(word, tool="mail.send")(own)


def test_a_plan_names_its_tools_and_words() -> None:
    """What a consumer warns of, and what a repr shows."""
    plan = Plan()
    plan.on_bound("a")(nothing)
    plan.after_bound("b")(nothing)
    plan.on_told("unknown", tool="c")(nothing)
    assert plan.callbacks.tools == {"a", "b", "c"}
    assert repr(plan) == "Plan(a, b, c, on_told unknown)"
    with pytest.raises(ConfigError, match="already"):
        plan.after_bound("b")(nothing)


def turn(word: str, **columns: Any) -> Turn:
    """Return what is done about a word for a row with these columns."""
    row = replace(Row(1), **columns)
    generation = Generation(row, "default", "r1:open", "tickets.create")
    telling = tell([generation], 0, NOW)
    assert telling is not None
    return turn_of(word, generation, telling)


def test_a_word_is_told_only_while_it_is_true() -> None:
    """An unknown that was settled, a parked row that was released: their bind tells more."""
    unknown, parked = {"state": State.INDETERMINATE}, {"parked_at": NOW}
    assert turn("unknown", **unknown) is Turn.CALL
    assert turn("unknown", state=State.COMMITTED) is Turn.FORGET
    assert turn("unknown", state=State.COMMITTED, diverged_at=NOW) is Turn.CALL
    assert turn("parked", **unknown, **parked) is Turn.CALL
    assert turn("parked", state=State.HELD, **parked) is Turn.CALL
    assert turn("parked", **unknown) is Turn.FORGET
    assert turn("compensated", state=State.COMPENSATED) is Turn.CALL
    assert turn("compensated", state=State.COMMITTED) is Turn.FORGET


def test_a_compensation_is_told_after_a_contradiction_is_resolved() -> None:
    """While facts contradict each other the step is unknown; the word waits, it is not lost."""
    assert turn("compensated", state=State.COMPENSATED, diverged_at=NOW) is Turn.LATER


def test_a_pass_takes_one_after_another_up_to_its_limit() -> None:
    """A lease covers one call; a list that never ends does not keep a consumer for ever."""
    leased = ToTell(1, 1, "unknown", 1, "tickets.create", "r1:open")
    steps = tell_pass(2)
    commands = [next(steps), steps.send(leased), steps.send(True)]
    assert [type(one).__name__ for one in commands] == ["TakeToTell", "Tell", "TakeToTell"]
    steps.send(leased)
    with pytest.raises(StopIteration) as end:
        steps.send(True)
    assert end.value.value == 2
