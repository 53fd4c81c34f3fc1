"""Lists, histories and names on a real database."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.outbox.commands import Park
from ackbox.outbox.identity import mint_intent_id
from ackbox.outbox.outcome import Applied, Unknown

from ..support.command_line import CommandLine, Ended, bare_line, error_of
from ..support.seed import KEYLESS, PROBED, Seeded

SECRET = "do-not-show-4711"


@pytest.fixture
def line(database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line on a migrated database, in an empty folder."""
    return bare_line(monkeypatch, tmp_path, ACKBOX_DATABASE_URL=database_url)


@pytest.fixture
def seeded(database_url: str) -> Iterator[Seeded]:
    """Give the same database's rows in a test's hand."""
    seeded = Seeded(database_url)
    yield seeded
    seeded.database.dispose()


def put(line: CommandLine, args: str, *more: str, stdin: bytes | None = None) -> Ended:
    """Put with a tool that a seeded worker has declared."""
    name = () if "--id" in more or "--run-id" in more else ("--id", "x")
    return line.run("put", "keyless", args, *name, *more, stdin=stdin)


def test_ls_filters_and_pages(line: CommandLine, seeded: Seeded) -> None:
    """Newest first; the next page begins before the last row, and pages neither gap nor repeat."""
    for number in range(5):
        seeded.put(f"i{number}")
    seeded.committed("done")
    names: list[str] = []
    before: tuple[str, ...] = ()
    while True:
        found = line.run("ls", "--limit", "2", *before, "--json").json()
        names += [row["intent_id"] for row in found["intents"]]
        if found["next_before"] is None:
            break
        before = ("--before", str(found["next_before"]))
    assert names == ["done", "i4", "i3", "i2", "i1", "i0"]
    queued = line.run("ls", "--state", "queued", "--prefix", "i", "--json").json()["intents"]
    assert len(queued) == 5
    assert line.run("ls", "--state", "failed").out == "nothing matches\n"
    counted = line.run("ls", "--count", "--json").json()["states"]
    assert {one["state"]: one["number"] for one in counted} == {"queued": 5, "committed": 1}
    assert "more: ackbox ls --before" in line.run("ls", "--limit", "2").out


def test_unknowns_say_whose_turn_it_is(line: CommandLine, seeded: Seeded) -> None:
    """A table in 100 columns with what to type first; JSON with the numbers behind it."""
    assert line.run("unknowns").out == "nothing is unknown, and nothing waits for a person\n"
    put(line, json.dumps({"secret": SECRET}), "--run-id", "r7", "--step", "mail")
    claim = seeded.send("default")
    seeded.unknown("p", PROBED)
    seeded.record(claim, Unknown("read timeout"))
    seeded.unknowns.park(Park(claim, "no_rung_left", 300.0))
    ended = line.run("unknowns")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["AGE", "INTENT", "TOOL", "SENT", "LAST", "WORD", "WINDOW", "NEXT"]
    assert max(map(len, lines)) <= 100
    assert any("r7:mail" in text and "ackbox show" in text for text in lines)
    assert lines[-1] == "look first: ackbox show r7:mail"
    found = line.run("unknowns", "--json").json()["unknowns"]
    assert {row["intent_id"] for row in found} == {"p", claim.intent_id}
    assert {"fence", "sends", "next", "last_word", "run_id", "step"} <= set(found[0])
    assert SECRET not in ended.out


def test_show_tells_the_whole_story(line: CommandLine, seeded: Seeded) -> None:
    """Every transition with who and fence, what was proven, and what is possible: no payload."""
    claim = seeded.unknown("lost", KEYLESS, secret=SECRET)
    lines = line.run("show", "lost").out
    steps = [
        "put -> queued",
        "claim queued -> executing",
        "send executing -> awaiting_ack",
        "attempt: unknown · read timeout",
        "lose awaiting_ack -> indeterminate",
        "ackbox resolve lost --landed REF --reason TEXT",
        f"fence {claim.fence}",
    ]
    for said in steps:
        assert said in lines
    found = line.run("show", "lost", "--json").json()
    assert found["told"]["word"] == "unknown"
    assert found["generations"][0]["fence"] == claim.fence
    assert [e["name"] for e in found["entries"] if e["kind"] == "event"][:2] == ["put", "claim"]
    assert SECRET not in lines + json.dumps(found)


def test_show_gives_the_number_of_a_divergence(line: CommandLine, seeded: Seeded) -> None:
    """What has to be quoted to close a divergence stands in the command that closes it."""
    claim = seeded.false_failed("a", x=1)
    seeded.record(claim, Applied("late"))
    number = seeded.divergence(claim.seq)
    shown = line.run("show", "a").out
    assert f"ackbox close-divergence a {number} --stands --reason TEXT" in shown
    closed = line.run("close-divergence", "a", str(number), "--stands", "--reason", "right so")
    assert closed.code == 0, closed.err
    assert "recorded for ops@example.org" in closed.out
    again = line.run("close-divergence", "a", str(number), "--stands", "--reason", "right so")
    assert (again.code, error_of(again)[0].split()[1]) == (6, "no_divergence")


def test_names_are_found_in_order(line: CommandLine, seeded: Seeded) -> None:
    """Exact id, then run:step, then a beginning; writing commands take no beginnings."""
    seeded.put("abc")
    seeded.put("abd")
    put(line, "{}", "--run-id", "r1", "--step", "open:first")
    minted = mint_intent_id("default", "r1", "open:first")
    for name in ("abc", "r1:open:first", minted, minted[:9], "default/abc", "abc~g0"):
        assert line.run("show", name).code == 0, name
    several = line.run("show", "ab")
    assert several.code == 2
    assert "abd, abc" in several.err
    cancelled = line.run("cancel", minted[:9])
    assert cancelled.code == 2
    assert "give the whole name: r1:open:first" in cancelled.err
    assert line.run("show", "abc~g7").code == 6
    for bad in ("a b", "a/b/c", "", "x~y", "~g1", "ü"):
        assert line.run("show", bad).code == 2, bad
    assert line.run("show", "elsewhere/abc").code == 6
