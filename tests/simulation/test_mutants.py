"""Planted bugs and left-out guards: each is caught by the rule that is named for it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from ackbox.app.sim import mutants_cli
from ackbox.app.sim.cli import sim_group
from ackbox.outbox.guards import GUARDS
from ackbox.outbox.transitions import BIND, EDGE, EDGES
from ackbox.sim.explore import plant_nothing
from ackbox.sim.guards_off import leave_out, table_without
from ackbox.sim.guards_scripts import SCRIPTS
from ackbox.sim.guards_tried import SHOWN, GuardTried, script
from ackbox.sim.guards_unneeded import UNNEEDED
from ackbox.sim.invariants import RULES
from ackbox.sim.mutants import MUTANTS, Mutant, run_mutants
from ackbox.sim.mutants_trial import try_script, try_world


def test_every_planted_bug_is_caught_by_its_rule() -> None:
    """No bug survives, and each verdict names a rule that exists."""
    verdicts = run_mutants()
    assert len(verdicts) >= 15
    assert [one.name for one in verdicts if not one.caught] == []
    assert len({one.name for one in verdicts}) == len(verdicts)
    assert {one.rule for one in verdicts} <= set(RULES)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_without_its_bug_a_trial_breaks_no_rule(mutant: Mutant) -> None:
    """What catches a bug is the bug, not the trial."""
    if mutant.name == "fresh_id_on_timeout":
        assert not try_script(script("essay_good"), plant_nothing).rules
    elif mutant.world is None:
        assert not try_script(script(mutant.trace), plant_nothing).rules
    else:
        assert not try_world(mutant.world, plant_nothing, {}, 300).rules


def guards_json() -> str:
    """Return what the command prints of the guards."""
    answer = CliRunner().invoke(sim_group, ["mutants", "--guards", "--json"])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_every_guard_is_shown_or_was_searched_for() -> None:
    """Each guard is needed somewhere, or searches to the end without it found nothing."""
    assert set(SHOWN) | set(UNNEEDED) == set(GUARDS)
    assert not set(SHOWN) & set(UNNEEDED)
    document = json.loads(guards_json())
    assert document["guards"] == len(GUARDS)
    assert document["caught"] == len(SHOWN)
    assert document["survivors"] == []
    assert {one["guard"] for one in document["unneeded"]} == set(UNNEEDED)
    assert all(one["reason"] and one["searched"] for one in document["unneeded"])
    assert all(run["states"] > 300 for one in document["unneeded"] for run in one["searched"])


@pytest.mark.parametrize("name", [name for name, shown in SHOWN.items() if shown.beside])
def test_a_part_that_does_not_ask_is_harmless_while_the_guard_asks(name: str) -> None:
    """What is put beside a guard breaks no rule as long as the guard is in its place."""
    shown = SHOWN[name]
    assert shown.beside is not None
    assert not try_script(script(shown.script), shown.beside).rules
    assert not try_script(script(shown.script), leave_out(name)).rules


def test_a_search_that_breaks_a_rule_speaks_against_a_reason() -> None:
    """A guard whose searches found something counts as a survivor, whatever its reason says."""
    found = ({"world": "w", "states": 1, "violations": 1},)
    assert not GuardTried("quiet", caught=False, reason="none", searched=found).unneeded
    assert GuardTried("quiet", caught=False, reason="none").unneeded


@pytest.mark.parametrize("name", SCRIPTS)
def test_with_every_guard_in_place_a_script_breaks_no_rule(name: str) -> None:
    """A guard's script is legal where the guard stands."""
    assert not try_script(script(name), plant_nothing).rules


def test_a_guard_is_left_out_of_a_copy_alone() -> None:
    """The shipped table is as before, and other worlds go by it."""
    edges, table = dict(EDGE), table_without("quiet")
    assert any(GUARDS["quiet"] in edge.guards for edge in EDGES)
    assert not any(GUARDS["quiet"] in edge.guards for edge in table.values())
    try_script(script("statement_waits_for_quiet"), leave_out("quiet"))
    assert edges == EDGE
    assert not try_script(script("statement_waits_for_quiet"), plant_nothing).rules


def test_a_guard_may_be_left_out_of_one_edge() -> None:
    """Only the named edge loses it; unknown names are errors."""
    table = table_without("live", frozenset({"bind"}))
    assert GUARDS["live"] not in table["bind"].guards
    assert GUARDS["live"] in BIND.guards
    assert GUARDS["live"] in table["claim"].guards
    with pytest.raises(KeyError):
        table_without("no_such_guard")


def test_a_survivor_fails_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug that nothing catches ends the command with 1, and is named."""
    harmless = Mutant("harmless", "nothing at all", "one_effect_per_step", plant_nothing, "a_b_a")

    def only_harmless(**more: object) -> list[object]:
        return list(run_mutants([harmless]))

    monkeypatch.setattr(mutants_cli, "run_mutants", only_harmless)
    answer = CliRunner().invoke(sim_group, ["mutants", "--json"])
    assert answer.exit_code == 1
    assert json.loads(answer.stdout)["survivors"] == ["harmless"]
