"""The simulator's own work to be measured: how many steps a fixed set of seeded worlds takes.

A step is one thing that is chosen and checked, or one command of a procedure that is answered
beside it because it touches nothing shared. There is no clock in here: the caller has one. May
import `seeded`.
"""

from __future__ import annotations

from .seeded import KINDS, SeededRun, seeded_plan, seeded_spec

WORKERS = 3
STEPS_OF_A_PLAN = 6


def seeded_steps(first_seed: int, seeds: int) -> int:
    """Run every kind of world under some seeds, monitors on; return the steps taken."""
    taken = 0
    for seed in range(first_seed, first_seed + seeds):
        for kind in KINDS:
            run = SeededRun(seeded_spec(kind, WORKERS), seed, seeded_plan(seed, STEPS_OF_A_PLAN))
            run.run()
            taken += run.world.tally["steps"] + run.world.tally["local_steps"]
    return taken
