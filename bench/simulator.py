"""How many steps the simulator takes in a second of one core's time. Shell-side: reads a clock."""

from __future__ import annotations

import gc
import time
from dataclasses import asdict, dataclass

from ..sim.speed import seeded_steps


@dataclass(frozen=True, slots=True)
class SimulatorSpeed:
    """What was measured; the best round counts, since other work on the machine only slows."""

    steps: int
    seconds: float
    steps_per_second: int

    def as_dict(self) -> dict[str, float]:
        """Return the figures with stable keys."""
        return asdict(self)


def measure_simulator(seeds: int, rounds: int) -> SimulatorSpeed:
    """Run seeded worlds on one core, every monitor on, and count steps."""
    gc.set_threshold(100_000)
    seeded_steps(0, 1)
    best: SimulatorSpeed | None = None
    for _ in range(rounds):
        start = time.process_time()
        steps = seeded_steps(0, seeds)
        seconds = time.process_time() - start
        speed = SimulatorSpeed(steps, round(seconds, 3), int(steps / seconds))
        if best is None or speed.steps_per_second > best.steps_per_second:
            best = speed
    assert best is not None, "there is at least one round"
    return best
