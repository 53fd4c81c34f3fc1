"""What scenarios do again and again: kill a worker at a point, stall it, reach the next lapse.

May import `case`.
"""

from __future__ import annotations

from .case import Case

WORKERS = ("w1", "w2")
LAPSE_SECONDS = 25.0
"""Longer than a process may be silent before it counts as dead."""


def run_until(case: Case, worker: str, step: str, point: str) -> None:
    """Let a worker's attempt go on until it stands before a command, has sent, or was heard."""
    case.carry("run", who=attempt_of(case, worker, step), until=point)


def attempt_of(case: Case, worker: str, step: str) -> str:
    """Return the name of a worker's attempt of a step's live row."""
    return f"{worker}:{case.world.row_of(step)}"


def die_at(case: Case, worker: str, step: str, point: str) -> None:
    """Have a worker take a step and die at a point; a new one is started in its place."""
    if case.deliver(worker, step):
        run_until(case, worker, step, point)
    kill(case, worker)


def kill(case: Case, worker: str) -> None:
    """Kill a worker and start a new one, which knows nothing of the old one's work."""
    case.apply(("crash", worker))
    case.apply(("restart", worker))


def let_lapse(case: Case) -> None:
    """Wait until the dead are known to be dead, and let the reaper pass."""
    case.run_for(LAPSE_SECONDS)


def deliver_all(case: Case, step: str, deliveries: int, first: int = 0) -> None:
    """Deliver a step's token again and again, to one worker after the other."""
    for number in range(first, first + deliveries):
        case.deliver(WORKERS[number % 2], step)


def approve(case: Case, step: str, decision: str = "approved") -> None:
    """Have a person decide a step's gate."""
    case.apply(("decide", step, decision))


def start_gate_clock(case: Case) -> None:
    """Let the pass run that finds out that only the gate is left to wait for."""
    case.carry("pass", role="hold")
