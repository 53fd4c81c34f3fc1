"""What `show` offers is taken: every command under "possible" is run, none is refused."""

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..support.command_line import CommandLine, bare_line
from ..support.seed import KEYED, KEYLESS, WINDOWED, Seeded


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


def past_its_window(seeded: Seeded, name: str) -> None:
    """An unknown whose key the tool may have forgotten."""
    seeded.unknown(name, WINDOWED)
    seeded.advance(90_000)


def over_a_committed_one(seeded: Seeded, name: str) -> None:
    """A held generation with other arguments than the committed one before it."""
    seeded.committed(name, KEYED, x=1)
    seeded.supersede(name, 0, KEYED, x=2)


SITUATIONS: dict[str, Callable[[Seeded, str], object]] = {
    "unknown": lambda seeded, name: seeded.unknown(name, KEYLESS),
    "unknown, not quiet": lambda seeded, name: seeded.unknown(name, KEYLESS, quiet=False),
    "past its window": past_its_window,
    "committed": lambda seeded, name: seeded.committed(name),
    "queued": lambda seeded, name: seeded.put(name),
    "held over a committed one": over_a_committed_one,
}


def offered(line: CommandLine, name: str) -> dict[str, list[str]]:
    """Return the commands that `show` lists under each heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    for text in line.run("show", name).out.splitlines():
        if text.startswith("  possible"):
            heading = text.strip(" :")
        elif text.startswith("    ackbox "):
            found.setdefault(heading, []).append(text.strip())
    return found


def run(line: CommandLine, command: str, fence: int) -> tuple[int, str]:
    """Type a command as a script would: with the words filled in and the fence quoted."""
    words = shlex.split(command.replace("TEXT", "why").replace("REF", "ref-1"))[1:]
    if words[0] in ("resolve", "release"):
        words += ["--fence", str(fence)]
    ended = line.run(*words)
    return ended.code, ended.err


def fence_of(seeded: Seeded, name: str, command: str) -> int:
    """Return the fence of the generation that a command names, the newest by default."""
    rows = seeded.sql(
        "SELECT s.fence FROM {schema}.intent_state s JOIN {schema}.intent n USING (seq)"
        " WHERE n.intent_id = :name ORDER BY n.generation", name=name,
    )  # fmt: skip
    return int(rows[0 if "~g0" in command else -1]["fence"])


@pytest.mark.parametrize("situation", SITUATIONS)
def test_everything_that_is_offered_is_taken(
    situation: str, line: CommandLine, seeded: Seeded
) -> None:
    """Each command on a row of its own; what is offered for later is taken then."""
    SITUATIONS[situation](seeded, "row-0")
    counted = [command for found in offered(line, "row-0").values() for command in found]
    assert counted, "something is possible in each of these situations"
    for number in range(len(counted)):
        name = f"row-{number + 1}"
        SITUATIONS[situation](seeded, name)
        ((heading, commands),) = offered(line, name).items()
        if later := re.search(r"in (\d+) s", heading):
            seeded.advance(int(later[1]))
        command = commands[number]
        if "--tools MODULE" in command:  # it says itself that it needs code, and this test has none
            continue
        code, said = run(line, command, fence_of(seeded, name, command))
        assert code not in (1, 2, 6, 7), f"{command}: {said}"


def test_what_would_be_refused_is_not_offered(line: CommandLine, seeded: Seeded) -> None:
    """No compensation that the tool does not declare; nothing at once while a send may arrive."""
    seeded.unknown("fresh", KEYLESS, quiet=False)
    (heading,) = offered(line, "fresh")
    assert heading.startswith("possible in ")
    seeded.unknown("lost", KEYLESS)
    (commands,) = offered(line, "lost").values()
    assert not [command for command in commands if "--compensate" in command]
    assert not offered(line, "lost").keys() - {"possible"}


def test_a_risk_is_named_where_nothing_else_is_in_the_way(
    line: CommandLine, seeded: Seeded
) -> None:
    """Past the key window a requeue may happen twice, which its flag says."""
    past_its_window(seeded, "old")
    (commands,) = offered(line, "old").values()
    requeue = [command for command in commands if "--requeue" in command]
    assert requeue == ["ackbox resolve old --not-landed --requeue --may-duplicate --reason TEXT"]
