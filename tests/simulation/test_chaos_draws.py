"""The labelled draws are those of the published recipe, to the digit."""

from itertools import islice

import pytest

from ackbox.outbox.backoff import backoff_seconds
from ackbox.sim.chaos.draws import fnv1a, mulberry32, share, stream
from ackbox.sim.chaos.schedule import ERROR, OK, TIMEOUT, Schedule

SEEDS = range(1, 11)
DELIVERIES = {
    1: "45235522552444335432", 2: "53353535522454543344", 3: "25255323543454332522",
    4: "45544235524452534445", 5: "35224244442224253322", 6: "44543355325225435425",
    7: "22234344553335324532", 8: "55223254444425544234", 9: "44525435222524335432",
    10: "52442352225544244454",
}  # fmt: skip
FIRST_TRIES = {
    1: "oooooooooootoootoooo", 2: "ooooeeooototooeeeott", 3: "toeooooeottteotottoe",
    4: "otototeoeoeotooooooo", 5: "ooototoeoooooooooooo", 6: "eeoooeoooooeototeeot",
    7: "ooootoeoottottteoooo", 8: "otoooooeoooooeeeooto", 9: "oooeoettootoototoeoe",
    10: "oootooootoootooootoo",
}  # fmt: skip
FAULT_LETTERS = {OK: "o", ERROR: "e", TIMEOUT: "t"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0x811C9DC5),
        ("a", 0xE40C292C),
        ("1:deliveries:intent-0", 0xBCBC17C3),
        ("1:fault:intent-0:1", 0x5BF2EE2A),
    ],
)
def test_the_hash_of_a_label(text: str, value: int) -> None:
    """Property: 32-bit FNV-1a over UTF-8."""
    assert fnv1a(text) == value


def test_the_first_shares_of_a_generator() -> None:
    """Property: mulberry32 with its published first outputs."""
    assert next(mulberry32(0)) == 0.26642920868471265
    assert list(islice(mulberry32(1), 3)) == [
        0.6270739405881613, 0.002735721180215478, 0.5274470399599522,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("deliveries:intent-0", 0.6849963830318302),
        ("fault:intent-0:1", 0.7205177049618214),
        ("latency:intent-0:1", 0.34238270530477166),
    ],
)
def test_a_share_depends_on_seed_and_label_alone(label: str, value: float) -> None:
    """Property: no other draw changes it."""
    assert share(1, label) == value
    share(1, "something else")
    assert share(1, label) == value


def test_deliveries_faults_and_latencies_of_seed_one() -> None:
    """Property: the check values of the recipe."""
    schedule = Schedule(1, (2, 5), 0.15, 0.15, (5.0, 90.0))
    names = [f"intent-{number}" for number in range(5)]
    assert [schedule.deliveries(name) for name in names] == [4, 5, 2, 3, 5]
    assert [schedule.fault("intent-0", n) for n in range(1, 6)] == [OK, OK, ERROR, OK, OK]
    seconds = [schedule.latency_seconds(name, 1) for name in names[:4]]
    assert seconds == [34.103, 84.064, 9.913, 38.672]


def test_jitter_goes_on_within_one_label() -> None:
    """Property: a worker's jitter is one stream; its first retry waits 94.328 ms in the recipe."""
    shares = list(islice(stream(1, "jitter:w1"), 3))
    assert shares == [0.23581977654248476, 0.13670238014310598, 0.422897761920467]
    assert round(shares[0] * 400, 3) == 94.328
    assert backoff_seconds(1, shares[0]) == shares[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_headline_delivers_as_published(seed: int) -> None:
    """Property: every intent of every seed is delivered as often as there."""
    schedule = Schedule(seed, (2, 5), 0.15, 0.15)
    drawn = "".join(str(schedule.deliveries(f"intent-{number}")) for number in range(20))
    assert drawn == DELIVERIES[seed]


@pytest.mark.parametrize("seed", SEEDS)
def test_first_tries_meet_the_published_faults(seed: int) -> None:
    """Property: ok, error or time-out of try 1, intent by intent."""
    schedule = Schedule(seed, (2, 5), 0.15, 0.15)
    drawn = "".join(FAULT_LETTERS[schedule.fault(f"intent-{n}", 1)] for n in range(20))
    assert drawn == FIRST_TRIES[seed]


def test_an_override_and_a_quick_later_try() -> None:
    """Property: what is set wins over what is drawn."""
    schedule = Schedule(3, overrides={1: TIMEOUT}, latency_range=(9.0, 9.0), slow_tries=1)
    assert (schedule.fault("intent-0", 1), schedule.fault("intent-0", 2)) == (TIMEOUT, OK)
    assert schedule.latency_seconds("intent-0", 1) == 9.0
    assert schedule.latency_seconds("intent-0", 2) == 0.0
