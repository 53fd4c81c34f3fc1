"""Every block that a reader may copy works: each page is followed from top to bottom."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from ackbox.outbox.defaults import DEFAULTS

from .pages import Block, Reader, blocks, clean_environment

ROOT = Path(__file__).resolve().parents[2]
_GENERATED = {"docs/reference/api.md", "docs/reference/cli.md", "docs/reference/limits.md"}
"""Their blocks are signatures and help texts; the generators' own checks hold them to the code."""
PAGES = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "outbox/PROTOCOL.md", *(ROOT / "docs").rglob("*.md")]
    if str(page.relative_to(ROOT)) not in _GENERATED
)
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|tmp|Users|opt|srv|mnt|var|private)/")
_NOTES = {"", "file", "background", "exit", "repeat until", "prints", "not run"}


def all_blocks() -> list[Block]:
    """Return the blocks of every page."""
    return [block for page in PAGES for block in blocks(page, ROOT)]


def needs_a_run(page: Path) -> bool:
    """Return whether a page has anything to follow."""
    return any(block.runs and block.what != "not run" for block in blocks(page, ROOT))


WITHOUT_SERVERS = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
"""Pages that begin with an empty folder and what comes with the installation."""
FOLLOWED = [page for page in PAGES if needs_a_run(page) and page not in WITHOUT_SERVERS]


@pytest.fixture
def reader(
    tmp_path: Path, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reader]:
    """Give a reader with servers of their own."""
    environ = clean_environment() | {
        "ACKBOX_DATABASE_URL": database_url,
        "ACKBOX_REDIS_URL": redis_url,
        "ACKBOX_WORKER_PROCESSES": "1",
        "ACKBOX_POLL_SECONDS": "0.2",
    }
    _become(environ, tmp_path, monkeypatch)
    modules = set(sys.modules)
    reader = Reader(
        tmp_path, environ, lambda: _move_clock(database_url), set_variable=monkeypatch.setenv
    )
    yield reader
    reader.close()
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and _is_below(name, tmp_path):
            del sys.modules[name]


def _become(environ: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ACKBOX_")]:
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))


def _move_clock(database_url: str) -> None:
    """Move the store's own clock past the last moment at which a send of a page may arrive.

    By less than a heartbeat's age that would make the page's processes look dead.
    """
    seconds = DEFAULTS.send_deadline_seconds + DEFAULTS.clock_allowance_seconds + 1
    assert seconds + DEFAULTS.heartbeat_seconds < DEFAULTS.dead_after_seconds
    with psycopg.connect(
        make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    ) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION ackbox.clock_now() RETURNS timestamptz LANGUAGE sql STABLE"
            f" AS $$ SELECT statement_timestamp() + interval '{seconds} seconds' $$"
        )


def _is_below(name: str, folder: Path) -> bool:
    return Path(str(sys.modules[name].__file__)).is_relative_to(folder)


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_followed_from_top_to_bottom(page: Path, reader: Reader) -> None:
    """Property: what a page tells to write and to type works, in its order, in one folder."""
    for block in blocks(page, ROOT):
        reader.follow(block)


@pytest.mark.parametrize("page", WITHOUT_SERVERS, ids=lambda page: page.name)
def test_a_page_can_be_followed_without_any_server(
    page: Path, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Property: tool, worker and planner of the page run as written on embedded servers."""
    environ = clean_environment() | {"ACKBOX_DATA_DIR": str(data_dir)}
    _become(environ, tmp_path, monkeypatch)
    reader = Reader(tmp_path, environ, set_variable=monkeypatch.setenv)
    try:
        for block in blocks(page, ROOT):
            reader.follow(block)
    finally:
        reader.close()


def test_the_own_example_is_short() -> None:
    """Property: a tool and a planner of one's own take fifteen lines."""
    (example,) = [b for b in blocks(ROOT / "README.md", ROOT) if b.what == "file"]
    assert len(example.text.splitlines()) <= 15


def test_a_broken_block_is_seen(reader: Reader) -> None:
    """Property: a command that fails, a Python error and a wrong output each fail the page."""
    for broken in (
        Block("p", 1, "sh", "ackbox no-such-command\n"),
        Block("p", 1, "python", "assert 1 == 2\n"),
        Block("p", 1, "text", "never printed\n", "prints"),
        Block("p", 1, "sh", "true\n", "exit", "6"),
    ):
        with pytest.raises(AssertionError):
            reader.follow(broken)


def test_notes_are_known_and_what_is_not_run_has_a_reason() -> None:
    """Property: a comment above a block is one of ours, and few blocks are left out."""
    unknown = [block.place for block in all_blocks() if block.runs and block.what not in _NOTES]
    unexplained = [b.place for b in all_blocks() if b.what == "not run" and not b.value]
    left_out = [block for block in all_blocks() if block.what == "not run"]
    assert not unknown
    assert not unexplained
    assert len(left_out) <= 7, [block.place for block in left_out]


def machine_paths(found: list[Block]) -> list[str]:
    """Return the blocks that show a path of some machine."""
    return [block.place for block in found if _MACHINE_PATH.search(block.text)]


def test_no_block_shows_a_path_of_one_machine() -> None:
    """Property: what is shown fits every reader's machine; a planted path is seen."""
    assert not machine_paths(all_blocks())
    assert machine_paths([Block("p", 1, "sh", "cd /home/ada/app\n")])


def test_the_make_targets_of_the_readme_run_what_they_say() -> None:
    """Property: `make demo` and `make test` exist and come down to commands that exist.

    They are run for real by whoever types them; here make only says what it would run.
    """
    shown = [b.text for b in blocks(ROOT / "README.md", ROOT) if "make " in b.text]
    commands = [line for text in shown for line in text.splitlines()]
    assert commands == ["make demo", "make test"]
    for command, wanted in zip(commands, ("ackbox demo", "pytest"), strict=True):
        dry = subprocess.run(
            [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert wanted in dry.stdout
