"""What people are shown: unknowns with the next step, one intent's history, lists, counts."""

import json
from collections.abc import Iterator

import pytest

from ackbox.outbox.commands import Park
from ackbox.outbox.compensate import compensation_request
from ackbox.outbox.model import State
from ackbox.outbox.outcome import Applied, Unknown
from ackbox.outbox.people import Said
from ackbox.outbox.shell.history import (
    IntentFilter,
    counts,
    history,
    list_intents,
    row_to_speak_of,
    unknowns,
)

from ..support.databases import Databases
from ..support.seed import KEYED, KEYLESS, PROBED, WINDOWED, Seeded, seeded_outbox

SECRET = "do-not-show-4711"


@pytest.fixture(scope="module")
def outbox(databases: Databases) -> Iterator[Seeded]:
    """Give this module's outbox."""
    yield from seeded_outbox(databases)


@pytest.fixture
def seeded(outbox: Seeded) -> Seeded:
    """Give the outbox with one worker and no rows."""
    return outbox.wipe()


def shown(seeded: Seeded, namespace: str | None = None) -> dict[str, dict[str, object]]:
    """Return the list of unknowns by intent_id, as JSON would have it."""
    rows = seeded.run(lambda c: unknowns(c, seeded.statements, namespace=namespace))
    return {row.intent_id: json.loads(json.dumps(row.as_dict())) for row in rows}


def test_unknowns_say_what_is_known_and_whose_turn_it_is(seeded: Seeded) -> None:
    """One line each: age, tool, sends, last word, window, next."""
    for name, tool in (("p", PROBED), ("w", WINDOWED), ("n", KEYLESS)):
        claim = seeded.unknown(name, tool)
    seeded.unknowns.park(Park(claim, "no_rung_left", 300.0))
    rows = shown(seeded)
    assert rows["p"]["next"] == "probe in 0 s"
    assert rows["w"]["next"] == "resend in 0 s (same key)"
    assert rows["n"]["next"] == "yours: it landed | did not land | undone | compensate"
    assert rows["w"]["last_word"] == "read timeout"
    assert 80_000 < float(str(rows["w"]["window_left_seconds"])) < 86_400
    assert rows["p"]["window_left_seconds"] is None
    assert [row["sends"] for row in rows.values()] == [1, 1, 1]
    assert list(rows) == ["p", "w", "n"], "oldest first"


def test_unknowns_hold_what_waits_for_a_person_in_held(seeded: Seeded) -> None:
    """A parked held row says what it waits for; a diverged one gives the number to quote."""
    seeded.record(seeded.awaiting("a", KEYLESS, x=1), Applied("ref-1"))
    second = seeded.supersede("a", x=2)
    seeded.hold_step(second)
    assert shown(seeded)["a"]["last_word"] == "held: person"
    assert shown(seeded)["a"]["next"] == "yours: release | cancel"
    first = seeded.false_failed("b", x=1)
    seeded.supersede("b", x=2)
    seeded.record(first, Applied("late"))
    row = shown(seeded)["b"]
    assert row["divergence"] == seeded.divergence(first.seq)
    assert row["next"] == "yours: release | close-divergence"


def test_an_expired_row_names_the_lease_as_its_last_word(seeded: Seeded) -> None:
    """Nobody came back: there is no observation to quote."""
    claim = seeded.awaiting("a")
    seeded.advance(100)
    seeded.reaper.reap([claim.seq])
    assert shown(seeded)["a"]["last_word"] == "lease_over"


def test_unknowns_of_another_namespace_are_left_out(seeded: Seeded) -> None:
    """Everything is per namespace."""
    seeded.unknown("a")
    assert list(shown(seeded, "default")) == ["a"]
    assert shown(seeded, "other") == {}


def test_a_history_tells_everything_of_one_intent_in_order(seeded: Seeded) -> None:
    """Both generations and the compensation, events and observations, by time."""
    claim = seeded.unknown("a", PROBED, secret=SECRET)
    seeded.people.landed(Said(claim.seq, "ops", "seen in the inbox", claim.fence), "ref-1")
    plan = compensation_request("undo", 1, "undo", {"secret": SECRET}, ensure_absent=True)
    seeded.order(claim.seq, plan)
    seeded.supersede("a", tool=PROBED, x=2)
    told = seeded.run(lambda c: history(c, seeded.statements, "a"))
    assert told is not None
    assert [(one.intent_id, one.generation) for one in told.generations] == [
        ("a", 0), ("a~undo0", 0), ("a", 1)
    ]  # fmt: skip
    names = [entry.name for entry in told.entries if entry.seq == claim.seq]
    assert names == [
        "put", "claim", "send", "unknown", "lose", "applied", "acknowledge.person",
        "undo_ordered", "supersede",
    ]  # fmt: skip
    statement = next(entry for entry in told.entries if entry.name == "acknowledge.person")
    assert (statement.actor_name, statement.reason) == ("ops", "seen in the inbox")
    assert SECRET not in json.dumps(told.as_dict())


def test_an_unknown_name_has_no_history(seeded: Seeded) -> None:
    """None, for the caller's own words."""
    assert seeded.run(lambda c: history(c, seeded.statements, "nobody")) is None


def test_a_person_speaks_of_the_unknown_generation_unless_they_name_one(seeded: Seeded) -> None:
    """What waits for a person may be an earlier generation; the live one otherwise."""
    claim = seeded.unknown("a")
    second = seeded.supersede("a", x=2)

    def meant(generation: int | None = None) -> int | None:
        row = seeded.run(
            lambda c: row_to_speak_of(c, seeded.statements, "a", generation=generation)
        )
        return row.seq if row else None

    assert (meant(), meant(1), meant(7)) == (claim.seq, second, None)
    seeded.people.not_landed(Said(claim.seq, "ops", "nothing there", claim.fence))
    assert meant() == second


def test_lists_are_filtered_and_paged_by_their_last_row(seeded: Seeded) -> None:
    """Newest first; a page never shows a row twice, whatever is put meanwhile."""
    seqs = [seeded.put(f"a{number}") for number in range(3)]
    seeded.put("b", KEYED)

    def page(wanted: IntentFilter, before: int | None = None) -> list[int]:
        rows = seeded.run(
            lambda c: list_intents(c, seeded.statements, wanted, before_seq=before, limit=2)
        )
        assert json.dumps([row.as_dict() for row in rows])
        return [row.seq for row in rows]

    only = IntentFilter(prefix="a", state=State.QUEUED, tool="keyless")
    assert page(only) == [seqs[2], seqs[1]]
    seeded.put("a9")
    assert page(only, seqs[1]) == [seqs[0]]
    assert page(IntentFilter(lane="b", only_parked=True)) == []


def test_counts_are_by_state(seeded: Seeded) -> None:
    """How many, how many parked, how many diverged."""
    seeded.put("a")
    claim = seeded.unknown("b")
    seeded.unknowns.park(Park(claim, "no_rung_left", 300.0))
    found = {one.state: (one.number, one.parked, one.diverged)
             for one in seeded.run(lambda c: counts(c, seeded.statements))}  # fmt: skip
    assert found == {State.QUEUED: (1, 0, 0), State.INDETERMINATE: (1, 1, 0)}


def test_an_observation_that_names_no_reason_still_has_a_word(seeded: Seeded) -> None:
    """The outcome's own word stands in."""
    claim = seeded.awaiting("a")
    seeded.record(claim, Unknown(""))
    assert shown(seeded)["a"]["last_word"] == "no_answer"
