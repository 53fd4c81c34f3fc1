"""What people say through the command line: fences, refusals, a terminal that asks."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..support.command_line import CommandLine, bare_line, error_of
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


def test_resolve_quotes_a_fence_where_no_terminal_asks(line: CommandLine, seeded: Seeded) -> None:
    """Without --fence nothing is changed; a stale one is refused; the right one is recorded."""
    claim = seeded.unknown("lost")
    landed = ("resolve", "lost", "--landed", "mail-7", "--reason", "seen in the inbox")
    missing = line.run(*landed)
    assert missing.code == 2
    assert "--fence N" in missing.err
    stale = line.run(*landed, "--fence", str(claim.fence + 1))
    assert (stale.code, error_of(stale)[0].split()[1]) == (6, "stale_fence")
    assert seeded.state(claim.seq) == "indeterminate"
    done = line.run(*landed, "--fence", str(claim.fence), "--json")
    assert done.code == 0
    assert done.json()["state"] == "committed"
    assert done.json()["intent_id"] == "lost"
    (event,) = seeded.sql(
        "SELECT actor_name, reason FROM {schema}.event WHERE name = 'acknowledge.person'"
    )
    assert tuple(event.values()) == ("ops@example.org", "seen in the inbox")
    assert line.run("wait", "lost").code == 0


def test_resolve_is_refused_while_a_send_may_arrive(line: CommandLine, seeded: Seeded) -> None:
    """not_quiet names the seconds left and the right command; with --json as a document too."""
    claim = seeded.unknown("lost", quiet=False)
    said = ("resolve", "lost", "--not-landed", "--reason", "x", "--fence", str(claim.fence))
    what, effect, step = error_of(line.run(*said))
    assert "not_quiet" in what
    assert "quiet in" in what
    assert effect.startswith("Nothing was changed")
    assert step == "Try: ackbox show lost"
    ended = line.run(*said, "--json")
    assert ended.code == 6
    assert ended.json()["error"]["code"] == "not_quiet"


def test_resolve_not_landed_fails_or_queues_again(line: CommandLine, seeded: Seeded) -> None:
    """Past the key window it is queued again only with --may-duplicate, which is what it says."""
    claim = seeded.unknown("lost", WINDOWED)
    seeded.advance(90_000)
    said = ("resolve", "lost", "--not-landed", "--requeue", "--reason", "x", "--fence",
            str(claim.fence))  # fmt: skip
    refused = line.run(*said)
    assert refused.code == 6
    assert "--may-duplicate" in error_of(refused)[2]
    assert line.run(*said, "--may-duplicate").code == 0
    assert seeded.state(claim.seq) == "queued"
    other = seeded.unknown("gone")
    fence = ("--fence", str(other.fence))
    assert line.run("resolve", "gone", "--not-landed", "--reason", "x", *fence).code == 0
    assert seeded.state(other.seq) == "failed"


def test_resolve_undone_and_compensate(line: CommandLine, seeded: Seeded) -> None:
    """Undone by hand ends as compensated; a compensation needs the tool's code."""
    claim = seeded.committed("done", KEYLESS)
    seeded.advance(200)
    unknown = line.run("resolve", "done", "--compensate", "--reason", "x", "--fence",
                       str(claim.fence))  # fmt: skip
    assert unknown.code == 6
    assert "--tools MODULE" in error_of(unknown)[2]
    done = line.run("resolve", "done", "--undone", "--reason", "x", "--fence", str(claim.fence))
    assert done.code == 0, done.err
    assert seeded.state(claim.seq) == "compensated"
    assert line.run("wait", "done").code == 8


def test_resolve_compensate_orders_the_tool_s_own_undo(line: CommandLine, seeded: Seeded) -> None:
    """The compensation's intent is ordered under the fence that was seen, by name."""
    claim = seeded.committed("done", KEYED)
    seeded.advance(200)
    Path("cli_undo_tools.py").write_text(
        "from ackbox.tool_adapters.contract import CompensationPlan\n"
        "from ackbox import tool\n\n"
        "def undo(target):\n    return CompensationPlan('keyed.undo', {'ref': target.ref})\n\n"
        "@tool('keyed', compensation=undo)\ndef create(call, *, x: int = 1):\n    return None\n\n"
        "@tool('keyed.undo')\ndef delete(call, *, ref: str):\n    return None\n"
    )
    said = ("resolve", "done", "--compensate", "--reason", "x", "--tools", "cli_undo_tools")
    stale = line.run(*said, "--fence", str(claim.fence + 5))
    assert (stale.code, error_of(stale)[0].split()[1]) == (6, "stale_fence")
    ended = line.run(*said, "--fence", str(claim.fence), "--json")
    assert ended.code == 0, ended.err
    assert ended.json()["intent_id"] == "done~undo0"
    assert line.run("wait", "done", "--timeout", "0").code == 3
    assert line.run("show", "done~undo0").code == 0
    assert "compensation done~undo0" in line.run("show", "done").out


def test_release_over_a_committed_generation(line: CommandLine, seeded: Seeded) -> None:
    """Held behind an effect: released with --may-duplicate only, and only against the fence."""
    seeded.committed("a", KEYLESS, x=1)
    second = seeded.supersede("a", x=2)
    seeded.hold_step(second)
    assert seeded.state(second) == "held"
    fence = str(seeded.row(second)["fence"])
    assert line.run("release", "a", "--reason", "x").code == 2
    plain = line.run("release", "a", "--reason", "x", "--fence", fence)
    assert plain.code == 6
    assert error_of(plain)[2].startswith("Try: ackbox release a")
    done = line.run("release", "a", "--reason", "x", "--fence", fence, "--may-duplicate")
    assert done.code == 0, done.err
    assert seeded.state(second) == "queued"


def test_cancel_by_state(line: CommandLine, seeded: Seeded) -> None:
    """Queued: 0. Sent: recorded, 3. Committed: refused with the command that undoes it."""
    seeded.put("new")
    assert line.run("cancel", "new").code == 0
    seeded.awaiting("sent")
    recorded = line.run("cancel", "sent", "--json")
    assert (recorded.code, recorded.json()["word"]) == (3, "cancel_recorded")
    seeded.committed("done")
    refused = line.run("cancel", "done")
    what, effect, step = error_of(refused)
    assert refused.code == 6
    assert "use_compensate" in what
    assert effect == "The effect exists."
    assert step == "Try: ackbox resolve done --compensate --reason TEXT"


@pytest.mark.parametrize(("reply", "code", "state"), [("y\n", 0, "committed"),
                                                      ("n\n", 130, "indeterminate")])  # fmt: skip
def test_a_terminal_is_asked(
    line: CommandLine, seeded: Seeded, reply: str, code: int, state: str
) -> None:
    """On a terminal the row is shown with its fence and the statement is confirmed."""
    claim = seeded.unknown("lost")
    command = [sys.executable, "-m", "ackbox", "resolve", "lost", "--landed", "R", "--reason", "x"]
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command, stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, **line.environ}, start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    os.write(leader, reply.encode())
    said = b""
    while chunk := _read(leader):
        said += chunk
    os.close(leader)
    assert process.wait(30) == code, said.decode()
    assert f"lost: keyless, indeterminate, fence {claim.fence}" in said.decode()
    assert seeded.state(claim.seq) == state


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 4096)
    except OSError:  # the last one on the other side has gone
        return b""
