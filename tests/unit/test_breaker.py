"""The circuit breaker: what opens it, who tries, and that it says nothing about an outcome."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.defaults import DEFAULTS
from ackbox.outbox.outcome import Accepted, Answer, Applied, NotApplied, Outcome, Unknown
from ackbox.workers.breaker import (
    Admitted,
    Breaker,
    Held,
    Phase,
    admit,
    is_healthy,
    note,
    phase,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BAD, GOOD = False, True


def later(seconds: float) -> datetime:
    """Return a moment after the beginning."""
    return NOW + timedelta(seconds=seconds)


def after(results: Iterable[bool | None], breaker: Breaker | None = None) -> Breaker:
    """Return a breaker that heard of these sends, at one moment."""
    breaker = breaker or Breaker()
    for healthy in results:
        breaker = note(breaker, healthy, None, NOW, DEFAULTS)
    return breaker


def trying(breaker: Breaker, now: datetime) -> tuple[Breaker, int]:
    """Return the breaker with its trial under way, and the trial's number."""
    breaker, answer = admit(breaker, 0.0, now, DEFAULTS)
    assert isinstance(answer, Admitted)
    assert answer.trial is not None
    return breaker, answer.trial


@pytest.mark.parametrize(
    ("outcome", "healthy"),
    [
        (Applied("T-1"), True),
        (Accepted("T-1"), True),
        (NotApplied("card declined"), True),
        (NotApplied("slow down", transient=True), False),
        (NotApplied("too late", code="not_written", transient=True), None),
        (Unknown("no answer"), False),
        (Unknown("cut", answer=Answer.CUT_OFF), False),
        (Unknown("no echo", answer=Answer.COMPLETE), None),
    ],
)
def test_only_what_is_about_the_tool_counts(outcome: Outcome, healthy: bool | None) -> None:
    """A refusal for good is an answer of a healthy tool; what this side did says nothing."""
    assert is_healthy(outcome) is healthy


def test_declines_keep_it_closed_and_timeouts_open_it() -> None:
    """Twenty refusals for good are no trouble; five answers that never came are."""
    declined = [is_healthy(NotApplied("declined"))] * 20
    lost = [is_healthy(Unknown("no answer"))] * 5
    assert phase(after(declined), NOW) is Phase.CLOSED
    assert phase(after(lost), NOW) is Phase.OPEN
    assert phase(after(lost[:4]), NOW) is Phase.CLOSED


def test_old_outcomes_are_forgotten() -> None:
    """Bad outcomes far apart are no storm."""
    breaker = Breaker()
    for number in range(20):
        now = later(number * DEFAULTS.breaker_window_seconds / 4)
        breaker = note(breaker, BAD, None, now, DEFAULTS)
        assert phase(breaker, now) is Phase.CLOSED


def test_open_means_nothing_is_sent() -> None:
    """Who asks is told how long, spread over what it would be open at first."""
    breaker = after([BAD] * 5)
    assert admit(breaker, 0.0, NOW, DEFAULTS)[1] == Held(30.0)
    assert admit(breaker, 1.0, later(10), DEFAULTS)[1] == Held(50.0)


def test_one_trial_at_a_time() -> None:
    """The second one waits for the first one's outcome or for the end of its time."""
    breaker, number = trying(after([BAD] * 5), later(30))
    assert isinstance(admit(breaker, 0.0, later(31), DEFAULTS)[1], Held)
    dead = later(30 + DEFAULTS.breaker_trial_seconds)
    assert admit(breaker, 0.0, dead, DEFAULTS)[1] == Admitted(number + 1)


def test_a_good_trial_closes_it() -> None:
    """Nothing of the bad time is left but the number of the trial."""
    breaker, number = trying(after([BAD] * 5), later(30))
    closed = note(breaker, GOOD, number, later(31), DEFAULTS)
    assert closed == Breaker(trial=number)
    assert admit(closed, 0.0, later(31), DEFAULTS)[1] == Admitted()


def test_bad_trials_double_the_time() -> None:
    """30 s, 60 s, 120 s, 240 s, and then 300 s for good."""
    breaker, now, opened = after([BAD] * 5), NOW, list[float]()
    for _ in range(6):
        assert breaker.open_until is not None
        opened.append((breaker.open_until - now).total_seconds())
        now = breaker.open_until
        breaker, number = trying(breaker, now)
        breaker = note(breaker, BAD, number, now, DEFAULTS)
    assert opened == [30, 60, 120, 240, 300, 300]


def test_a_trial_that_learned_nothing_makes_way_for_the_next() -> None:
    """Its row was called off before the mark, say."""
    breaker, number = trying(after([BAD] * 5), later(30))
    breaker = note(breaker, None, number, later(31), DEFAULTS)
    assert trying(breaker, later(31))[1] == number + 1


def test_sends_from_before_decide_nothing_while_it_is_open() -> None:
    """Neither a late success nor a late failure, nor a trial that was given up."""
    breaker, number = trying(after([BAD] * 5), later(30))
    assert note(breaker, GOOD, None, later(31), DEFAULTS) == breaker
    again, _ = trying(breaker, later(30 + DEFAULTS.breaker_trial_seconds))
    assert note(again, GOOD, number, later(200), DEFAULTS) == again


@given(st.lists(st.booleans(), max_size=4))
def test_outcomes_add_up_in_any_order(results: list[bool]) -> None:
    """Counts of one window do not depend on who was heard first."""
    turned = list(reversed(results))
    assert replace(after(results), since=None) == replace(after(turned), since=None)


events = st.lists(
    st.tuples(st.sampled_from(["ask", "good", "bad", "none"]), st.floats(0, 60)), max_size=120
)


@given(events)
def test_whatever_happens_somebody_may_try_again(done: list[tuple[str, float]]) -> None:
    """Who comes back when told to is admitted then or may try: no state is for ever.

    And while it is open nobody is admitted, after that one trial at a time.
    """
    breaker, now, trials = Breaker(), NOW, list[int]()
    for what, seconds in done:
        now += timedelta(seconds=seconds)
        if what != "ask":
            healthy = {"good": True, "bad": False, "none": None}[what]
            breaker = note(breaker, healthy, trials.pop() if trials else None, now, DEFAULTS)
            continue
        before = phase(breaker, now)
        breaker, answer = admit(breaker, 0.5, now, DEFAULTS)
        if isinstance(answer, Admitted):
            assert before is not Phase.OPEN
            assert (answer.trial is not None) == (before is Phase.HALF_OPEN)
            trials += [] if answer.trial is None else [answer.trial]
    answer = admit(breaker, 0.0, now, DEFAULTS)[1]
    if isinstance(answer, Held):
        again = now + timedelta(seconds=answer.delay_seconds)
        assert isinstance(admit(breaker, 0.0, again, DEFAULTS)[1], Admitted)
