"""What must hold at the end of every workload, and the figures that stand then.

Counted from the virtual tools' own books and from what a planner is told. May import `case`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...outbox.model import State
from .case import Case
from .figures import Figures

_NOTHING = (State.FAILED.value, State.CANCELLED.value)


def figures_of(case: Case) -> Figures:
    """Return the counts of one finished workload."""
    states = {step: case.state(step) for step in case.intents}
    parked = {step for step in case.intents if case.is_parked(step)}
    counted = Counter(state for step, state in states.items() if step not in parked)
    return Figures(
        intents=len(case.intents),
        deliveries=case.deliveries,
        attempts=case.world.tools.requests,
        reads=case.reads,
        effects=case.world.tools.happened,
        duplicates=sum(max(0, case.effects_of(step) - 1) for step in case.intents),
        resolved=counted[State.COMMITTED.value],
        parked=len(parked),
        failed=counted[State.FAILED.value],
        cancelled=counted[State.CANCELLED.value],
        compensated=counted[State.COMPENSATED.value],
    )


def broken(case: Case) -> Iterator[str]:
    """Yield one sentence for everything that is not as it must be."""
    yield from case.complaints
    yield from (f"{one.rule}: {one.text}" for one in case.monitors.violations)
    yield from (f"every_intent_ends: {text}" for text in case.left_over())
    for step in case.intents:
        yield from _step_is_sound(case, step)


def _step_is_sound(case: Case, step: str) -> Iterator[str]:
    state, effects = case.state(step), case.effects_of(step)
    own = case.world.tools.standing.get(case.world.row_of(step), 0)
    allowed = case.world.allowed[step]
    if effects > 1 + allowed:
        yield f"{step} has {effects} effects"
    if state == State.COMMITTED.value and effects == 0 and not _may_be_without(case, step):
        yield f"{step} is committed and nothing happened"
    if state in _NOTHING and own > allowed:
        yield f"{step} is {state} and its effect stands"
    if case.is_parked(step) and state == State.INDETERMINATE.value:
        yield from _is_truly_unknown(case, step)


def _may_be_without(case: Case, step: str) -> bool:
    """Return whether an undo is under way, or somebody said something false about the step."""
    return case.is_being_undone(step) or case.world.allowed[step] > 0


def _is_truly_unknown(case: Case, step: str) -> Iterator[str]:
    """A parked unknown row has a send of which no proof is on record."""
    tables = case.world.store.tables
    row = tables.rows[case.world.row_of(step)]
    kept = tables.observations.get(row.seq, ())
    if row.sends == 0 or any(one.outcome in ("applied", "accepted") for one in kept):
        yield f"{step} is parked although its outcome is known"
