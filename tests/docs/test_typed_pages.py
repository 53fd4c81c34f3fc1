"""What annotated pages tell to write passes a type checker, as a reader's editor would run it."""

import os
import subprocess
import sys
from pathlib import Path

from .pages import blocks

ROOT = Path(__file__).resolve().parents[2]
TYPED = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    ROOT / "docs" / "howto" / "agent-loop.md",
    ROOT / "docs" / "howto" / "answer-202.md",
    ROOT / "docs" / "howto" / "worker-two-tools.md",
]


def checked(folder: Path) -> str:
    """Return what mypy --strict says of all files of a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", "."],
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def test_files_of_annotated_pages_pass_mypy(tmp_path: Path) -> None:
    """Property: the pages' files are right under --strict, and a mistake in them is seen."""
    written: set[str] = set()
    for page in TYPED:
        for block in blocks(page, ROOT):
            if block.what == "file":
                assert block.value not in written, f"two pages write {block.value}"
                written.add(block.value)
                (tmp_path / block.value).write_text(block.text, encoding="utf-8")
    assert len(written) >= 9
    assert "Success" in checked(tmp_path), checked(tmp_path)
    (tmp_path / "wrong.py").write_text(
        "from tickets import create_ticket\ncreate_ticket.intent(title=1)\n"
    )
    assert "wrong.py:2: error" in checked(tmp_path)
