"""Every scenario, and which failure mode is which. May import the scenario modules."""

from __future__ import annotations

from . import (
    scenarios_crash,
    scenarios_delivery,
    scenarios_load,
    scenarios_people,
    scenarios_tool,
)
from .scenario import Scenario

FAULTS: dict[str, str] = {
    "F1": "duplicate deliveries",
    "F2": "a time-out that may have landed",
    "F3": "a crash after the effect",
    "F4": "a crash before the effect",
    "F5": "a crash around a gate",
    "F6": "racing decisions",
    "F7": "a retry storm",
    "F8": "skewed clocks and stalls",
    "F9": "the same key with other arguments",
    "F10": "a result that is too large",
    "F11": "the store is down",
    "F12": "a gate that times out",
    "F13": "generations: superseded, asked again, undone",
    "F14": "a success without our key",
    "F15": "a late commit at the tool",
    "F16": "a key that the tool has forgotten",
    "F17": "lost queue tokens",
    "F18": "a claim that kills its worker",
}
"""F1 to F12 are sluice's failure modes, F13 to F18 ours."""
SCENARIOS: tuple[Scenario, ...] = (
    *scenarios_delivery.SCENARIOS,
    *scenarios_crash.SCENARIOS,
    *scenarios_people.SCENARIOS,
    *scenarios_tool.SCENARIOS,
    *scenarios_load.SCENARIOS,
)
