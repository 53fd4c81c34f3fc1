"""What happened at the tools of a memory bus: every request that reached one, and every effect.

The one place that knows the truth. Nothing of the bus looks in here but the probe of a tool whose
answers were scripted, since there is nothing else that could be asked. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from ...outbox.commands import Claimed
from ...outbox.contract import KeyKind, ProbeStrength, ToolContract
from ...outbox.outcome import Applied
from ...tool_adapters.contract import Absent, Found, Inconclusive, ProbeAnswer


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that happened at a tool."""

    tool: str
    namespace: str
    intent_id: str
    generation: int
    wire_key: str
    args: Mapping[str, Any] = field(repr=False)
    """As the tool's function was given them."""
    ref: str = ""
    """The tool's own id of it."""
    undone: bool = False
    """A compensation has undone it."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that reached a tool. `took_effect` None: nobody has said."""

    wire_key: str
    at: datetime
    took_effect: bool | None
    scripted: bool


@dataclass(frozen=True, slots=True)
class _Standing:
    effect: Effect
    result: Any
    at: datetime


class Ledger:
    """Counts requests and effects. A key that a tool declares is kept: one effect per key."""

    def __init__(self) -> None:
        self._requests: list[_Request] = []
        self._effects: list[_Standing] = []

    def effects(self, tool: str | None = None) -> list[Effect]:
        """Return the effects in the order in which they happened."""
        return [one.effect for one in self._effects if tool in (None, one.effect.tool)]

    def note(
        self,
        claim: Claimed,
        contract: ToolContract,
        args: Mapping[str, Any],
        at: datetime,
        took_effect: bool | None,
        answer: Any = None,
        *,
        scripted: bool = False,
    ) -> None:
        """Count one request of a claimed row; `answer` is the Applied that told of the effect."""
        self._requests.append(_Request(claim.wire_key, at, took_effect, scripted))
        if not took_effect or self._is_known(claim.wire_key, contract, at):
            return
        ref = getattr(answer, "ref", None) or f"{claim.tool}-{len(self._effects) + 1}"
        result = answer.result if isinstance(answer, Applied) else None
        effect = Effect(
            claim.tool, claim.namespace, claim.intent_id, claim.generation, claim.wire_key,
            dict(args), ref,
        )  # fmt: skip
        self._effects.append(_Standing(effect, result, at))
        if claim.target is not None:
            self._undo(claim.target.wire_key)

    def _is_known(self, wire_key: str, contract: ToolContract, at: datetime) -> bool:
        """Return whether the tool remembers the key, as it declares that it does."""
        if contract.key.kind is KeyKind.NONE:
            return False
        window = contract.key.window_seconds
        return any(
            window is None or at < one.at + timedelta(seconds=window) for one in self._of(wire_key)
        )

    def _of(self, wire_key: str) -> Iterator[_Standing]:
        return (one for one in self._effects if one.effect.wire_key == wire_key)

    def _undo(self, wire_key: str) -> None:
        for number, one in enumerate(self._effects):
            if one.effect.wire_key == wire_key:
                self._effects[number] = replace(one, effect=replace(one.effect, undone=True))

    # -- probes ------------------------------------------------------------------------------------

    def answers_for(self, wire_key: str) -> bool:
        """Return whether a probe is answered here: some request of the key was scripted."""
        return any(one.scripted for one in self._requests if one.wire_key == wire_key)

    def probe(self, wire_key: str, contract: ToolContract) -> ProbeAnswer:
        """Answer a probe with the truth, as far as the test has told it."""
        if contract.probe is ProbeStrength.NONE:
            return Inconclusive("the tool declares no probe")
        standing = [one for one in self._of(wire_key) if not one.effect.undone]
        if standing:
            first, *others = standing
            refs = tuple(one.effect.ref for one in others)
            return Found(first.effect.ref, first.result, refs)
        if any(one.took_effect is None for one in self._requests if one.wire_key == wire_key):
            return Inconclusive("the test has not said whether it took effect")
        return Absent()
