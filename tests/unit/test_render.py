"""What is generated follows the table, and a stale file is told with its difference."""

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from ackbox.outbox import render
from ackbox.outbox.defaults import Limits
from ackbox.outbox.model import State
from ackbox.outbox.transitions import EDGES, legal_pairs


def test_the_files_of_the_checkout_are_fresh() -> None:
    """What stands in the repository is what the table renders to."""
    done = subprocess.run(
        [sys.executable, "-m", "ackbox.outbox.render", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")


def test_check_tells_a_stale_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed line and a missing file are both shown, and nothing is written."""
    monkeypatch.setattr(render, "__file__", str(tmp_path / "outbox" / "render.py"))
    render.write(tmp_path)
    assert render.main(["--check"]) == 0
    page = tmp_path / render.LIMITS_TABLE
    page.write_text(page.read_text().replace("| 20 |", "| 21 |"))
    (tmp_path / render.EDGES_SQL).unlink()
    assert render.main(["--check"]) == 1
    shown = capsys.readouterr().out
    assert "-| `max_sends` | 21 |" in shown
    assert "+CREATE TRIGGER" in shown
    assert not (tmp_path / render.EDGES_SQL).exists()


def test_writing_makes_every_file_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run writes all files, folders included."""
    monkeypatch.setattr(render, "__file__", str(tmp_path / "outbox" / "render.py"))
    assert render.main([]) == 0
    assert render.stale(tmp_path) == ""
    assert {path for path in render.documents() if (tmp_path / path).exists()} == set(
        render.documents()
    )


def test_every_pair_has_an_arrow() -> None:
    """The diagram shows each legal pair, and no other."""
    arrows = {
        tuple(line.strip().partition(":")[0].split(" --> "))
        for line in render.mermaid().splitlines()[1:]
        if "[*]" not in line
    }
    assert arrows == {(source.value, target.value) for source, target in legal_pairs()}


def test_every_edge_and_guard_code_has_its_place() -> None:
    """The page names each edge with each of its guards and its code."""
    page = render.protocol_table()
    for edge in EDGES:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{edge.name}` |")]
        assert all(f"{guard.name} (`{guard.code}`)" in row for guard in edge.guards)


def test_every_limit_has_a_meaning() -> None:
    """The limits' page has a row for each field, with its default."""
    page = render.limits_table()
    for one in fields(Limits):
        assert f"| `{one.name}` | " in page
        assert one.metadata["meaning"] in page


def test_an_edge_less_is_a_pair_less() -> None:
    """The script follows the table that it is given: without claims nothing may execute."""
    fewer = [edge for edge in EDGES if edge.name != "claim"]
    line = next(line for line in render.edges_sql(fewer).splitlines() if "WHEN 'queued'" in line)
    assert "'executing'" not in line
    assert "'executing'" in render.edges_sql()
    assert all(f"'{state.value}'" in render.edges_sql() for state in State)
