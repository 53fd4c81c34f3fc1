"""`ackbox consumer --plan` and `up --plan`: what cannot be loaded, and a plan that runs."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackbox.outbox.model import State

from ..support.command_line import CommandLine, bare_line, error_of
from ..support.running import Running
from ..support.waiting import wait_until
from .planner_support import World

PLANS = {
    "good_plan": "from ackbox import Plan\nplan, second = Plan(), Plan()\nother = Plan\n",
    "broken_plan": "import no_such_module_at_all\n",
    "raising_plan": "raise LookupError('holds a secret')\n",
    "bad_word": "from ackbox import Plan\nplan = Plan()\nplan.on_told('committed')(print)\n",
    "async_plan": """
from sqlalchemy import text
from ackbox import Plan

plan = Plan()

@plan.on_bound("tickets.create")
async def bound(bound):
    await bound.session.execute(text("INSERT INTO step VALUES ('bound')"))

@plan.after_bound("tickets.create")
def handed(bound):
    print("handed", bound.told.word, flush=True)

@plan.on_told("unknown", tool="tickets.creat")
def never(bound):
    print("never", flush=True)

@plan.on_told("unknown")
async def told(bound):
    print("told", bound.told.word, flush=True)
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with plans in it."""
    for name, source in PLANS.items():
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


@pytest.fixture
def line(folder: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Give a command line in that folder, with a migrated database."""
    monkeypatch.syspath_prepend(str(folder))
    return bare_line(monkeypatch, folder, ACKBOX_DATABASE_URL=database_url)


@pytest.mark.parametrize(
    ("place", "what", "step"),
    [
        ("nowhere.plans:plan", "there is no module 'nowhere'", "the folder of the module"),
        ("good_plan:missing", "does not exist", "plan, second"),
        ("good_plan:other", "is no ackbox.Plan", "plan, second"),
        ("broken_plan", "ModuleNotFoundError at ", "ackbox doctor"),
        ("raising_plan:plan", "LookupError at ", "ackbox doctor"),
        ("bad_word:plan", "on_told does not fire for 'committed'", "on_bound or after_bound"),
    ],
)
@pytest.mark.parametrize("command", [("consumer",), ("up", "--roles", "consumer")])
def test_a_plan_that_cannot_be_loaded_is_said_with_what_to_do(
    line: CommandLine, command: tuple[str, ...], place: str, what: str, step: str
) -> None:
    """Exit code 7 and three lines; nothing of a message of the user's own is shown."""
    ended = line.run(*command, "--plan", place)
    said, effect, next_step = error_of_last(ended.err)
    assert ended.code == 7
    assert what in said
    assert effect.startswith("Nothing was changed")
    assert step in next_step
    assert "secret" not in ended.err


def error_of_last(err: str) -> tuple[str, str, str]:
    """Return the three parts of the error that stand after what was announced."""
    what, effect, step = err.splitlines()[-3:]
    assert step.startswith("Try: ")
    return what, effect, step


def test_a_place_that_names_nothing_is_refused(line: CommandLine) -> None:
    """A typing mistake never comes as far as an import."""
    ended = line.run("consumer", "--plan", "plans.py:")
    what, _, step = error_of(ended)
    assert ended.code == 7
    assert "module:attribute" in what
    assert "--plan" in step


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    """Give an outbox with a planner, and a table of the plan's own."""
    world = World(database_url)
    world.rows("CREATE TABLE step (name text)")
    yield world
    world.close()


@pytest.mark.acceptance
def test_a_consumer_process_runs_the_plan_and_ends_in_good_order(
    folder: Path, world: World
) -> None:
    """Sync and async callbacks of all kinds; a tool that nobody has is warned of, once."""
    environ = {
        "ACKBOX_DATABASE_URL": world.url,
        "ACKBOX_POLL_SECONDS": "0.1",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    running = Running(folder, "consumer", "--plan", "async_plan:plan", **environ)
    try:
        running.wait_for("ready")
        intent = world.to(State.COMMITTED, world.put("first"))
        world.to(State.INDETERMINATE, world.put("second"))
        running.wait_for("handed committed")
        running.wait_for("told unknown")
        wait_until(lambda: world.row(intent)["handed_at"] is not None, message="it is on record")
        running.terminate()
        assert running.exit_code() == 0
    finally:
        running.close()
    assert world.one("SELECT count(*) FROM step") == 1
    assert running.output().count("plan_names_unknown_tools") == 1
    assert "tickets.creat'" in running.output() or 'tickets.creat"' in running.output()
    assert "never" not in running.output()
