"""Long programs by seeds through both outboxes: deeper than a drawn one gets, compared as strictly.

The programs use the rules of the differential state machine, weighted so that rows are sent, lost,
superseded, undone and argued about; together they take most edges of the table.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ackbox.outbox.transitions import EDGES
from ackbox.sim.random_source import RandomSource

from .outboxes import BY_NAME
from .postgres_outbox import PostgresOutbox
from .test_differential import (
    GIVE_BACKS,
    NAMES,
    OUTCOMES,
    OWNERS,
    SECONDS,
    STATEMENTS,
    TwoOutboxes,
)

STEPS = 45
SEEDS = range(20)
LANES = (*NAMES, "u")
Action = Callable[[TwoOutboxes, RandomSource], Any]


def _claims(act: Callable[[TwoOutboxes, RandomSource], Any]) -> Action:
    return lambda m, s: act(m, s) if m.claims else None


def _looks(act: Callable[[TwoOutboxes, RandomSource], Any]) -> Action:
    return lambda m, s: act(m, s) if m.unknown else None


def _yes(source: RandomSource) -> bool:
    return source.chance(0.5)


def _undo(machine: TwoOutboxes, source: RandomSource) -> None:
    rows = [machine.memory.row(seq)["state"].value for seq in machine.memory.seqs()]
    if "committed" not in rows:
        return
    machine.compensate(rows.index("committed"), _yes(source))
    machine.attempt("u", source.one_of(OUTCOMES[:4]))
    machine.hold_pass()


ACTIONS: tuple[tuple[int, Action], ...] = (
    (6, lambda m, s: m.attempt(s.one_of(LANES), s.one_of((None, *OUTCOMES)))),
    (5, lambda m, s: m.lose_track(s.one_of(LANES))),
    (4, lambda m, s: m.claim(s.one_of(LANES), s.one_of(OWNERS), s.chance(0.3))),
    (4, lambda m, s: m.supersede(s.one_of(NAMES), s.below(3), s.below(3))),
    (4, lambda m, s: m.says(s.below(6), s.chance(0.1), _yes(s), _yes(s), s.one_of(STATEMENTS))),
    (4, _claims(lambda m, s: m.record(s.below(3), s.one_of(OUTCOMES), s.below(3)))),
    (4, _looks(lambda m, s: m.probe(
        0, s.one_of(("found", "absent", "absent", "inconclusive")), s.one_of(((), (), ("r9",))),
        s.chance(0.8)))),
    (3, _looks(lambda m, s: m.resend(0, s.one_of(("d", "d", "d", "other"))))),
    (1, lambda m, s: m.compensate(s.below(6), _yes(s))),
    (4, lambda m, s: _undo(m, s)),
    (3, lambda m, s: m.hold_pass()),
    (3, lambda m, s: m.reap()),
    (3, lambda m, s: m.wait(s.one_of(SECONDS), s.one_of((OWNERS, OWNERS, OWNERS[1:])))),
    (2, lambda m, s: m.find_unknown()),
    (2, lambda m, s: m.bind(_yes(s))),
    (2, _claims(lambda m, s: m.give_back(0, s.one_of(GIVE_BACKS)))),
    (1, _claims(lambda m, s: m.mark(s.below(3), s.one_of(OWNERS)))),
    (1, _looks(lambda m, s: m.look_again(0, _yes(s)))),
    (1, lambda m, s: m.cancel(s.one_of(NAMES))),
    (1, lambda m, s: m.decide(s.below(6), s.one_of(("approved", "rejected")), True)),
    (1, lambda m, s: m.change(s.one_of(sorted(BY_NAME)), s.chance(0.2), s.chance(0.1))),
    (1, lambda m, s: m.put(s.one_of(NAMES), s.one_of(sorted(BY_NAME)), 1, False, False, _yes(s))),
    (1, lambda m, s: m.told(s.one_of(NAMES), s.below(3))),
)  # fmt: skip
_WEIGHTED = [action for weight, action in ACTIONS for _ in range(weight)]


def run_program(postgres: PostgresOutbox, seed: int) -> Counter[str]:
    """Run one program; return how often each event was logged."""
    TwoOutboxes.postgres = postgres
    machine, source = TwoOutboxes(), RandomSource(seed)
    tools = sorted(set(BY_NAME) - {"undo"})
    machine.begin((source.one_of(tools), source.one_of(tools)))
    for _ in range(STEPS):
        source.one_of(_WEIGHTED)(machine, source)
    return Counter(event[1] for event in machine.memory.events())


@pytest.mark.timeout(300)
def test_long_programs_lead_both_to_the_same_rows(postgres_outbox: PostgresOutbox) -> None:
    """No reply and no row differs, and the programs take most edges there are."""
    logged: Counter[str] = Counter()
    for seed in SEEDS:
        logged += run_program(postgres_outbox, seed)
    missing = {edge.name for edge in EDGES} - set(logged)
    assert len(missing) <= 10, sorted(missing)
