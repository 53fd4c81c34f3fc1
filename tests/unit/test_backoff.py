"""Back-off: doubled, capped, with full jitter out of a given share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackbox.outbox.backoff import backoff_seconds
from ackbox.outbox.defaults import Limits

LIMITS = Limits(backoff_base_seconds=1, backoff_cap_seconds=300)


@pytest.mark.parametrize(("tries", "bound"), [(0, 1), (1, 1), (2, 2), (5, 16), (9, 256), (10, 300)])
def test_the_bound_doubles_up_to_the_cap(tries: int, bound: float) -> None:
    """Share 1 is the longest delay of that try."""
    assert backoff_seconds(tries, 1.0, LIMITS) == bound


@given(tries=st.integers(-5, 10_000), share=st.floats(-1, 2))
def test_no_delay_leaves_its_bounds(tries: int, share: float) -> None:
    """Never negative, never above the cap, however often and whatever share is drawn."""
    assert 0 <= backoff_seconds(tries, share, LIMITS) <= 300


@given(tries=st.integers(1, 40), share=st.floats(0, 1))
def test_the_jitter_is_full(tries: int, share: float) -> None:
    """The delay is that share of the bound: from nothing to all of it."""
    bound = backoff_seconds(tries, 1.0, LIMITS)
    assert backoff_seconds(tries, share, LIMITS) == pytest.approx(bound * share)
