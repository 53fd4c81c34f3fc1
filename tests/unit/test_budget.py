"""The retry budget: what is sent again stays in proportion, and nobody waits for ever (F7)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.defaults import DEFAULTS, Limits
from ackbox.workers.budget import Budget, Short, earn, filled, give_back, take

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = replace(DEFAULTS, retry_ratio=0.25, retry_floor_seconds=10.0, retry_burst=4)


def drained(limits: Limits = LIMITS) -> Budget:
    """Return a budget of which everything saved up was just taken."""
    budget = Budget()
    for _ in range(int(limits.retry_burst)):
        budget, short = take(budget, NOW, limits)
        assert short is None
    return budget


def test_a_tool_begins_with_what_it_can_save_up() -> None:
    """The first retries are free, the next one is put off, and not refused."""
    _, short = take(drained(), NOW, LIMITS)
    assert short == Short(10.0)


def test_first_sends_pay_for_retries() -> None:
    """Four first sends at a quarter each pay for one, three do not."""
    budget = drained()
    for _ in range(3):
        budget = earn(budget, NOW, LIMITS)
    assert take(budget, NOW, LIMITS)[1] is not None
    assert take(earn(budget, NOW, LIMITS), NOW, LIMITS)[1] is None


def test_a_tool_without_first_sends_still_comes_to_its_end() -> None:
    """Time alone pays for the last retries."""
    later = NOW + timedelta(seconds=LIMITS.retry_floor_seconds)
    assert take(drained(), later, LIMITS)[1] is None


def test_those_who_are_put_off_stand_in_line() -> None:
    """Each comes back a floor later than the one before, the longest back-off at most."""
    budget, delays = drained(), list[float]()
    for _ in range(40):
        budget, short = take(budget, NOW, LIMITS)
        assert short is not None
        delays.append(short.delay_seconds)
    assert delays[:3] == [10.0, 20.0, 30.0]
    assert max(delays) == delays[-1] == LIMITS.backoff_cap_seconds


def test_a_line_that_has_been_served_is_forgotten() -> None:
    """Who comes after it waits for the next token only."""
    budget = drained()
    for _ in range(3):
        budget, _short = take(budget, NOW, LIMITS)
    later = NOW + timedelta(seconds=60)
    for _ in range(4):
        budget, _short = take(budget, later, LIMITS)
    assert take(budget, later, LIMITS)[1] == Short(10.0)


def test_what_was_paid_for_and_not_sent_comes_back() -> None:
    """A mark that was refused costs the tool nothing."""
    assert take(give_back(drained(), NOW, LIMITS), NOW, LIMITS)[1] is None


def test_a_clock_that_was_set_back_earns_nothing() -> None:
    """The same minute is not counted twice."""
    budget = filled(drained(), NOW + timedelta(seconds=20), LIMITS)
    back = filled(budget, NOW - timedelta(hours=1), LIMITS)
    assert filled(back, NOW + timedelta(seconds=20), LIMITS).tokens == budget.tokens == 2.0


acts = st.lists(
    st.tuples(st.sampled_from(["first", "again", "unsent"]), st.floats(0, 30)), max_size=200
)


@given(acts, st.floats(0, 1), st.floats(0.5, 60), st.integers(1, 20))
def test_what_is_sent_again_is_bounded(
    done: list[tuple[str, float]], ratio: float, floor: float, burst: int
) -> None:
    """At any time: at most the burst, plus the share of first sends, plus one a floor."""
    limits = replace(LIMITS, retry_ratio=ratio, retry_floor_seconds=floor, retry_burst=burst)
    budget, now, first, again = Budget(), NOW, 0, 0
    for what, seconds in done:
        now += timedelta(seconds=seconds)
        if what == "first":
            budget, first = earn(budget, now, limits), first + 1
            continue
        budget, short = take(budget, now, limits)
        if short is None and what == "unsent":
            budget = give_back(budget, now, limits)
        again += short is None and what == "again"
        elapsed = (now - NOW).total_seconds()
        assert again <= burst + ratio * first + elapsed / floor + 1e-6


@given(acts, st.floats(0.5, 60))
def test_nobody_waits_for_ever(done: list[tuple[str, float]], floor: float) -> None:
    """A retry alone that comes back when it was told to is paid for at its second coming."""
    limits = replace(LIMITS, retry_floor_seconds=floor)
    budget, now = Budget(), NOW
    for what, seconds in done:
        now += timedelta(seconds=seconds)
        budget = earn(budget, now, limits) if what == "first" else take(budget, now, limits)[0]
    budget, short = take(budget, now, limits)
    if short is not None:
        assert 0 < short.delay_seconds <= limits.backoff_cap_seconds
        # Rounded to a microsecond, as every moment is.
        now += timedelta(seconds=max(short.delay_seconds, floor) + 1e-5)
        assert take(budget, now, limits)[1] is None
