"""Whatever a test does to a bus in memory: no effect twice, and no effect told as not there."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ackbox.outbox.told import Cancelled, Committed, Failed
from ackbox.testing import MemoryBus

from ..support.memory_provider import BEHAVIOURS, KINDS, Provider

STEPS = ("a", "b", "c")
POINTS = ("before_send", "after_mark", "after_effect", "before_settle")
ACTS = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from(STEPS),
        st.sampled_from(KINDS),
        st.lists(st.sampled_from(BEHAVIOURS), max_size=4),
    ),
    st.tuples(st.just("crash"), st.sampled_from(POINTS)),
    st.tuples(st.just("advance"), st.sampled_from([0.0, 0.5, 3.0, 40.0, 700.0, 90_000.0])),
    st.tuples(st.just("cancel"), st.sampled_from(STEPS)),
    st.tuples(st.just("again"), st.sampled_from(STEPS)),
)


class Run:
    """One program on one bus, with the truth beside it."""

    def __init__(self, seed: int) -> None:
        self.provider = Provider()
        self.bus = MemoryBus(self.provider.tools(), seed=seed)
        self.intents: dict[str, tuple[Any, ...]] = {}

    def act(self, name: str, *given: Any) -> None:
        """Do one thing of a program."""
        if name == "crash":
            self.bus.crash(given[0])
        elif name == "advance":
            self.bus.advance(given[0])
        elif name == "put" and given[0] not in self.intents:
            self.intents[given[0]] = given
            self._put(*given)
        elif name == "again" and given[0] in self.intents:
            self._put(*self.intents[given[0]])
        elif name == "cancel" and given[0] in self.intents:
            self._cancel(given[0])

    def _put(self, step: str, kind: str, behaviours: list[str]) -> None:
        self.bus.planner.put(kind, {"behaviours": behaviours}, run_id="r1", step=step)

    def _cancel(self, step: str) -> None:
        told = self.bus.told(("r1", step))
        if not isinstance(told, Committed) and told is not None and told.word != "committed":
            self.bus.planner.cancel(("r1", step))

    def check(self) -> None:
        """Compare what is told with what happened."""
        assert all(count <= 1 for count in self.provider.effects.values())
        counted = [effect.wire_key for effect in self.bus.effects()]
        assert len(counted) == len(set(counted))
        for step in self.intents:
            told = self.bus.told(("r1", step))
            assert told is not None
            happened = self.provider.effects[told.wire_key]
            if isinstance(told, Failed | Cancelled):
                assert not happened, (step, told.word, self.bus.history(("r1", step)))
            if told.word == "committed":
                assert happened, (step, self.bus.history(("r1", step)))


@settings(max_examples=150, deadline=None)
@given(program=st.lists(ACTS, max_size=14), seed=st.integers(0, 3))
def test_no_effect_twice_and_none_told_as_not_there(
    program: list[tuple[Any, ...]], seed: int
) -> None:
    """Programs of puts, cancels, crashes and time over tools without key, with one, with a probe.

    In the end every keyed and every probed step is settled: nothing is left for ever.
    """
    run = Run(seed)
    with run.bus:
        for act in program:
            run.act(*act)
            run.check()
        run.bus.advance(40 * 86_400)
        run.check()
        for step, kind, *_ in run.intents.values():
            told = run.bus.told(("r1", step))
            assert told is not None
            assert told.word in ("committed", "failed", "cancelled", "unknown"), told
            assert kind == "keyless" or told.word != "in_flight"
