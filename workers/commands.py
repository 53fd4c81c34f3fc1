"""What an attempt asks of a tool's adapter and of the wire, and what it gets back.

Pure shapes. A user's adapter may raise in `Build`, `Prepare`, `Encode`, `Classify` and `Probe`:
the driver answers with `Raised`, so that the procedures need no try. `Exchange` sends the effect
and is yielded at most once, after the mark; `Fetch` is a harmless request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..outbox.commands import Claimed
from ..outbox.outcome import NotApplied
from ..tool_adapters.contract import Evidence, Request


@dataclass(frozen=True, slots=True)
class Raised:
    """An adapter raised. `outcome` is set where it raised NotApplied, a proof of its own."""

    error_type: str
    where: str = ""
    outcome: NotApplied | None = None


@dataclass(frozen=True, slots=True)
class NoTool:
    """This process does not know the tool at the row's version."""


@dataclass(frozen=True, slots=True)
class Build:
    """Check the stored args. Reply: None, Raised or NoTool."""

    claim: Claimed


@dataclass(frozen=True, slots=True)
class Prepare:
    """Ask for the next harmless request. Reply: Request, Prepared or Raised."""

    claim: Claimed
    answers: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Encode:
    """Build the whole effect request. Reply: Request or Raised."""

    claim: Claimed
    handle: Any = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send one harmless request. Reply: Evidence."""

    claim: Claimed
    request: Request


@dataclass(frozen=True, slots=True)
class Exchange:
    """Send the effect, before the send deadline or not at all. Reply: Evidence."""

    claim: Claimed
    request: Request


@dataclass(frozen=True, slots=True)
class Classify:
    """Ask what the evidence proves. Reply: Outcome, Request (one more read) or Raised."""

    claim: Claimed
    evidence: Evidence
    follow_ups: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the adapter's probe. Reply: Request, Found, Absent, Inconclusive or Raised."""

    claim: Claimed
    answers: tuple[Evidence, ...] = ()
