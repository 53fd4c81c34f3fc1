"""Scenarios of processes and the store: kills at each point, stalls, a store that does not answer.

May import `scenario` and `acts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .acts import WORKERS, approve, attempt_of, deliver_all, die_at, kill, let_lapse, run_until
from .case import Case
from .scenario import KEYED, KEYLESS, ONCE, PROBED, UNKNOWN, End, Scenario
from .schedule import Schedule

HEALTHY = 2
"""Intents beside the poisonous one."""


def crash_after_effect(case: Case) -> None:
    """The worker dies when the effect has happened and before it can record anything."""
    for intent in range(case.planned):
        step = case.put(intent)
        die_at(case, "w1", step, "arrived")
        let_lapse(case)
        case.deliver("w2", step)


def crash_at_record(case: Case) -> None:
    """The worker dies with the answer in its hands, before the outcome is written."""
    for intent in range(case.planned):
        step = case.put(intent)
        die_at(case, "w1", step, "Record")
        let_lapse(case)
        case.deliver("w2", step)


def crash_before_mark(case: Case) -> None:
    """The worker dies between claim and send mark: nothing has left, and the row says so."""
    for intent in range(case.planned):
        step = case.put(intent)
        die_at(case, "w1", step, "MarkSend")
        let_lapse(case)
        case.deliver("w2", step)


def crash_after_mark(case: Case) -> None:
    """The worker dies between the mark and the first byte: nobody can tell, so nobody guesses."""
    for intent in range(case.planned):
        step = case.put(intent)
        die_at(case, "w1", step, "Exchange")
        let_lapse(case)
        case.deliver("w2", step)


def crash_around_gate(case: Case) -> None:
    """An intent waits for approval; the pass and one or two of its workers die around it."""
    for intent in range(case.planned):
        step = case.put(intent, held_for="ops")
        case.apply(("start", "hold"))
        case.apply(("crash", "hold"))
        approve(case, step)
        case.carry("pass", role="hold")
        for number in range(1 + int(case.draw(f"crashes:{step}") * 2)):
            die_at(case, WORKERS[number % 2], step, "MarkSend")
            _wait_until_queued(case, step)
        case.deliver("w1", step)
        case.settle()


def _wait_until_queued(case: Case, step: str) -> None:
    """Wait for the reaper, then for the back-off, and stop before anybody claims."""
    case.apply(("wait", 25.0))
    case.carry("pass", role="reap")
    case.apply(("wait", 2.0))
    case.expect(step, "queued")


def worker_stalls(case: Case) -> None:
    """A worker stands still between claim and mark, for less than its lease or for much longer."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, "MarkSend")
        case.apply(("freeze", "w1"))
        case.deliver("w2", step)
        case.apply(("wait", 15.0 if intent % 2 else 60.001))
        case.carry("pass", role="reap")
        case.apply(("wait", 2.0))
        case.deliver("w2", step)
        case.settle()


def answer_after_stall(case: Case) -> None:
    """A worker stalls with the answer in its hands until everybody has given it up."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, "Record")
        case.apply(("freeze", "w1"))
        case.apply(("wait", 60.001))
        case.carry("pass", role="reap")
        case.expect(step, "indeterminate", "unknown")
        case.apply(("thaw", "w1"))
        case.carry("run", who=attempt_of(case, "w1", step))
        # Until its heart beats again the store takes the worker for dead.
        case.run_for(1.0)


STORE_FAULTS = (
    ("MarkSend", "no_commit"), ("MarkSend", "lost_commit"), ("MarkSend", "owner_doubtful"),
    ("Record", "lost_commit"),
)  # fmt: skip


def store_down(case: Case) -> None:
    """The store's connection breaks at a COMMIT, or is gone for a while, at some point."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        point, fault = STORE_FAULTS[int(case.draw(f"store:{step}") * len(STORE_FAULTS))]
        run_until(case, "w1", step, point)
        case.apply(("step", attempt_of(case, "w1", step), fault))
        if case.draw(f"outage:{step}") < 0.5:
            case.apply(("wait", 2.0 + 10.0 * case.draw(f"seconds:{step}")))
        case.deliver("w2", step)
        case.settle()


def nothing_without_mark(case: Case, kind: str) -> Iterator[str]:
    """Check that no request left without a mark, and that none was left over."""
    for step in case.intents:
        row = case.world.store.tables.rows[case.world.row_of(step)]
        if case.tries(step) > row.sends:
            yield f"{step} was sent {case.tries(step)} times under {row.sends} marks"


def poison_claim(case: Case) -> None:
    """One intent kills every worker that prepares it; its neighbours have to get through."""
    steps = [case.put(intent) for intent in range(case.planned)]
    poison = steps[0]
    for _ in range(4 * case.world.spec.limits.max_claims):
        if case.state(poison) != "queued":
            break
        die_at(case, "w1", poison, "MarkSend")
        case.apply(("wait", 25.0))
        case.carry("pass", role="reap")
        case.apply(("wait", 40.0))
    for step in steps[1:]:
        deliver_all(case, step, 2)


def poison_is_refused(case: Case, kind: str) -> Iterator[str]:
    """Check that the poison ends as a proven failure, after its limit, and the rest is done."""
    poison, rest = case.intents[0], case.intents[1:]
    if (case.state(poison), case.effects_of(poison)) != ("failed", 0):
        yield f"the poison ends {case.state(poison)}"
    if case.world.tally["crashes"] > case.world.spec.limits.max_claims + 1:
        yield f"the poison killed {case.world.tally['crashes']} workers"
    yield from (
        f"{step} ends {case.state(step)}" for step in rest if case.state(step) != "committed"
    )


def nobody_comes_again(case: Case) -> None:
    """The worker dies after the effect, and no token ever comes again: the reaper sees it alone."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, "arrived")
    for worker in ("w1",):
        kill(case, worker)


_RESENT = End("committed", 1, 2)
SCENARIOS = (
    Scenario(
        "crash-after-effect", ("F3",), "A worker dies when the effect has happened.",
        crash_after_effect, {KEYED: _RESENT, PROBED: ONCE, KEYLESS: UNKNOWN}, intents=3,
    ),
    Scenario(
        "crash-at-record", ("F3",), "A worker dies with the answer in its hands.",
        crash_at_record, {KEYED: _RESENT, PROBED: ONCE, KEYLESS: UNKNOWN}, intents=3,
    ),
    Scenario(
        "crash-before-mark", ("F4",), "A worker dies between claim and send mark.",
        crash_before_mark, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, intents=3,
    ),
    Scenario(
        "crash-after-mark", ("F4",), "A worker dies between send mark and first byte.",
        crash_after_mark,
        {KEYED: ONCE, PROBED: ONCE, KEYLESS: End("indeterminate", 0, 0)}, intents=3,
    ),
    Scenario(
        "crash-around-gate", ("F5",), "Pass and workers die before and after an approval.",
        crash_around_gate, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, intents=2,
    ),
    Scenario(
        "worker-stalls", ("F8",),
        "A worker stands still before its mark, within its lease and far beyond it.",
        worker_stalls, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, intents=4,
    ),
    Scenario(
        "answer-after-stall", ("F8", "F15"), "The answer is recorded when the row was given up.",
        answer_after_stall, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, intents=4,
    ),
    Scenario(
        "store-down", ("F11",), "COMMITs are lost, kept or doubtful around mark and record.",
        store_down, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, check=nothing_without_mark,
    ),
    Scenario(
        "poison-claim", ("F18",), "One intent kills its workers, two others are healthy.",
        poison_claim, {KEYED: ONCE, PROBED: ONCE, KEYLESS: ONCE}, intents=1 + HEALTHY,
        limits={"max_claims": 3}, loose=True, check=poison_is_refused,
    ),
    Scenario(
        "nobody-comes-again", ("F3", "F17"), "A worker dies and no token is ever delivered again.",
        nobody_comes_again, {KEYED: _RESENT, PROBED: ONCE, KEYLESS: UNKNOWN}, intents=1,
        schedule=Schedule(),
    ),
)  # fmt: skip
