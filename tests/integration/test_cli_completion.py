"""The completion script in a real bash: commands, options, choices, and nothing is started."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.command_line import bare_line

COMPLETED = """
set -e
source ackbox.bash
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_ackbox_completion ackbox
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder that holds the script."""
    line = bare_line(monkeypatch, tmp_path)
    (tmp_path / "ackbox.bash").write_text(line.run("completion", "bash").out)
    return tmp_path


def completed(folder: Path, words: str) -> list[str]:
    """Return what bash would offer after these words."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        [bash, "--norc", "-c", COMPLETED.format(words=words)], cwd=folder, text=True,
        capture_output=True, check=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    return ended.stdout.split()


def test_commands_options_and_choices_are_completed(folder: Path) -> None:
    """What click knows of a command is offered by its beginning."""
    assert completed(folder, "ackbox re") == [
        "relay", "reaper", "reconciler", "resolve", "release",
    ]  # fmt: skip
    assert "--not-landed" in completed(folder, "ackbox resolve x --no")
    assert completed(folder, "ackbox ls --state comm") == ["committed"]
    assert completed(folder, "ackbox doctor --here r") == ["relay", "reaper", "reconciler"]
    assert completed(folder, "ackbox sim ch") == ["chaos"]


def test_roles_are_completed_behind_a_comma(folder: Path) -> None:
    """A list is completed at its end, without what it has already."""
    assert completed(folder, "ackbox up --roles relay,rea") == ["relay,reaper"]
    assert completed(folder, "ackbox up --roles relay,re") == ["relay,reaper", "relay,reconciler"]


def test_nothing_is_left_behind(folder: Path) -> None:
    """Completing opens no database and makes no folder."""
    completed(folder, "ackbox ls --")
    assert [one.name for one in folder.iterdir()] == ["ackbox.bash"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_have_a_script(shell: str, folder: Path) -> None:
    """Each names the variable by which it asks."""
    from ..support.command_line import CommandLine

    said = CommandLine().run("completion", shell)
    assert said.code == 0
    assert f"_ACKBOX_COMPLETE={shell}_complete" in said.out
