"""Scenarios of tools that answer badly: no echo, errors after the effect, keys that are forgotten.

May import `scenario` and `acts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .acts import attempt_of, deliver_all, run_until
from .case import Case
from .scenario import BOTH, KEYED, KEYLESS, ONCE, PROBED, End, Scenario, Script
from .schedule import TIMEOUT, Schedule

WINDOW_SECONDS = 600.0


def first_answer(fate: str) -> Script:
    """Return a script in which the tool answers each intent's first request in one way."""

    def script(case: Case) -> None:
        for intent in range(case.planned):
            step = case.put(intent)
            case.fates[step, 1] = fate
            deliver_all(case, step, 2)

    return script


def nobody_looks(case: Case) -> None:
    """The first answer is lost, and nobody looks at unknown rows until the keys are forgotten."""
    for intent in range(case.planned):
        step = case.put(intent)
        case.deliver("w1", step)
        run_until(case, "w1", step, "arrived")
        case.apply(("cut", attempt_of(case, "w1", step)))
        case.carry("run", who=attempt_of(case, "w1", step))
    case.apply(("wait", WINDOW_SECONDS * (0.9 + case.draw("longer"))))


def window_stays_closed(case: Case, kind: str) -> Iterator[str]:
    """Check that nothing was sent when the tool might have forgotten the key."""
    for step in case.intents:
        if case.tries(step) != 1:
            yield f"{step} was sent {case.tries(step)} times although its window was over"


def _answered(
    name: str, faults: tuple[str, ...], about: str, fate: str, ends: Mapping[str, End]
) -> Scenario:
    return Scenario(name, faults, about, first_answer(fate), ends)


_PARKED = End("indeterminate", 1, 1)
_AGAIN = End("committed", 1, 2)
SCENARIOS = (
    _answered(
        "echo-miss", ("F14",), "The first success does not carry our key.", "no_echo",
        {KEYED: _PARKED, BOTH: ONCE},
    ),
    _answered(
        "empty-success", ("F14",), "The first success has no body and no key.", "empty_success",
        {KEYED: _PARKED, BOTH: ONCE, PROBED: ONCE, KEYLESS: ONCE},
    ),
    _answered(
        "foreign-success", ("F14",), "A proxy's page comes back with the tool's success.",
        "garbage", {KEYED: _PARKED, BOTH: ONCE, PROBED: ONCE, KEYLESS: ONCE},
    ),
    _answered(
        "cut-success", ("F2", "F14"), "The first success breaks off in its body.", "cut_success",
        {KEYED: _AGAIN, BOTH: ONCE, PROBED: ONCE, KEYLESS: ONCE},
    ),
    _answered(
        "error-after-effect", ("F2",), "The first answer is an error, and the effect happened.",
        "error_after_effect", {KEYED: _AGAIN, BOTH: ONCE, PROBED: ONCE, KEYLESS: _PARKED},
    ),
    _answered(
        "error-before-effect", ("F2",), "The first answer is an error, and nothing happened.",
        "error_before_effect",
        {KEYED: _AGAIN, BOTH: _AGAIN, PROBED: _AGAIN, KEYLESS: End("indeterminate", 0, 1)},
    ),
    _answered(
        "stored-error", ("F14", "F16"), "The tool's key store keeps an error that did nothing.",
        "stored_error",
        {KEYED: End("indeterminate", 0), BOTH: End("indeterminate", 0), PROBED: _AGAIN,
         KEYLESS: End("indeterminate", 0, 1)},
    ),
    _answered(
        "refused", ("F7",), "The tool refuses for good.", "refused",
        {kind: End("failed", 0, 1) for kind in (KEYED, BOTH, PROBED, KEYLESS)},
    ),
    Scenario(
        "key-window", ("F16",), "Nobody looks until the tool has forgotten its keys.",
        nobody_looks, {KEYED: _PARKED, BOTH: ONCE}, check=window_stays_closed,
        schedule=Schedule(overrides={1: TIMEOUT}), tool={"key_window_seconds": WINDOW_SECONDS},
    ),
    Scenario(
        "key-in-window", ("F16",), "The answer is lost and the key is still known.",
        first_answer("ok"), {KEYED: _AGAIN, BOTH: ONCE},
        schedule=Schedule(overrides={1: TIMEOUT}), tool={"key_window_seconds": WINDOW_SECONDS},
    ),
    Scenario(
        "lagging-index", ("F15",), "The probe sees new objects two minutes late.",
        first_answer("ok"), {PROBED: End("committed", 1)},
        schedule=Schedule(overrides={1: TIMEOUT}),
        tool={"probe": "weak", "lag_seconds": 120.0},
    ),
)  # fmt: skip
