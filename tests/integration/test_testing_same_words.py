"""Small programs are told the same words by a bus in memory and by a real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from ackbox import Plan
from ackbox.testing import MemoryBus
from ackbox.testing.pytest_plugin import EmbeddedBus

from ..support.memory_provider import Provider
from ..support.waiting import DEADLINE_SECONDS

PROGRAMS: list[tuple[str, list[str], str, int]] = [
    ("keyless", [], "committed", 1),
    ("keyless", ["refused"], "failed", 0),
    ("keyless", ["busy", "busy"], "committed", 1),
    ("keyless", ["lost_before"], "unknown", 0),
    ("keyless", ["lost_after"], "unknown", 1),
    ("keyless", ["busy", "lost_after"], "unknown", 1),
    ("keyed", ["lost_after"], "committed", 1),
    ("keyed", ["lost_before", "lost_after"], "committed", 1),
    ("keyed", ["refused"], "failed", 0),
    ("probed", ["lost_after"], "committed", 1),
    ("probed", ["lost_before", "refused"], "failed", 0),
    ("probed", ["lost_before", "lost_before"], "committed", 1),
]


@pytest.fixture
def real_bus(database_url: str) -> Iterator[EmbeddedBus]:
    """A real bus on the shared server."""
    bus = EmbeddedBus(database_url)
    yield bus
    bus.close()


def names(count: int) -> Sequence[str]:
    """Return the steps of the programs."""
    return [f"s{number}" for number in range(count)]


def put_all(bus: MemoryBus | EmbeddedBus) -> None:
    """Put one step for each program."""
    drafts = [
        bus.planner.draft(kind, {"behaviours": behaviours}, run_id="r1", step=step)
        for step, (kind, behaviours, *_) in zip(names(len(PROGRAMS)), PROGRAMS, strict=True)
    ]
    bus.planner.put_many(drafts)


def told_all(bus: MemoryBus | EmbeddedBus, seconds: float) -> list[str]:
    """Wait for each step, and return what is told of it."""
    return [
        bus.planner.wait(("r1", step), timeout_seconds=seconds).word
        for step in names(len(PROGRAMS))
    ]


def expected() -> list[str]:
    """Return the words that both are to tell."""
    return [word for _, _, word, _ in PROGRAMS]


def count(provider: Provider) -> int:
    """Return how many effects there are."""
    return sum(provider.effects.values())


def test_a_bus_in_memory_tells_the_words() -> None:
    """In virtual time."""
    provider = Provider()
    with MemoryBus(provider.tools()) as bus:
        put_all(bus)
        assert told_all(bus, 3600) == expected()
    assert count(provider) == sum(effects for *_, effects in PROGRAMS)


def test_a_real_bus_tells_the_same_words(real_bus: EmbeddedBus) -> None:
    """With processes' parts, PostgreSQL and real time; and its plan is called."""
    provider, plan, bound = Provider(), Plan(), list[str]()

    @plan.after_bound("keyed")
    def heard(row: object) -> None:
        bound.append(type(row).__name__)

    put_all(real_bus)
    with real_bus.serve(provider.tools(), plan=plan):
        assert told_all(real_bus, DEADLINE_SECONDS) == expected()
        real_bus.planner.wait(("r1", "s6"), timeout_seconds=DEADLINE_SECONDS, until="bound")
    assert count(provider) == sum(effects for *_, effects in PROGRAMS)
    assert set(bound) <= {"Bound"}
