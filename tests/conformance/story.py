"""Short ways to bring rows of any outbox into any state, by the store's own commands alone."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ackbox.outbox.commands import (
    Claimed,
    GiveBack,
    LookAgain,
    Marked,
    MarkSend,
    Park,
    Record,
    Recorded,
    RecordProbe,
    Resend,
)
from ackbox.outbox.compensate import CompensationRequest, compensation_request
from ackbox.outbox.intent import Address, Content, Intent, Terms, content_of, draft_of
from ackbox.outbox.model import GateDecision, Refusal
from ackbox.outbox.outcome import Applied, NotApplied, Outcome, Unknown
from ackbox.outbox.people import Said
from ackbox.outbox.telling import tell
from ackbox.sim.clock import BEGINNING

from .outboxes import BY_NAME, SERVED, Outbox

W1, W2, R1 = (uuid.UUID(int=number) for number in (1, 2, 3))


class Story:
    """One outbox with worker W1 and reconciler R1; `n` is the intent_id and the lane of a step."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.people = outbox.people
        outbox.register(W1)
        outbox.register(R1, role="reconciler")
        self._said: dict[tuple[int, int], int] = {}
        self._elapsed = 0.0

    # -- planner ---------------------------------------------------------------------------------

    def content(self, name: str, tool: str = "keyless", **args: Any) -> Content:
        return content_of(tool, BY_NAME[tool].version, name, args or {"n": 1})

    def put(
        self, name: str = "n", tool: str = "keyless", *, keep: bool = False, **more: Any
    ) -> Any:
        args = more.pop("args", {"n": 1})
        seconds = more.pop("deadline_seconds", None)
        if seconds is not None:
            more["deadline"] = self.now + timedelta(seconds=seconds)
        draft = draft_of(content_of(tool, 1, name, args), Terms(**more), intent_id=name)
        return self.outbox.put(draft, keep=keep)

    def seq(self, name: str = "n", tool: str = "keyless", **more: Any) -> int:
        intent = self.put(name, tool, **more)
        assert isinstance(intent, Intent), intent
        return intent.seq

    def supersede(self, name: str = "n", generation: int = 0, **args: Any) -> Any:
        tool = args.pop("tool", "keyless")
        content = self.content(name, tool, **args) if args else None
        return self.outbox.supersede(Address("default", name), generation, content)

    def cancel(self, name: str = "n", generation: int | None = None) -> Any:
        return self.outbox.cancel(Address("default", name, generation))

    def told(self, name: str = "n", generation: int | None = None) -> str:
        found = self.outbox.tell(("default", name))
        telling = tell(found[0], generation, found[1])
        assert telling is not None
        return telling.told.word

    # -- workers ---------------------------------------------------------------------------------

    def claim(
        self, name: str = "n", owner: uuid.UUID = W1, knows: Sequence[str] = SERVED
    ) -> Claimed:
        (claimed,) = self.outbox.claim(name, 1, owner, knows=knows)
        return claimed

    def mark(self, claim: Claimed, owner: uuid.UUID = W1, digest: str = "d") -> Any:
        return self.outbox.mark(MarkSend(claim, digest), owner)

    def send(self, name: str = "n", owner: uuid.UUID = W1) -> Claimed:
        claim = self.claim(name, owner)
        assert self.mark(claim, owner) == Marked()
        return replace(claim, sends=claim.sends + 1)

    def record(self, claim: Claimed, outcome: Outcome) -> Recorded:
        said = self._said.get((claim.seq, claim.fence), 0)
        self._said[claim.seq, claim.fence] = said + 1
        kind = "evidence" if said else "attempt"
        recorded: Recorded = self.outbox.record(Record(claim, outcome, kind, said))
        return recorded

    def give_back(self, claim: Claimed, reason: str, unready: bool = False) -> Recorded:
        recorded: Recorded = self.outbox.give_back(GiveBack(claim, reason, 0.0, unready))
        return recorded

    def reap(self) -> Any:
        return self.outbox.reap(self.outbox.find_overdue())

    # -- rows in a state ---------------------------------------------------------------------------

    def awaiting(self, name: str = "n", tool: str = "keyless", **more: Any) -> Claimed:
        self.put(name, tool, **more)
        return self.send(name)

    def unknown(self, name: str = "n", tool: str = "keyless", *, quiet: bool = True) -> Claimed:
        claim = self.awaiting(name, tool)
        self.record(claim, Unknown("read timeout"))
        if quiet:
            self.advance(101)
        return claim

    def committed(self, name: str = "n", tool: str = "keyed", ref: str | None = "ref-1") -> Claimed:
        claim = self.awaiting(name, tool)
        assert self.record(claim, Applied(ref)).edge == "acknowledge"
        return claim

    def failed(self, name: str = "n", tool: str = "keyless") -> Claimed:
        claim = self.awaiting(name, tool)
        assert self.record(claim, NotApplied("no")).edge == "refuse"
        return claim

    def false_failed(self, name: str = "n", tool: str = "keyless") -> Claimed:
        claim = self.unknown(name, tool)
        self.outbox.people.not_landed(self.said(claim))
        return claim

    # -- everything else ---------------------------------------------------------------------------

    def said(self, claim: Claimed, reason: str = "looked at it") -> Said:
        return Said(claim.seq, "ops", reason, claim.fence)

    def plan(self, *, ensure_absent: bool = False) -> CompensationRequest:
        return compensation_request("undo", 1, "u", {"id": "ref-1"}, ensure_absent=ensure_absent)

    def compensate(self, seq: int, *, ensure_absent: bool = False) -> Any:
        return self.outbox.compensate(seq, self.plan(ensure_absent=ensure_absent))

    def decide(self, seq: int, decision: GateDecision, fingerprint: str | None = None) -> Any:
        found = fingerprint or self.content("n").fingerprint
        return self.outbox.decide(seq, decision, found)

    def probe(self, claim: Claimed, answer: str, **more: Any) -> Recorded:
        more.setdefault("was_quiet", True)
        recorded: Recorded = self.outbox.record_probe(RecordProbe(claim, answer, **more))
        return recorded

    def resend(self, claim: Claimed, digest: str = "d") -> Any:
        return self.outbox.resend(Resend(claim, digest), R1)

    def park(self, claim: Claimed) -> None:
        self.outbox.park(Park(claim, "max_probes", 300.0))

    def look_again(self, claim: Claimed) -> None:
        self.outbox.look_again(LookAgain(claim, 5.0))

    @property
    def now(self) -> Any:
        return BEGINNING + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds
        self.outbox.advance(seconds)
        for owner in (W1, R1):
            self.outbox.beat(owner)

    def state(self, seq: int) -> str:
        state = self.outbox.row(seq)["state"]
        return str(getattr(state, "value", state))

    def column(self, seq: int, name: str) -> Any:
        return self.outbox.row(seq)[name]

    def names(self, seq: int) -> list[str]:
        return [event[1] for event in self.outbox.events() if event[0] == seq]

    def divergence(self, seq: int) -> int:
        """Return the number that a statement about the row's divergence quotes."""
        found = [n for n, event in enumerate(self.outbox.events(), start=1)
                 if event[0] == seq and event[1] == "divergence"]  # fmt: skip
        return found[-1]


def code(answer: Any) -> str | None:
    """Return the code of a refusal, None for anything else."""
    if isinstance(answer, Refusal):
        return answer.code
    return getattr(answer, "code", None)
