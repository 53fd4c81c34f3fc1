"""The plan file of one run's kills, and which of them have happened.

Whoever is to be killed reads the file by itself; here it is written, replaced as a whole, and the
markers that the killed leave behind are counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from .plan import Step

_FIRED = "fired-"


class KillPlan:
    """The kills of one side of the demo, by step name."""

    def __init__(self, folder: Path, steps: Mapping[str, Step], kills: Mapping[str, str]) -> None:
        """Write the plan file into the folder."""
        self.path = folder / "faults.json"
        self._steps = steps
        self.aimed = dict(kills)
        self._write()

    def aim(self, kills: Mapping[str, str]) -> None:
        """Add kills; running processes read them at the next point that they reach."""
        self.aimed.update(kills)
        self._write()

    def fired(self) -> set[str]:
        """Return the names of the steps at which a process was killed."""
        found = {path.name for path in self.path.parent.glob(f"{_FIRED}*")}
        return {
            name
            for name, point in self.aimed.items()
            if f"{_FIRED}{point}-{self._steps[name].intent_id}" in found
        }

    def _write(self) -> None:
        entries = [
            {"point": point, "intent_id": self._steps[name].intent_id, "action": "kill"}
            for name, point in self.aimed.items()
        ]
        unfinished = self.path.with_suffix(".new")
        unfinished.write_text(json.dumps(entries), encoding="utf-8")
        os.replace(unfinished, self.path)
