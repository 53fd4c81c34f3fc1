"""The plan that the demo runs: its steps, each one call of one of three tools.

Pure. The tools differ in what they promise: the ticket tool honours its key, the mail tool can only
be asked whether it was done, the charge tool can do neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...outbox.identity import DEFAULT_NAMESPACE, mint_intent_id
from ...tool_adapters.fake_tools import CHARGE, MAIL, TICKET

LANES = {TICKET: "tickets", MAIL: "mails", CHARGE: "charges"}
"""The lane of each tool; the fake provider's endpoint has the same name."""
KEYLESS = CHARGE
"""The only tool whose unknowns may end in front of a person."""
_CYCLE = (TICKET, MAIL, CHARGE)
_NAMES = {TICKET: "open-ticket", MAIL: "mail-customer", CHARGE: "charge-card"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the plan."""

    run_id: str
    name: str
    tool: str
    args: Mapping[str, Any] = field(repr=False)

    @property
    def lane(self) -> str:
        """The lane of the step's tool."""
        return LANES[self.tool]

    @property
    def intent_id(self) -> str:
        """The id that a planner mints for this step, however often it starts again."""
        return mint_intent_id(DEFAULT_NAMESPACE, self.run_id, self.name)

    @property
    def is_keyless(self) -> bool:
        """Whether an unknown outcome of this step can only be settled by a person."""
        return self.tool == KEYLESS


def plan_steps(run_id: str, count: int) -> list[Step]:
    """Return the plan's steps in order: the three tools in turn."""
    return [_step(run_id, number) for number in range(1, count + 1)]


def _step(run_id: str, number: int) -> Step:
    tool = _CYCLE[(number - 1) % len(_CYCLE)]
    args: dict[str, Any] = {"subject": f"case {number}"}
    if tool == CHARGE:
        args["cents"] = 100 * number
    return Step(run_id, f"{_NAMES[tool]}-{number}", tool, args)
