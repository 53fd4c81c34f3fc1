"""What the edge statement keeps beside a move, and what a refused one leaves behind."""

from collections.abc import Iterator

import pytest

from ackbox.outbox.commands import Claimed, Resend
from ackbox.outbox.model import Actor, Move, State
from ackbox.outbox.outcome import Unknown
from ackbox.outbox.shell.moves import Write, observation_of, order, perform

from ..support.seed import KEYED, Seeded


@pytest.fixture
def outbox(database_url: str) -> Iterator[Seeded]:
    """Give an outbox with a living worker."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


def move(outbox: Seeded, edge: str, seq: int, why: str, actor: Actor) -> bool:
    """Ask for a move out of queued with an order beside it; return whether it took place."""
    write = Write(Move(edge, seq, State.QUEUED, reason=why), actor, observation=order(why))
    return bool(outbox.run(lambda c: perform(c, outbox.statements, [write])))


def documents(outbox: Seeded, seq: int) -> list[tuple[str, str]]:
    """Return (actor, reason) of a row's observations."""
    rows = outbox.sql(
        "SELECT actor, document ->> 'reason' AS reason FROM {schema}.observation"
        " WHERE seq = :s ORDER BY observation_id", s=seq,
    )  # fmt: skip
    return [(row["actor"], row["reason"]) for row in rows]


def test_a_refused_order_leaves_nothing_that_a_later_one_could_settle_on(outbox: Seeded) -> None:
    """The observation of a cancelled row is the cancel's own, not an earlier attempt's at it."""
    seq = outbox.put("i")
    assert not move(outbox, "withdraw", seq, "deadline", Actor.REAPER)
    assert documents(outbox, seq) == []
    assert move(outbox, "withdraw.cancel", seq, "asked for", Actor.PERSON)
    assert documents(outbox, seq) == [("person", "asked for")]


def test_the_outcome_of_an_attempt_is_kept_although_its_move_is_refused(outbox: Seeded) -> None:
    """Proof is never thrown away for a guard."""
    claim = outbox.awaiting("i")
    stale = Move("lose", claim.seq, State.AWAITING_ACK, fence=claim.fence - 1)
    write = Write(stale, Actor.WORKER, claim.contract_id, observation_of(Unknown("timeout")))
    assert outbox.run(lambda c: perform(c, outbox.statements, [write])) == {}
    rows = outbox.sql("SELECT outcome FROM {schema}.observation WHERE seq = :s", s=claim.seq)
    assert [row["outcome"] for row in rows] == ["unknown"]


def test_the_age_of_an_unknown_counts_from_the_first_one(outbox: Seeded) -> None:
    """A resend that is lost again does not start the clock towards a person anew."""
    claim = outbox.unknown("i", KEYED)
    since = outbox.row(claim.seq)["unknown_since"]
    assert since is not None
    resent = outbox.unknowns.resend(Resend(claim, "digest"), outbox.owner)
    assert isinstance(resent, Claimed)
    outbox.advance(5)
    outbox.record(resent, Unknown("timeout again"))
    assert outbox.row(claim.seq)["unknown_since"] == since
