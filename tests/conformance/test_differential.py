"""Both outboxes are driven with the same commands, and every reply and every row is compared.

A state machine draws commands: whatever a planner, a worker, a reconciler, a pass or a person may
say, at any moment, to any row, with present and with old fences.
"""

import uuid
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ackbox.outbox.commands import (
    Claimed,
    GiveBack,
    LookAgain,
    MarkSend,
    Park,
    Record,
    RecordProbe,
    Resend,
)
from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.intent import Address, Terms, content_of, draft_of
from ackbox.outbox.model import Actor, GateDecision
from ackbox.outbox.outcome import Answer, Applied, NotApplied, Unknown
from ackbox.outbox.people import Said, Verdict
from ackbox.outbox.telling import tell

from .memory_outbox import MemoryOutbox
from .outboxes import BY_NAME, Outbox, comparable
from .postgres_outbox import PostgresOutbox
from .showing import facts, shown

NAMES = ("a", "b")
OWNERS = tuple(uuid.UUID(int=number) for number in (1, 2, 3))
PLACES = st.integers(0, 5)
OUTCOMES = (
    Applied("r1"), Applied("r2"), Applied(), NotApplied("no"), NotApplied("busy", transient=True),
    NotApplied("saved", key_store=True), Unknown("silence"),
    Unknown("cut", answer=Answer.CUT_OFF), Unknown("no echo", answer=Answer.COMPLETE),
)  # fmt: skip
GIVE_BACKS = ("shutdown", "build_failed", "no_worker_for_tool", "stale_read_set")
STATEMENTS = ("landed", "not", "requeue", "undone", "release", "stands", "by_hand")
EXAMPLES = 40
SECONDS = (1.0, 10.0, 31.0, 101.0, 500.0, 4000.0)


class TwoOutboxes(RuleBasedStateMachine):
    """Draws commands and compares."""

    postgres: ClassVar[PostgresOutbox]

    @initialize(tools=st.tuples(*[st.sampled_from(sorted(BY_NAME))] * len(NAMES)))
    def begin(self, tools: tuple[str, ...]) -> None:
        """Empty both, register the same processes and store the same steps."""
        self.postgres.begin()
        self.memory = MemoryOutbox()
        self.claims: list[tuple[Claimed, Claimed]] = []
        self.unknown: list[tuple[Claimed, Claimed]] = []
        self.both: tuple[Outbox, Outbox] = (self.memory, self.postgres)
        for outbox in self.both:
            for owner in OWNERS:
                outbox.register(owner)
        for name, tool in zip(NAMES, tools, strict=True):
            draft = draft_of(content_of(tool, 1, name, {"n": 1}), Terms(), intent_id=name)
            self.compare([outbox.put(draft) for outbox in self.both])

    # -- comparing ---------------------------------------------------------------------------------

    def compare(self, replies: list[Any]) -> None:
        """Compare two replies, then every row, event and observation."""
        first, second = (shown(r, o) for r, o in zip(replies, self.both, strict=True))
        assert first == second
        for one, other in zip(*(list(comparable(o)) for o in self.both), strict=True):
            assert one == other
        assert facts(self.memory, self.memory.events()) == facts(
            self.postgres, self.postgres.events()
        )
        assert facts(self.memory, self.memory.observations()) == facts(
            self.postgres, self.postgres.observations()
        )

    def seqs(self, place: int) -> list[int]:
        """Return the row at a place in each outbox."""
        return [outbox.seqs()[place % len(outbox.seqs())] for outbox in self.both]

    def has_rows(self) -> bool:
        """Say whether anything is stored."""
        return bool(self.memory.seqs())

    # -- planners ----------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES), tool=st.sampled_from(sorted(BY_NAME)), n=st.integers(0, 1),
        held=st.booleans(), deadline=st.booleans(), keep=st.booleans(),
    )  # fmt: skip
    def put(self, name: str, tool: str, n: int, held: bool, deadline: bool, keep: bool) -> None:
        """Store a step, or meet what is stored."""
        terms = Terms(
            held_for="ops" if held else None,
            deadline=self.memory.clock.now.replace(year=2027) if deadline else None,
            read_set={"budget": 0},
        )
        draft = draft_of(content_of(tool, 1, name, {"n": n}), terms, intent_id=name)
        self.compare([outbox.put(draft, keep=keep) for outbox in self.both])

    @precondition(has_rows)
    @rule(name=st.sampled_from(NAMES), generation=st.integers(0, 2), n=st.integers(0, 2))
    def supersede(self, name: str, generation: int, n: int) -> None:
        """Replace a generation by the same call (n = 2) or another one."""
        seq = self.memory.tables.names.get(("default", name), (0,))[0]
        tool = self.memory.tables.intents[seq].tool if seq else "keyless"
        content = None if n == 2 else content_of(tool, 1, name, {"n": n})
        address = Address("default", name)
        self.compare([o.supersede(address, generation, content) for o in self.both])

    @rule(name=st.sampled_from(NAMES))
    def cancel(self, name: str) -> None:
        """Call a step off."""
        self.compare([outbox.cancel(Address("default", name)) for outbox in self.both])

    @precondition(has_rows)
    @rule(name=st.sampled_from(NAMES), generation=st.integers(0, 2))
    def told(self, name: str, generation: int) -> None:
        """Both tell the same of every generation."""
        words = []
        for outbox in self.both:
            found = outbox.tell(("default", name))
            telling = tell(found[0], generation, found[1]) if found else None
            words.append(telling.told.as_dict() if telling else None)
        assert words[0] == words[1]

    # -- workers -----------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from((*NAMES, "u")),
        owner=st.sampled_from(OWNERS),
        alone=st.sampled_from((False, False, True)),
    )
    def claim(self, name: str, owner: uuid.UUID, alone: bool) -> None:
        """Claim the ready row of a lane."""
        taken = [outbox.claim(name, 1, owner, alone=alone) for outbox in self.both]
        self.compare(taken)
        self.claims += zip(*taken, strict=True)

    @rule(name=st.sampled_from((*NAMES, "u")), outcome=st.sampled_from((None, *OUTCOMES)))
    def attempt(self, name: str, outcome: Any) -> None:
        """Claim, mark, and hand in an outcome, or leave the request on its way."""
        self.hold_pass()
        taken = [outbox.claim(name, 1, OWNERS[0]) for outbox in self.both]
        self.compare(taken)
        for pair in zip(*taken, strict=True):
            self.claims.append(pair)
            both = list(zip(self.both, pair, strict=True))
            self.compare([o.mark(MarkSend(c, "d"), OWNERS[0]) for o, c in both])
            if outcome is not None:
                self.compare([o.record(Record(c, outcome)) for o, c in both])

    @rule(name=st.sampled_from(NAMES))
    def lose_track(self, name: str) -> None:
        """Let the latest request become unknown and quiet, and look at it."""
        self.attempt(name, Unknown("silence"))
        for outbox in self.both:
            outbox.advance(101)
            outbox.beat(OWNERS[0])
        self.find_unknown()

    @precondition(lambda self: self.claims)
    @rule(place=PLACES, owner=st.sampled_from(OWNERS))
    def mark(self, place: int, owner: uuid.UUID) -> None:
        """Ask for a send mark, with the right process or another one."""
        pair = self.claims[-1 - place % len(self.claims)]
        self.compare(
            [o.mark(MarkSend(c, "d"), owner) for o, c in zip(self.both, pair, strict=True)]
        )

    @precondition(lambda self: self.claims)
    @rule(place=PLACES, outcome=st.sampled_from(OUTCOMES), number=st.integers(0, 2))
    def record(self, place: int, outcome: Any, number: int) -> None:
        """Hand in an outcome, the first word of an attempt or a later one."""
        pair = self.claims[-1 - place % len(self.claims)]
        kind = "evidence" if number else "attempt"
        self.compare(
            [
                o.record(Record(c, outcome, kind, number))
                for o, c in zip(self.both, pair, strict=True)
            ]
        )

    @precondition(lambda self: self.claims)
    @rule(place=PLACES, reason=st.sampled_from(GIVE_BACKS))
    def give_back(self, place: int, reason: str) -> None:
        """Return a claim unsent."""
        pair = self.claims[-1 - place % len(self.claims)]
        unready = reason not in ("shutdown", "stale_read_set")
        self.compare(
            [
                o.give_back(GiveBack(c, reason, 0.0, unready))
                for o, c in zip(self.both, pair, strict=True)
            ]
        )

    @rule()
    def reap(self) -> None:
        """Run a reaper's pass."""
        self.compare([sorted(outbox.reap(outbox.find_overdue())) for outbox in self.both])

    # -- time, heartbeats, pauses, read sets -------------------------------------------------------

    @rule(seconds=st.sampled_from(SECONDS), alive=st.sampled_from((OWNERS, OWNERS[:1])))
    def wait(self, seconds: float, alive: tuple[uuid.UUID, ...]) -> None:
        """Let time pass; some processes beat."""
        for outbox in self.both:
            outbox.advance(seconds)
            for owner in alive:
                outbox.beat(owner)
        self.compare([outbox.ready_lanes() for outbox in self.both])

    @rule(tool=st.sampled_from(sorted(BY_NAME)), on=st.booleans(), touches=st.booleans())
    def change(self, tool: str, on: bool, touches: bool) -> None:
        """Pause a tool or let it go on; change what read sets looked at."""
        for outbox in self.both:
            outbox.pause(tool, on=on)
            if touches:
                outbox.touch("budget")

    # -- held rows, compensations, gates -----------------------------------------------------------

    @rule()
    def hold_pass(self) -> None:
        """Finish undos and look at every held row, undoing where the outbox wants it."""
        plan = compensation_request("undo", 1, "u", {"id": "r1"})
        replies: list[list[Any]] = []
        for outbox in self.both:
            done: list[Any] = [outbox.finish_undo(seq) for seq in outbox.find_undone()]
            for seq in sorted(outbox.find_held()):
                answer = outbox.hold_step(seq)
                if answer.owner is not None:
                    answer = outbox.order(seq, answer.owner, plan)
                done.append(answer)
            replies.append(done)
        self.compare(replies)

    @precondition(has_rows)
    @rule(place=PLACES, by_marker=st.booleans())
    def compensate(self, place: int, by_marker: bool) -> None:
        """Ask for an undo of any row."""
        plan = compensation_request("undo", 1, "u", {"id": "r1"}, ensure_absent=by_marker)
        self.compare(
            [
                o.compensate(seq, plan, Actor.PLANNER)
                for o, seq in zip(self.both, self.seqs(place), strict=True)
            ]
        )

    @precondition(has_rows)
    @rule(place=PLACES, decision=st.sampled_from(("approved", "rejected")), right=st.booleans())
    def decide(self, place: int, decision: str, right: bool) -> None:
        """Decide a gate, for its content or for another one."""
        replies = []
        for outbox, seq in zip(self.both, self.seqs(place), strict=True):
            place_seq = self.memory.seqs()[place % len(self.memory.seqs())]
            print_of = self.memory.tables.intents[place_seq].fingerprint
            fingerprint = print_of if right else "other"
            replies.append(outbox.decide(seq, GateDecision(decision), fingerprint))
        self.compare(replies)

    # -- unknown rows ------------------------------------------------------------------------------

    @rule()
    def find_unknown(self) -> None:
        """Look for unknown rows; what was seen may be acted on later."""
        found = [outbox.find_unknown() for outbox in self.both]
        self.compare(found)
        pairs = zip(*([one.claim for one in some] for some in found), strict=True)
        self.unknown += pairs

    @precondition(lambda self: self.unknown)
    @rule(
        place=PLACES, answer=st.sampled_from(("found", "absent", "inconclusive")),
        others=st.sampled_from(((), ("r9",))), quiet=st.booleans(),
    )  # fmt: skip
    def probe(self, place: int, answer: str, others: tuple[str, ...], quiet: bool) -> None:
        """Hand in a probe's answer."""
        pair = self.unknown[-1 - place % len(self.unknown)]
        ref = "r1" if answer == "found" else None
        more = others if answer == "found" else ()
        self.compare(
            [
                o.record_probe(RecordProbe(c, answer, ref, was_quiet=quiet, others=more))
                for o, c in zip(self.both, pair, strict=True)
            ]
        )

    @precondition(lambda self: self.unknown)
    @rule(place=PLACES, digest=st.sampled_from(("d", "d", "other")))
    def resend(self, place: int, digest: str) -> None:
        """Take a row for one more send under its key."""
        pair = self.unknown[-1 - place % len(self.unknown)]
        replies = [
            o.resend(Resend(c, digest), OWNERS[2]) for o, c in zip(self.both, pair, strict=True)
        ]
        self.compare(replies)
        if all(isinstance(one, Claimed) for one in replies):
            self.claims.append((replies[0], replies[1]))

    @precondition(lambda self: self.unknown)
    @rule(place=PLACES, parks=st.booleans())
    def look_again(self, place: int, parks: bool) -> None:
        """Set the next look, or put the row in front of a person."""
        pair = self.unknown[-1 - place % len(self.unknown)]
        for outbox, claim in zip(self.both, pair, strict=True):
            if parks:
                outbox.park(Park(claim, "max_probes", 300.0))
            else:
                outbox.look_again(LookAgain(claim, 5.0))
        self.compare([None, None])

    # -- people ------------------------------------------------------------------------------------

    @precondition(has_rows)
    @rule(
        place=PLACES, old=st.booleans(), risky=st.booleans(), quotes=st.booleans(),
        what=st.sampled_from(STATEMENTS),
    )  # fmt: skip
    def says(self, place: int, old: bool, risky: bool, quotes: bool, what: str) -> None:
        """A person says something about any row, quoting what they saw or something else."""
        replies = []
        for outbox, seq in zip(self.both, self.seqs(place), strict=True):
            fence = outbox.row(seq)["fence"] + (1 if old else 0)
            said = Said(seq, "ops", "looked at it", fence)
            replies.append(_say(outbox, said, what, risky, _quoted(outbox, quotes)))
        self.compare(replies)

    # -- consumers ---------------------------------------------------------------------------------

    @precondition(has_rows)
    @rule(hands_over=st.booleans())
    def bind(self, hands_over: bool) -> None:
        """Ask for the binding of every row."""
        tools = tuple(BY_NAME) if hands_over else ()
        self.compare([outbox.bind_rows(outbox.seqs(), tools) for outbox in self.both])


def _quoted(outbox: Outbox, quotes: bool) -> int | None:
    numbers = [n for n, event in enumerate(outbox.events(), start=1) if event[1] == "divergence"]
    return numbers[-1] if quotes and numbers else None


def _say(outbox: Outbox, said: Said, what: str, risky: bool, divergence: int | None) -> Any:
    people = outbox.people
    if what == "landed":
        return people.landed(said, "r1")
    if what in ("not", "requeue"):
        return people.not_landed(said, requeue=what == "requeue", may_duplicate=risky)
    if what == "undone":
        return people.undone(said)
    if what == "release":
        return people.release(said, may_duplicate=risky, divergence=divergence)
    verdict = Verdict.STANDS if what == "stands" else Verdict.UNDONE
    return people.close_divergence(said, divergence or 0, verdict)


@pytest.mark.timeout(300)
def test_both_outboxes_answer_alike(postgres_outbox: PostgresOutbox) -> None:
    """Every reply, row, event and observation is the same on both, whatever is drawn."""
    TwoOutboxes.postgres = postgres_outbox
    run_state_machine_as_test(
        TwoOutboxes,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
