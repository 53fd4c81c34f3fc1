"""What the command line suggests can be pasted, and what Ctrl-C cuts off is told."""

from typing import cast

import pytest

from ackbox.app.cli import listing
from ackbox.app.cli.again import again
from ackbox.app.cli.exits import ExitCode
from ackbox.app.cli.group import COMMANDS, load
from ackbox.app.cli.naming import find
from ackbox.app.cli.opening import Opened
from ackbox.outbox.errors import InvalidIntent

from ..support.command_line import CommandLine

LS = load(COMMANDS["ls"].place, "ls")


def suggested(text: str, *arguments: str) -> str:
    """Return a text as `ackbox ls` with these arguments would show it."""
    with LS.make_context("ls", list(arguments)):
        return again(text)


def test_suggestions_carry_the_flags_that_were_given() -> None:
    """A suggestion without them would look into another outbox."""
    flags = ("--schema", "demo_1", "--outbox", "o n e")
    assert suggested("look first: ackbox show r1:a", *flags) == (
        "look first: ackbox show --schema demo_1 --outbox 'o n e' r1:a"
    )
    assert suggested("ackbox show r1:a; or ackbox ls", "--schema", "s") == (
        "ackbox show --schema s r1:a; or ackbox ls --schema s"
    )


@pytest.mark.parametrize("text", ["set ACKBOX_SCHEMA", "ackbox put --help", "ackbox lsx"])
def test_other_words_are_left_alone(text: str) -> None:
    """Only commands that take the flags get them."""
    assert suggested(text, "--schema", "s") == text


def test_what_the_environment_says_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds for the next command as well; so does no flag at all."""
    monkeypatch.setenv("ACKBOX_SCHEMA", "s")
    assert suggested("ackbox ls") == "ackbox ls"
    assert again("ackbox ls") == "ackbox ls"


def test_a_url_is_never_repeated() -> None:
    """It may hold a password."""
    shown = suggested("ackbox ls", "--database-url", "postgresql://a:hunter2@b/c")
    assert shown == "ackbox ls --database-url URL"


def test_ctrl_c_is_told_in_three_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a code of its own: no check has failed."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "opened", interrupted)
    ended = CommandLine().run("ls")
    assert ended.code == ExitCode.INTERRUPTED
    what, effect, step = ended.err.strip().splitlines()
    assert what.startswith("error: interrupted — ")
    assert effect.endswith(".")
    assert step == "Try: ackbox ls, or the same command again"


@pytest.mark.parametrize("name", ["a b", "", "a/b/c", "~g1"])
def test_a_malformed_name_sends_nobody_to_put(name: str) -> None:
    """Whoever asks for an intent wants to read; judged before any database is asked."""
    with pytest.raises(InvalidIntent) as told:
        find(cast(Opened, None), name)
    assert told.value.next_step == "ackbox ls"
    assert told.value.effect_may_exist == "Nothing was changed."
