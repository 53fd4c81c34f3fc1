"""Scenarios of planners and people: gates, other arguments, generations, undoing.

May import `scenario` and `acts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..records import Frozen
from ..tool_specs import ToolSpec
from ..world_values import Impossible
from .acts import approve, deliver_all, run_until, start_gate_clock
from .case import TOOL, Case
from .scenario import COMMITTED, KEYED, KEYLESS, NEVER_SENT, ONCE, PROBED, End, Scenario
from .schedule import TIMEOUT, Schedule

GATE_SECONDS = 60.0
QUIET_SECONDS = 120.0
"""Longer than a request may travel."""


def two_decisions(case: Case) -> None:
    """Approval and rejection of one gate race, in either order, before or after its limit."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        start_gate_clock(case)
        first, second = _ORDERS[intent % 3]
        if first == "nobody":
            case.apply(("wait", GATE_SECONDS + 0.001))
            case.carry("pass", role="gate")
        else:
            approve(case, step, first)
        case.refused("gate_decided", "decide", step, second)
        case.deliver("w1", step)


_ORDERS = (("approved", "rejected"), ("rejected", "approved"), ("nobody", "approved"))


def first_decision_wins(case: Case, kind: str) -> Iterator[str]:
    """Check that only the approved ones happened, once."""
    for intent, step in enumerate(case.intents):
        wanted = ("committed", 1) if _ORDERS[intent % 3][0] == "approved" else ("cancelled", 0)
        found = (case.state(step), case.effects_of(step))
        if found != wanted:
            yield f"{step} ends {found}, not {wanted}"


def late_approval(case: Case) -> None:
    """A person approves when the limit has passed and before the pass has ended the wait."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        start_gate_clock(case)
        case.apply(("wait", GATE_SECONDS + 0.001))
        approve(case, step)
        case.carry("pass", role="gate")
        case.refused("gate_decided", "decide", step, "rejected")


def gate_times_out(case: Case) -> None:
    """Nobody decides; tokens come all the time and find nothing that may be sent."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        deliver_all(case, step, 2)
    start_gate_clock(case)
    case.apply(("wait", GATE_SECONDS - 1.0))
    case.carry("pass", role="gate")
    for step in case.intents:
        case.expect(step, "held")
    case.apply(("wait", 1.001))
    case.carry("pass", role="gate")


def gates_left_open(case: Case) -> None:
    """All intents but the last are called off while their gates are open; then the limit passes."""
    steps = [case.put(intent, held_for="ops") for intent in range(case.planned)]
    start_gate_clock(case)
    case.run_for(1.0)
    for step in steps[:-1]:
        case.apply(("cancel", step))
    case.apply(("wait", GATE_SECONDS))
    case.carry("pass", role="gate")
    case.expect(steps[-1], "cancelled")


def key_conflict(case: Case) -> None:
    """The same id comes with other arguments, before, during and after the call."""
    for intent in range(case.planned):
        step = case.put(intent)
        other = Frozen(title="something else")
        case.refused("args_conflict", "put", step, TOOL, other)
        case.deliver("w1", step)
        case.refused("args_conflict", "put", step, TOOL, other)
        case.run_for(0.001)
        case.refused("args_conflict", "put", step, TOOL, other)
        case.deliver("w2", step)


def supersede_anywhere(case: Case) -> None:
    """A planner replaces a step by the same call, before, during or after its request."""
    for intent in range(case.planned):
        step = case.put(intent)
        moment = _POINTS[int(case.draw(f"moment:{step}") * len(_POINTS))]
        if moment != "queued":
            case.deliver("w1", step)
            if moment != "ended":
                run_until(case, "w1", step, moment)
        case.apply(("supersede", step))
        case.deliver("w2", step)
        case.run_for(1.0)
        _late_word(case, step)


_POINTS = ("queued", "MarkSend", "Exchange", "arrived", "Record")


def _late_word(case: Case, step: str) -> None:
    """Hand in what the first generation's answer would have said, once more."""
    try:
        case.apply(("late", step, 0))
    except Impossible:
        # Nothing has happened under the first generation: there is no answer to hand in.
        return


def one_effect_of_a_step(case: Case, kind: str) -> Iterator[str]:
    """Check that a step is committed with one effect, whichever generation caused it."""
    for step in case.intents:
        found = (case.state(step), case.effects_of(step))
        right = {("committed", 1)}
        if case.is_parked(step) or any(_parked_before(case, step)):
            right = {("held", 0), ("held", 1), ("indeterminate", 0), ("indeterminate", 1)}
        if found not in right:
            yield f"{step} ends {found}"
        bound = [seq for seq, _ in case.world.bound_log if case.world.plan_step(seq) == step]
        if len(bound) > 1:
            yield f"{step} was handed over {len(bound)} times"


def _parked_before(case: Case, step: str) -> Iterator[bool]:
    tables = case.world.store.tables
    for row in tables.step_of(case.world.row_of(step)):
        yield row.parked_at is not None


def supersede_with_undo(case: Case) -> None:
    """A planner replaces a step by another call while its request is under way or over."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, ("Exchange", "arrived", "Record")[intent % 3])
        case.apply(("supersede", step, Frozen(title=f"{step} in other words")))
        case.deliver("w2", step)


def undo_twice(case: Case) -> None:
    """Two people ask for the same effect to be undone, while the undo's answer is lost."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        case.settle()
        # What a probe has found may still have a twin on its way: nothing is undone before then.
        case.run_for(QUIET_SECONDS)
        for _ in range(2):
            try:
                case.apply(("compensate", step))
            except Impossible as refused:
                case.world.tally[str(refused)] += 1


_KINDS_ONCE = {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}
# An undo without key and probe whose answer is lost is a person's turn, as any call would be.
_UNDONE = {KEYED: End("compensated", 0), PROBED: End("committed", 0)}
_UNDO = {
    KEYED: (ToolSpec("undo", service=TOOL, undoes="ref", key="idempotent"),),
    PROBED: (ToolSpec("undo", service=TOOL, undoes="marker"),),
}
SCENARIOS = (
    Scenario(
        "out-of-order-decision", ("F6", "F12"), "Two opposite decisions, or one after the limit.",
        two_decisions, _KINDS_ONCE, limits={"gate_limit_seconds": GATE_SECONDS}, loose=True,
        check=first_decision_wins,
    ),
    Scenario(
        "late-approval", ("F6", "F12"),
        "An approval after the limit counts as long as the pass has not ended the wait.",
        late_approval, _KINDS_ONCE, limits={"gate_limit_seconds": GATE_SECONDS},
    ),
    Scenario(
        "gate-times-out", ("F12",), "Nobody decides, and tokens come meanwhile.",
        gate_times_out, {KEYED: NEVER_SENT, PROBED: NEVER_SENT, KEYLESS: NEVER_SENT},
        limits={"gate_limit_seconds": GATE_SECONDS},
    ),
    Scenario(
        "gates-left-open", ("F12", "F13"),
        "More intents than a pass takes are called off; the one gate behind them ends in time.",
        gates_left_open, {KEYLESS: NEVER_SENT}, intents=60,
        limits={"gate_limit_seconds": GATE_SECONDS},
    ),
    Scenario(
        "key-conflict", ("F9",), "The same id with other arguments, at three moments.",
        key_conflict, _KINDS_ONCE,
    ),
    Scenario(
        "superseded-by-the-same", ("F13",),
        "A step is replaced by the same call at any point; the old answer comes late.",
        supersede_anywhere, {KEYED: COMMITTED, PROBED: COMMITTED, KEYLESS: COMMITTED},
        loose=True, check=one_effect_of_a_step,
    ),
    *(
        Scenario(
            "superseded-by-another", ("F13",),
            "A step is replaced by another call; the first effect is undone before.",
            supersede_with_undo, {kind: COMMITTED}, tool={"undo": "undo"}, others=others,
        )
        for kind, others in _UNDO.items()
    ),
    *(
        Scenario(
            "undone-twice", ("F13",),
            "An effect is to be undone, twice at once; every first answer is lost.",
            undo_twice, {kind: _UNDONE[kind]}, tool={"undo": "undo"}, others=others,
            schedule=Schedule(overrides={1: TIMEOUT}),
        )
        for kind, others in _UNDO.items()
    ),
)  # fmt: skip
