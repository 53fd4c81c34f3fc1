"""Type checkers see what a consumer types: all of it is right, and each mistake is reported.

Run in a folder of its own, against the sources as an installed package would be read.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "consumer"
SOURCES = Path(__file__).parents[2] / "src"
TOOLS = Path(sys.executable).parent


def mypy_lines(file: Path) -> dict[int, str]:
    """Return what mypy reports of a file under --strict, by line."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", file.name],
        cwd=file.parent,
        env={**os.environ, "MYPYPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Success" in done.stdout or " error" in done.stdout, done.stdout + done.stderr
    found = re.findall(rf"^{re.escape(file.name)}:(\d+): error: (.*)$", done.stdout, re.M)
    return {int(line): text for line, text in found}


def pyright_lines(file: Path) -> dict[int, str]:
    """Return what pyright reports of a file in strict mode, by line."""
    checker = TOOLS / "basedpyright"
    if not checker.exists():
        pytest.skip("basedpyright is not installed")
    settings = {
        "include": [file.name],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(SOURCES)],
        "reportUnusedExpression": False,
        "reportUnusedParameter": False,
    }
    (file.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [str(checker), "--outputjson", "--pythonpath", sys.executable],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1, done.stdout
    errors = [one for one in report["generalDiagnostics"] if one["severity"] == "error"]
    return {one["range"]["start"]["line"] + 1: one["message"] for one in errors}


Lines = Callable[[Path], dict[int, str]]
CHECKERS = pytest.mark.parametrize("lines", [mypy_lines, pyright_lines])


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """Return a folder with the consumer's code in it."""
    for file in HERE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path / file.name.removesuffix(".txt"))
    return tmp_path


@CHECKERS
@pytest.mark.parametrize("name", ["agent.py", "kit.py", "plans.py"])
@pytest.mark.timeout(600)
def test_a_consumer_passes_in_strict_mode(name: str, lines: Lines, consumer: Path) -> None:
    """Arguments, results, references, an exhaustive match; callbacks of every kind."""
    assert lines(consumer / name) == {}


@CHECKERS
@pytest.mark.timeout(600)
def test_each_mistake_is_reported_at_its_line(lines: Lines, consumer: Path) -> None:
    """A wrong name, a wrong type, a missing argument, another result, a missing case."""
    file = consumer / "mistakes.py"
    written = file.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(written, 1) if "# MISTAKE" in line}
    place = next(number for number, line in enumerate(written, 1) if "# PLACE" in line)
    found = set(lines(file))
    assert len(marked) == 9
    assert found - {place, place - 1} == marked
    assert found & {place, place - 1}


@CHECKERS
@pytest.mark.timeout(600)
def test_each_mistake_about_callbacks_is_reported_at_its_line(lines: Lines, consumer: Path) -> None:
    """Another tool's result, the wrong kind of function, a word that is none."""
    file = consumer / "plan_mistakes.py"
    written = file.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(written, 1) if "# MISTAKE" in line}
    assert len(marked) == 7
    assert set(lines(file)) == marked
