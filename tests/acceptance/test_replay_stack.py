"""Three shipped traces on the whole stack: real workers, real HTTP, SIGKILL, SIGSTOP, tokens.

All traces that can be mapped run by `ackbox sim replay --all --on stack`.
"""

from dataclasses import replace

import pytest

from ackbox.app.settings import Settings, load_settings
from ackbox.app.sim.replay_stack import replay_on_stack
from ackbox.sim.shipped import shipped
from ackbox.sim.trace_run import Outcome, run_trace

pytestmark = pytest.mark.acceptance


@pytest.fixture
def settings(database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Give settings that name the servers of the test run."""
    monkeypatch.setenv("ACKBOX_DATABASE_URL", database_url)
    monkeypatch.setenv("ACKBOX_REDIS_URL", redis_url)
    return load_settings()


@pytest.mark.parametrize("name", ["killed_before_recording", "essay_good"])
def test_a_trace_ends_on_the_stack_as_in_memory(name: str, settings: Settings) -> None:
    """Killed before it records: sent again under its key. Stopped after the effect: told late."""
    replayed = replay_on_stack(shipped(name), settings)
    assert replayed.not_mapped is None
    assert replayed.complaints == ()


def test_another_number_of_effects_is_found_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: memory is said to have had two effects, and the provider counts one."""
    from ackbox.app.sim import replay_stack

    def run_otherwise(trace: object) -> Outcome:
        outcome = run_trace(shipped("lost_token"))
        return replace(outcome, counters={**outcome.counters, "external_commits": 2})

    monkeypatch.setattr(replay_stack, "run_trace", run_otherwise)
    monkeypatch.setattr(replay_stack, "END_SECONDS", 3.0)
    replayed = replay_on_stack(shipped("lost_token"), settings)
    assert replayed.complaints == ("counters external_commits is 1, not 2",)
