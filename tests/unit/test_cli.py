"""The command line without a database: its table, its help, its words, its speed."""

import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ackbox.app.cli.exits import ExitCode, exit_code_of
from ackbox.app.cli.group import COMMANDS, load
from ackbox.app.cli.options import SETTINGS, actor_name
from ackbox.app.cli.output import WIDTH, age, fitted, print_table
from ackbox.app.cli.putting import parse_arguments
from ackbox.app.cli.reference import page
from ackbox.app.settings import names
from ackbox.outbox.errors import InvalidIntent
from ackbox.outbox.told import Told

from ..support.command_line import CommandLine, error_of

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"sqlalchemy", "psycopg", "pydantic", "redis", "rq", "rich", "structlog", "alembic"}
RUNS_ON = {"up", "worker", "relay", "reaper", "reconciler", "consumer"}
WRITES_A_FILE = {"completion", "sim show", "sim record", "sim shrink"}
"""Commands whose output is a script, a picture or a trace."""


def every_command() -> dict[str, click.Command]:
    """Return every command by what is typed, those of groups and the groups included."""
    found: dict[str, click.Command] = {}
    for name, place in COMMANDS.items():
        found[name] = top = load(place.place, name)
        if isinstance(top, click.Group):
            context = click.Context(top)
            inner = {one: top.get_command(context, one) for one in top.list_commands(context)}
            found |= {f"{name} {one}": sub for one, sub in inner.items() if sub is not None}
    return found


EVERY = every_command()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CommandLine:
    """Give a command line in an empty folder, without settings."""
    import os

    for name in list(os.environ):
        if name.startswith("ACKBOX_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return CommandLine()


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    """`ackbox --help` takes under 300 ms of processor time and leaves the libraries alone."""
    script = (
        "import sys\nfrom click.testing import CliRunner\n"
        "from ackbox.app.cli.group import root\n"
        "CliRunner().invoke(root, ['--help'])\nprint(*sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert not HEAVY.intersection(found.stdout.split())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "ackbox", "--help"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3


def test_every_setting_has_a_flag_of_its_name() -> None:
    """File, environment and flag use the same names: the flags' list is the settings' list."""
    assert set(SETTINGS) == set(names())


@pytest.mark.parametrize("name", EVERY)
def test_help_of_each_command_opens_with_an_example(name: str, bare: CommandLine) -> None:
    """The first line of help can be typed, and the table's line matches the command."""
    ended = bare.run(*name.split(), "--help")
    assert ended.code == 0
    first = next(line for line in ended.out.splitlines() if line.strip())
    assert first.startswith(f"  $ ackbox {name}")
    assert f"Usage: root {name}" in ended.out
    assert max(map(len, ended.out.splitlines())) <= WIDTH


@pytest.mark.parametrize("name", sorted(EVERY.keys() - RUNS_ON - WRITES_A_FILE))
def test_commands_take_json(name: str) -> None:
    """Each command that answers has --json; those that run on log JSON instead."""
    if not isinstance(EVERY[name], click.Group):
        assert "--json" in [flag for one in EVERY[name].params for flag in one.opts]


def test_help_lists_every_command(bare: CommandLine) -> None:
    """The overview shows examples first and then every command with its line."""
    out = bare.run("--help").out
    assert out.index("$ ackbox demo") < out.index("Usage:")
    for name, place in COMMANDS.items():
        assert f"  {name} " in out
        assert place.summary in out


def test_a_missing_command_module_is_told() -> None:
    """A command whose module is not installed is no traceback; a broken module still is one."""
    with pytest.raises(click.ClickException, match="no `ackbox gone`"):
        load(".gone:gone", "gone")


def test_reference_page_is_up_to_date() -> None:
    """docs/reference/cli.md shows every command as its help does now."""
    assert (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8") == page(), (
        "run: python -m ackbox.app.cli.reference --write docs/reference/cli.md"
    )
    for name in COMMANDS:
        assert f"### ackbox {name}\n" in page()


def test_every_told_word_has_an_exit_code() -> None:
    """No told outcome is without a code, and only committed is 0."""
    words = {one.word for one in Told.__subclasses__()}
    codes = {word: exit_code_of(word) for word in words}
    assert [word for word, code in codes.items() if code is ExitCode.DONE] == ["committed"]
    assert codes["unknown"] == 4
    assert codes["in_flight"] == codes["awaiting_approval"] == 3
    assert codes["failed"] == 5
    assert {codes[word] for word in ("cancelled", "superseded", "compensated")} == {8}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0s"), (0.4, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (7200, "2h"), (1e6, "11d")],
)
def test_ages(seconds: float, shown: str) -> None:
    """Times are shown as ages."""
    assert age(seconds) == shown


def test_a_table_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """What is too long is cut in the columns that may give, and marked."""
    print_table(("A", "B", "C"), [("x" * 80, "y" * 50, "z" * 12)], give=(1, 0))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert "…" in lines[1]
    assert lines[1].endswith("z" * 12)
    assert sum(fitted([("a" * 10, "b" * 20)], ())) == 30


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON at line 1, column 2"),
        ("[1]", "must be a JSON object"),
        ('"x"', "must be a JSON object"),
        ('{"a": 1, "a": 2}', "the key 'a' twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "a number that is too long"),
    ],
)
def test_arguments_that_are_no_json_object(text: str, says: str) -> None:
    """What is wrong with the text is said with its place, and without its content."""
    with pytest.raises(InvalidIntent, match=says):
        parse_arguments(text)


def test_who_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The actor is the flag, else ACKBOX_ACTOR, else the login."""
    monkeypatch.setenv("ACKBOX_ACTOR", "night shift")
    assert actor_name("ops@example.org") == "ops@example.org"
    assert actor_name(None) == "night shift"
    monkeypatch.delenv("ACKBOX_ACTOR")
    monkeypatch.setenv("LOGNAME", "someone")
    assert actor_name(None) == "someone"


def test_config_shows_values_sources_and_no_password(bare: CommandLine) -> None:
    """Each setting with where it came from; a misspelt variable is pointed out."""
    bare.environ = {
        "ACKBOX_DATABASE_URL": "postgresql://u:hunter2@h/d",
        "ACKBOX_TOLS": "my_tools",
        "ACKBOX_DATA_DIR": "/d",
    }
    Path("ackbox.toml").write_text("in_flight_max = 7\n")
    ended = bare.run("config", "--lanes", "a,b", "--json")
    assert ended.code == 0
    assert "hunter2" not in ended.out + ended.err
    found = ended.json()
    assert found["settings"]["database_url"]["source"] == "environment ACKBOX_DATABASE_URL"
    assert found["settings"]["in_flight_max"]["value"] == "7"
    assert found["settings"]["in_flight_max"]["source"].startswith("file ")
    assert found["settings"]["lanes"] == {"value": "a,b", "source": "flag --lanes"}
    assert found["settings"]["schema"] == {"value": "ackbox", "source": "default"}
    assert found["unknown_variables"] == ["ACKBOX_TOLS"]
    plain = bare.run("config")
    assert "did you mean ACKBOX_TOOLS" in plain.err
    assert max(map(len, plain.out.splitlines())) <= WIDTH


def test_config_cuts_nothing(bare: CommandLine) -> None:
    """A long URL and where it came from are there in full, on two lines where one is too short."""
    url = f"postgresql://user@database.internal.example.org:5432/{'x' * 12}"
    bare.environ = {"ACKBOX_DATABASE_URL": url, "ACKBOX_DATA_DIR": "/d"}
    lines = bare.run("config").out.splitlines()
    (number,) = [n for n, text in enumerate(lines) if text.startswith("database_url ")]
    assert lines[number].split()[1].endswith(url.partition("//")[2])
    assert lines[number + 1].strip() == "environment ACKBOX_DATABASE_URL"
    assert lines[number + 1].index("environment") == lines[0].index("FROM")
    assert all(len(text) <= WIDTH for text in lines)


@pytest.mark.parametrize(
    ("arguments", "environ", "says"),
    [
        (("ls",), {}, "no database is configured"),
        (("migrate",), {}, "no database is configured"),
        (("relay",), {}, "no database is configured"),
        (("worker",), {}, "a worker needs tools"),
        (("up", "--tools", "not_there"), {}, "not_there"),
        (("up", "--plan", "not_there:plan"), {}, "not_there:plan"),
        (("ls", "--config", "gone.toml"), {}, "does not exist"),
        (("ls", "--schema", "No Name"), {}, "setting schema has a wrong value (flag --schema)"),
        (("ls",), {"ACKBOX_DATABASE_URL": "mysql://u:hunter2@h/d"}, "scheme 'mysql'"),
        (("ls",), {"ACKBOX_DATABASE_URL": "u:hunter2@h"}, "not a URL like"),
        (("ls",), {"ACKBOX_DATABASE_URL": "postgresql://u:hunter2@h"}, "names no database"),
        (("ls",), {"ACKBOX_LIMITS": "retention_seconds=many"}, "retention_seconds takes a"),
    ],
)
def test_a_wrong_environment_is_told_in_three_parts(
    bare: CommandLine, arguments: tuple[str, ...], environ: dict[str, str], says: str
) -> None:
    """Exit 7; what, whether an effect may exist, what to type; no traceback and no password."""
    bare.environ = environ
    ended = bare.run(*arguments)
    what, effect, step = ended.err.splitlines()
    assert ended.code == 7
    assert what.startswith("error: config_error — ")
    assert says in what
    assert effect.endswith(".")
    assert step.startswith("Try: ")
    assert "hunter2" not in ended.err + ended.out
    assert ended.out == ""


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise KeyError('API_KEY')", "KeyError at "),
        ("import os\n\nos.environ['NO_SUCH_KEY']", ".py:3"),
        ("import not_there_at_all", "not_there_at_all"),
        ("x = 1", "it holds no tool"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_tools_module_that_cannot_be_loaded(bare: CommandLine, source: str, says: str) -> None:
    """A user's own module that fails is told by its place, never as a traceback."""
    name = f"broken_{abs(hash(source))}"
    Path(f"{name}.py").write_text(source)
    bare.environ = {"ACKBOX_DATABASE_URL": "postgresql://u@127.0.0.1:1/d"}
    ended = bare.run("doctor", "--tools", name, "--json")
    (found,) = [one for one in ended.json()["findings"] if one["check"] == "tools_load"]
    assert says in found["text"]
    assert ended.code == 1


def test_usage_mistakes_exit_2(bare: CommandLine) -> None:
    """An unknown command, option, state or role, and statements that contradict themselves."""
    for arguments in (
        ("nosuch",),
        ("ls", "--state", "gone"),
        ("ls", "--limit", "0"),
        ("up", "--roles", "relay,boss"),
        ("up", "--processes", "0"),
        ("put", "tool"),
        ("resolve", "x"),
        ("resolve", "x", "--reason", "r"),
        ("resolve", "x", "--reason", "r", "--landed", "a", "--undone"),
        ("resolve", "x", "--reason", "r", "--landed", "a", "--requeue"),
        ("resolve", "x", "--reason", "r", "--not-landed", "--may-duplicate"),
        ("close-divergence", "x", "1", "--reason", "r"),
        ("close-divergence", "x", "1", "--reason", "r", "--stands", "--undone"),
    ):
        ended = bare.run(*arguments)
        assert ended.code == 2, arguments
        what, effect, step = error_of(ended)
        assert what.startswith("error: usage — "), arguments
        assert effect == "Nothing was changed."
        assert step.endswith(" --help")
        assert not list(Path().iterdir()), "nothing was started"


def test_a_misspelt_command_is_named(bare: CommandLine) -> None:
    """The nearest one, and with --json the same parts as a document."""
    assert "did you mean unknowns" in bare.run("unknwns").err
    assert "did you mean explore" in bare.run("sim", "explor").err
    assert "did you mean throughput" in bare.run("bench", "thruput").err
    assert bare.run("ls", "--json", "--limit", "0").json()["error"]["code"] == "usage"
