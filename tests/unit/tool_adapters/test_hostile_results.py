"""An effect stands whatever its result, its reference or its digest do when they are looked at."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from ackbox.outbox.contract import Echo
from ackbox.outbox.outcome import Applied
from ackbox.tool_adapters.bounded import bounded
from ackbox.tool_adapters.classify_function import classify_function
from ackbox.tool_adapters.contract import Returned

LIMIT = 65_536


class Mute:
    """An object that raises when it is shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


class BadModel:
    """A model whose fields are no JSON."""

    def model_dump(self, mode: str) -> Any:
        """Raise as pydantic does for a type that it cannot serialise."""
        raise ValueError(f"cannot serialise to {mode}")


class BadMapping(dict[str, Any]):
    """A mapping that cannot be read."""

    def items(self) -> Any:
        """Raise."""
        raise KeyError("gone")


@dataclass
class WithLock:
    """A dataclass that cannot be copied, as `asdict` wants to."""

    lock: Any = field(default_factory=threading.Lock)


def deep() -> Any:
    """Return a list nested deeper than any recursion."""
    value: list[Any] = []
    for _ in range(50_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "result", [Mute(), BadModel(), BadMapping(a=1), WithLock(), deep()],
    ids=["mute", "model", "mapping", "dataclass", "deep"],
)  # fmt: skip
def test_a_result_that_raises_is_dropped_and_the_effect_stands(result: Any) -> None:
    """What cannot be stored costs the result only: the function has returned, so it is Applied."""
    outcome = bounded(classify_function(Echo.NONE, "key", Returned(result)), LIMIT)
    assert isinstance(outcome, Applied)
    assert outcome.result is None


def test_a_reference_and_a_digest_of_any_kind_become_text() -> None:
    """A batch of records is written as one JSON document: nothing in it may raise."""
    strange: Any = Mute()
    outcome = bounded(Applied(ref=strange, result_digest=strange, key_store=strange), LIMIT)
    assert outcome == Applied(ref="<Mute>", result_digest="<Mute>", key_store=True)
