"""What the tests of compensations share: plans, and asking for one."""

from typing import Any

from ackbox.outbox.compensate import OrderedCompensation, compensation_request
from ackbox.outbox.model import Refusal
from ackbox.outbox.outcome import Applied

from .seed import Seeded

PLAN = compensation_request("undo", 1, "undo", {"of": "ref-1"})
ENSURE = compensation_request("undo", 1, "undo", {"marker": "a"}, ensure_absent=True)


def code(answer: Any) -> str:
    """Return a refusal's code."""
    assert isinstance(answer, Refusal), answer
    return answer.code


def ordered(answer: Any) -> OrderedCompensation:
    """Return an accepted order."""
    assert isinstance(answer, OrderedCompensation), answer
    return answer


def run_undo(seeded: Seeded, outcome: Any = None) -> int:
    """Execute the open compensation; returns its seq."""
    claim = seeded.send("undo")
    seeded.record(claim, outcome or Applied("undone"))
    return claim.seq


def old_commit(seeded: Seeded, name: str = "a", **said: Any) -> int:
    """Return a committed row that nothing is on its way to any more."""
    claim = seeded.committed(name, **said)
    seeded.advance(200)
    return claim.seq
