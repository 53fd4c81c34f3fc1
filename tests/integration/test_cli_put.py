"""Put and wait on a real database: what is stored, what is refused, every bad input."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.outbox.identity import mint_intent_id

from ..support.command_line import CommandLine, Ended, bare_line, error_of
from ..support.seed import Seeded


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


def test_put_stores_once_and_says_so(line: CommandLine, seeded: Seeded) -> None:
    """The id is minted from run and step; the same put again returns what is stored."""
    named = ("--run-id", "r1", "--step", "open", "--json")
    first, again = put(line, '{"a": 1}', *named), put(line, '{"a": 1}', *named)
    assert (first.code, again.code) == (0, 0)
    stored = first.json()
    assert stored["intent_id"] == mint_intent_id("default", "r1", "open")
    assert stored["created"] is True
    assert again.json() == {**stored, "created": False}
    plain = put(line, '{"a": 2}', "--id", "x")
    assert plain.out.splitlines()[1] == "ask for it: ackbox wait x"


def test_put_takes_lane_and_version_from_the_declaration(line: CommandLine, seeded: Seeded) -> None:
    """Where the tool's code is not at hand, what workers declared decides; flags go first."""
    assert put(line, "{}", "--json").json()["lane"] == "default"
    assert put(line, "{}", "--id", "y", "--lane", "mails", "--json").json()["lane"] == "mails"


def test_put_of_other_arguments_is_refused(line: CommandLine, seeded: Seeded) -> None:
    """Exit 6, nothing changed, and the next step is a command."""
    put(line, '{"a": 1}', "--run-id", "r1", "--step", "open")
    ended = put(line, '{"a": 2}', "--run-id", "r1", "--step", "open")
    what, effect, step = error_of(ended)
    assert ended.code == 6
    assert what.startswith("refused: args_conflict — ")
    assert effect == "Nothing was changed."
    assert "ackbox show r1:open" in step
    kept = put(line, '{"a": 2}', "--run-id", "r1", "--step", "open", "--if-exists", "keep")
    assert kept.code == 0


BAD_ARGUMENTS = [
    ('{"a": NaN}', "args.a: NaN"),
    ('{"a": [1, -Infinity]}', "args.a[1]: NaN and infinities"),
    ('{"a": 1e400}', "args.a: NaN and infinities"),
    ('{"a": {"b": 9007199254740993}}', "args.a.b: integers beyond 2**53"),
    ('{"a": "x\\u0000y"}', "args.a: text holds U+0000"),
    ('{"a": "\\ud800"}', "args.a: text holds a lone surrogate"),
    ('{"\\udfff": 1}', "lone surrogate"),
    ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested deeper"),
    ("not json", "ARGS_JSON is not JSON at line 1"),
    ("[]", "must be a JSON object"),
    (json.dumps({"a": "x" * 2**20}), "the limit is 1048576"),
]


def test_bad_arguments_are_told_with_their_place(line: CommandLine, seeded: Seeded) -> None:
    """Exit 2 with the path of the value; nothing is stored, not even half."""
    for args, says in BAD_ARGUMENTS:
        ended = put(line, "-", stdin=args.encode())
        assert ended.code == 2, says
        what, effect, _ = error_of(ended)
        assert says in what
        assert effect == "Nothing was stored, and no effect exists."
    assert seeded.sql("SELECT seq FROM {schema}.intent") == []
    assert seeded.sql("SELECT event_id FROM {schema}.event") == []


def test_arguments_from_files(line: CommandLine, seeded: Seeded) -> None:
    """@FILE and - read bytes that must be UTF-8."""
    Path("args.json").write_text('{"a": "ü"}', encoding="utf-8")
    assert put(line, "@args.json").code == 0
    Path("latin.json").write_bytes(b'{"a": "\xfc"}')
    for given in ("@latin.json", "@missing.json"):
        ended = put(line, given, "--id", "y")
        assert ended.code == 2
        error_of(ended)


BAD_NAMES: list[tuple[str, ...]] = [
    ("--id", "a b"),
    ("--id", ""),
    ("--id", "x~g1"),
    ("--id", "x" * 300),
    ("--id", "x", "--run-id", "r", "--step", "s"),
    ("--run-id", "r:1", "--step", "s"),
    ("--run-id", "r"),
    ("--id", "x", "--namespace", "a/b"),
    ("--id", "x", "--lane", "results"),
    ("--id", "x", "--deadline", "tomorrow"),
    ("--id", "x", "--deadline", "2027-01-01T00:00:00"),
]


def test_malformed_names_and_terms(line: CommandLine, seeded: Seeded) -> None:
    """Exit 2 in three parts, and nothing is stored."""
    for named in BAD_NAMES:
        ended = line.run("put", "keyless", "{}", *named)
        assert ended.code == 2, named
        error_of(ended)
    assert seeded.sql("SELECT seq FROM {schema}.intent") == []


def test_an_unknown_tool_is_a_mistake_unless_said_otherwise(
    line: CommandLine, seeded: Seeded
) -> None:
    """Exit 2 with the nearest name; --no-worker-yet stores it."""
    ended = line.run("put", "keyles", "{}", "--id", "x")
    what, _, step = error_of(ended)
    assert ended.code == 2
    assert "unknown_tool" in what
    assert "did you mean keyless" in what
    assert "ackbox worker --tools" in step
    assert line.run("put", "keyles", "{}", "--id", "x", "--no-worker-yet").code == 0
    told = line.run("wait", "x", "--timeout", "0", "--json")
    assert (told.code, told.json()["reason"]) == (3, "no live worker has keyles")


def test_a_tool_at_hand_checks_the_arguments(line: CommandLine, seeded: Seeded) -> None:
    """With --tools the signature decides at put, not in the worker."""
    Path("cli_own_tools.py").write_text(
        "from ackbox import tool\n\n"
        '@tool("own.create")\ndef create(call, *, title: str, priority: str = "normal"):\n'
        "    return None\n"
    )
    flags = ("--tools", "cli_own_tools", "--id", "x")
    assert line.run("put", "own.create", '{"titel": "a"}', *flags).code == 2
    assert line.run("put", "own.create", "{}", *flags).code == 2
    assert line.run("put", "own.create", '{"title": "a"}', *flags).code == 0
    (row,) = seeded.sql("SELECT args FROM {schema}.intent")
    assert row["args"] == {"title": "a", "priority": "normal"}


def test_wait_ends_with_the_word_s_code(line: CommandLine, seeded: Seeded) -> None:
    """0 committed, 3 in flight, 4 unknown, 5 failed, 8 cancelled; --json has as_dict's keys."""
    seeded.committed("done")
    seeded.put("new")
    seeded.unknown("lost")
    seeded.false_failed("failed")
    seeded.put("off")
    line.run("cancel", "off")
    words = {"done": 0, "new": 3, "lost": 4, "failed": 5, "off": 8}
    for name, code in words.items():
        ended = line.run("wait", name, "--timeout", "0", "--json")
        assert ended.code == code, name
        assert ended.json()["intent_id"] == name
    assert line.run("wait", "done", "--json").json()["ref"] == "ref-1"
    assert line.run("wait", "nobody").code == 6


def test_ctrl_c_ends_a_wait_and_changes_nothing(
    line: CommandLine, seeded: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 3: the step goes on, and how to wait again is said."""
    from ackbox.planner.shell.planner import Planner

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    seeded.put("new")
    monkeypatch.setattr(Planner, "wait", interrupted)
    ended = line.run("wait", "new")
    assert ended.code == 3
    assert "the step goes on as it is. Try: ackbox wait new" in ended.err
    assert seeded.sql("SELECT state FROM {schema}.intent_state")[0]["state"] == "queued"
