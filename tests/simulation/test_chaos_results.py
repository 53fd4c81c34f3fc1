"""The committed results are what the suite says now, on any machine, and the page follows them."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from ackbox.app.sim import chaos_cli
from ackbox.app.sim.cli import sim_group
from ackbox.sim.chaos.chart import chart
from ackbox.sim.chaos.page import BARS, page
from ackbox.sim.chaos.suite import as_text, document

pytestmark = pytest.mark.xdist_group("chaos")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """Give the whole suite, run once."""
    return document()


def test_no_rule_is_broken(results: dict[str, Any]) -> None:
    """Property: no violation in any scenario, golden or mixture."""
    assert results["violations"] == 0
    assert {one["name"]: one["broken"] for one in results["scenarios"] if one["broken"]} == {}
    assert results["goldens"]["passed"] == results["goldens"]["total"] == 24
    assert (results["fuzz"]["seeds"], results["fuzz"]["failing"]) == (200, [])


def test_the_committed_results_are_those_of_this_run(results: dict[str, Any]) -> None:
    """Property: byte for byte; `ackbox sim chaos --write` writes them."""
    committed = (ROOT / chaos_cli.RESULTS).read_text(encoding="utf-8")
    assert committed == as_text(results)


def test_the_page_follows_the_results(results: dict[str, Any]) -> None:
    """Property: the page is written from the document, read back from its own text."""
    assert (ROOT / chaos_cli.PAGE).read_text(encoding="utf-8") == page(results)
    assert page(json.loads(as_text(results))) == page(results)


def test_the_chart_follows_the_results(results: dict[str, Any]) -> None:
    """Property: the committed picture is of this run; it needs nothing but itself."""
    drawn = chart(results)
    assert (ROOT / chaos_cli.PICTURE).read_text(encoding="utf-8") == drawn
    assert f"({chaos_cli.PICTURE.name})" in page(results)
    root = ElementTree.fromstring(drawn)
    shown = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    for one in results["headline"].values():
        assert {str(one[name]) for name in BARS} <= set(shown)
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
    more = {**results["headline"]["naive"], "parked": 777}
    assert chart({**results, "headline": {"naive": more}}) != drawn


def test_throttles_spare_a_tool_that_is_out(results: dict[str, Any]) -> None:
    """Property: the same intents end the same way, with a fraction of the requests (F7)."""
    found = {(one["name"], one["tool"]): one for one in results["scenarios"]}
    plain, budget, both = (
        found[name, "keyed"] for name in ("outage", "outage-budget", "outage-throttled")
    )
    assert {one["resolved"] for one in (plain, budget, both)} == {360}
    assert both["attempts"] * 6 < plain["attempts"]
    assert budget["attempts"] * 2 < plain["attempts"]
    parked = [found[f"outage-unproven{more}", "keyless"]["parked"] for more in ("", "-throttled")]
    assert parked[1] * 3 < parked[0]


def test_amplification_never_stands_without_completion(results: dict[str, Any]) -> None:
    """Property: the storm is completed, at 1.5 requests an intent at most."""
    storms = [one for one in results["scenarios"] if one["name"] == "retry-storm"]
    assert {(one["attempts"], one["resolved"], one["completion"]) for one in storms} == {
        (582, 400, 1.0)
    }
    assert all(one["amplification"] <= 1.5 for one in storms)
    assert all("completion" in one for one in results["scenarios"])


def small(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]) -> None:
    """Have the command find a document at once."""
    monkeypatch.setattr(chaos_cli, "document", lambda seeds: found)


def test_the_command_prints_the_document(
    monkeypatch: pytest.MonkeyPatch, results: dict[str, Any]
) -> None:
    """Property: --json is the committed text; without it the arms stand in a table."""
    small(monkeypatch, results)
    printed = CliRunner().invoke(sim_group, ["chaos", "--json"])
    assert (printed.exit_code, printed.stdout) == (0, as_text(results))
    table = CliRunner().invoke(sim_group, ["chaos"]).stdout
    assert "24 of 24 goldens as pinned" in table
    assert table.splitlines()[1].split() == ["naive", "1031", "866", "666", "200", "0", "0"]


def test_drift_and_violations_end_with_exit_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, results: dict[str, Any]
) -> None:
    """Property: --check sees a changed figure; a broken rule fails without being asked."""
    monkeypatch.chdir(tmp_path)
    small(monkeypatch, results)
    assert CliRunner().invoke(sim_group, ["chaos", "--check"]).exit_code == 2
    (tmp_path / "sim/results").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    assert CliRunner().invoke(sim_group, ["chaos", "--write"]).exit_code == 0
    assert CliRunner().invoke(sim_group, ["chaos", "--check"]).exit_code == 0
    changed = {**results, "headline": {**results["headline"], "naive": results["fuzz"]}}
    small(monkeypatch, changed)
    seen = CliRunner().invoke(sim_group, ["chaos", "--check"])
    assert (seen.exit_code, "differs from this run" in seen.stderr) == (1, True)
    small(monkeypatch, {**results, "violations": 1, "headline_broken": ["two effects"]})
    broken = CliRunner().invoke(sim_group, ["chaos"])
    assert (broken.exit_code, "BROKEN two effects" in broken.stdout) == (1, True)
