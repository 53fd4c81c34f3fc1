"""The explorer: what it finds, that it finds the same again, and that it can find something."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackbox.app.sim import explore_table
from ackbox.app.sim.cli import sim_group
from ackbox.app.sim.explore_table import (
    BEGIN,
    END,
    PAGE,
    RESULTS,
    digest_of,
    explore_worlds,
    page_of,
)
from ackbox.sim.choices import Search
from ackbox.sim.explore import Explored, Explorer, SmallWorld, plant_nothing
from ackbox.sim.explore_graph import count_schedules, ends, places
from ackbox.sim.explore_key import StateKeys
from ackbox.sim.explore_offers import Faults, Offers
from ackbox.sim.explore_worlds import PUT, SMALL, TABLE, mints, spec_of, world_of_flags
from ackbox.sim.guards_off import leave_out
from ackbox.sim.mutants_planted import nobody_reaps
from ackbox.sim.running import carry_out
from ackbox.sim.shrink import shrink
from ackbox.sim.trace import Trace, TraceError, read_trace
from ackbox.sim.trace_run import new_world, run_trace
from ackbox.sim.world import World

TINY = world_of_flags("keyless", 2, 1, 1, Faults(cuts=1))
SIBLING = world_of_flags("keyless", 2, 1, 2, Faults(crashes=1))
"""The default world without its redelivery."""


def explored_json(*flags: str) -> dict[str, object]:
    """Return what the command prints."""
    answer = CliRunner().invoke(sim_group, ["explore", "--json", *flags])
    assert answer.exit_code == 0, answer.output
    document: dict[str, object] = json.loads(answer.stdout)
    return document


def test_every_order_of_two_generations_and_a_crash_breaks_no_rule() -> None:
    """A search of a world next to the default one ends, and finds nothing."""
    found = Explorer(SIBLING).run()
    assert found.complete
    assert found.violations == 0
    assert found.states > 5000
    assert found.schedules > 10**9


def test_two_searches_give_the_same_json_but_for_the_seconds() -> None:
    """The numbers of states do not depend on hashes or clocks."""
    flags = ("--generations", "1", "--redeliveries", "0", "--cuts", "1", "--tool", "keyed")
    first, second = explored_json(*flags), explored_json(*flags)
    assert first.pop("seconds") is not None
    second.pop("seconds")
    assert json.dumps(first) == json.dumps(second)
    assert first["violations"] == 0
    assert int(str(first["schedules"])) > 1


def test_a_found_violation_is_written_as_a_short_trace_that_runs(tmp_path: Path) -> None:
    """A planner's bug is found, and its trace breaks the same rule on the shipped code."""
    out = tmp_path / "found.json"
    flags = ["--mint", "--first", "--generations", "1", "--redeliveries", "0", "--crashes", "0"]
    answer = CliRunner().invoke(sim_group, ["explore", *flags, "--out", str(out)])
    assert answer.exit_code == 1
    trace = read_trace(out.read_text("utf-8"))
    outcome = run_trace(trace)
    assert outcome.passed
    assert outcome.rules_broken == ("one_effect_per_step",)
    assert len(trace.events) <= 12


def test_a_planted_bug_is_found_and_shrunk_with_the_bug_in_place() -> None:
    """Without the bug the trace is impossible; with it a detour is taken out again."""
    world = replace(SMALL["two_other"], faults=Faults())
    plant = leave_out("earlier_called_off")
    explorer = Explorer(world, plant=plant)
    found = explorer.run(first=True)
    assert [one.violation.rule for one in found.broken] == ["one_effect_per_step"]
    trace = explorer.trace(found.broken[0])
    with pytest.raises(TraceError):
        run_trace(trace)

    def planted_world(trace: Trace) -> World:
        changed = new_world(trace)
        plant(changed)
        return changed

    detour = ({"do": "wait", "seconds": 1.0}, {"do": "pass", "role": "relay"})
    small = shrink(
        replace(trace, events=(*detour, *trace.events)), "one_effect_per_step", planted_world
    )
    assert len(small.events) <= len(trace.events)
    assert run_trace(small, planted_world).rules_broken == ("one_effect_per_step",)


def test_a_world_that_nobody_moves_on_is_found_at_its_end() -> None:
    """Without a reaper a crashed attempt stays for ever, and only the end shows it."""
    crash = world_of_flags("keyless", 2, 1, 1, Faults(crashes=1))
    explorer = Explorer(crash, plant=nobody_reaps)
    found = explorer.run(first=True)
    assert found.broken[0].violation.rule == "every_intent_ends"
    assert explorer.trace(found.broken[0]).events[-1] == {"do": "settle"}
    assert Explorer(crash).run().violations == 0


def test_a_cut_search_says_so() -> None:
    """A number of schedules is claimed only for a search that came to its end."""
    found = Explorer(SIBLING).run(max_states=50)
    assert not found.complete
    assert found.as_dict()["schedules"] is None


# -- schedules -------------------------------------------------------------------------------------


def test_schedules_are_maximal_paths() -> None:
    """Two ways round a diamond are two schedules with one end."""
    diamond = [[1, 2], [3], [3], []]
    place = places(diamond)
    assert count_schedules(diamond, place) == 2
    assert ends(diamond, place) == [3]


def test_a_loop_of_passes_that_change_nothing_is_one_place() -> None:
    """Going around a loop adds no schedule, and a loop may be an end."""
    looping = [[1], [2, 3], [1], []]
    place = places(looping)
    assert place[1] == place[2]
    assert count_schedules(looping, place) == 1
    held_for_ever = [[1], [2], [1]]
    assert ends(held_for_ever, places(held_for_ever)) == [1]


def test_the_count_is_that_of_a_walk_over_all_paths() -> None:
    """Dynamic programming counts what a plain walk counts."""
    explorer = Explorer(TINY)
    found = explorer.run()
    graph = explorer._graph
    place = places(graph)

    def walk(state: int) -> int:
        members = [one for one in range(len(graph)) if place[one] == place[state]]
        onwards = [o for one in members for o in graph[one] if place[o] != place[state]]
        return sum(walk(one) for one in onwards) if onwards else 1

    assert len(set(place)) < 400
    assert walk(0) == found.schedules


# -- keys ------------------------------------------------------------------------------------------


def test_workers_are_told_apart_by_what_they_do_alone() -> None:
    """A claim by either of two idle workers leads to one state."""
    keys = []
    for worker in ("w1", "w2"):
        search = Search(spec_of("keyless"), Faults().bounds((PUT,), ()))
        offers = Offers(search, Faults())
        assert offers.apply(PUT)
        assert offers.apply(("claim", worker, "s"))
        keys.append(offers.key())
    assert keys[0] == keys[1]


def test_a_crash_a_wait_and_a_claim_make_other_states() -> None:
    """What a rule may see is in the key; a moment within all deadlines is not."""
    search = Search(spec_of("keyless"), Faults(crashes=1).bounds((PUT,), ()))
    offers = Offers(search, Faults(crashes=1))
    seen = [offers.key()]
    for choice in (PUT, ("claim", "w1", "s"), ("wait", 20.0), ("crash", "w1"), ("wait", 20.0)):
        assert offers.apply(choice)
        seen.append(offers.key())
    different = [a != b for a, b in itertools.pairwise(seen)]
    assert different == [True, True, False, True, True]


def test_a_redelivered_token_changes_nothing_wherever_it_comes() -> None:
    """A token for a claimed row is tried, and leaves the state as it is."""
    search = Search(spec_of("keyless"), Faults(redeliveries=1).bounds((PUT,), ()))
    offers = Offers(search, Faults(redeliveries=1))
    assert offers.apply(PUT)
    assert offers.apply(("claim", "w1", "s"))
    assert ("claim", "w2", "s") in offers.choices()
    before = offers.key()
    assert offers.apply(("claim", "w2", "s"))
    assert offers.changed_nothing(("claim", "w2", "s"))
    assert offers.key() == before


def test_the_key_is_that_of_the_world_after_any_number_of_forks() -> None:
    """Going back to a mark brings its key back."""
    search = Search(spec_of("keyed"), Faults().bounds((PUT,), ()))
    offers = Offers(search, Faults())
    offers.apply(PUT)
    mark, key, keys = search.snapshot(), offers.key(), StateKeys()
    other = keys.key(search.world, ())
    carry_out(search.world, {"do": "settle"}, search.world.apply)
    assert offers.key() != key
    assert keys.key(search.world, ()) != other
    search.restore(mark)
    assert offers.key() == key
    assert keys.key(search.world, ()) == other


# -- the table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", TABLE, ids=lambda world: world.name)
def test_every_world_of_the_table_begins_without_a_violation(world: SmallWorld) -> None:
    """Each world can be built, and the first orders of its events are clean."""
    assert Explorer(world, plant=plant_nothing).run(max_states=150).violations == 0


def test_the_minting_planner_is_part_of_a_plan() -> None:
    """The bug is an event of the plan, right after the first put."""
    assert mints(TINY).plan[1] == ("ask_again", "s", True)


def test_the_committed_results_hold_every_world_and_no_violation() -> None:
    """The committed table is the one of these worlds."""
    document = json.loads(Path("sim/results/explored.json").read_text("utf-8"))
    rows = {row["world"]: row for row in [document["default"], *document["worlds"]]}
    assert document["violations"] == 0
    assert document["cut"] == []
    assert all(row["described"] == digest_of(SMALL[name]) for name, row in rows.items())
    assert (sorted(rows), document["missing"]) == (sorted(SMALL), [])
    assert len(TABLE) >= 47


def test_the_table_of_the_page_is_that_of_the_results() -> None:
    """The documentation shows the committed lines, and the default world's numbers."""
    document = json.loads(RESULTS.read_text("utf-8"))
    page = PAGE.read_text("utf-8")
    assert page_of(page, document) == page
    default = document["default"]
    assert f"**{default['states']:,} states**" in page
    assert f"**{int(default['schedules']):,} schedules**" in page


def test_a_line_is_kept_until_its_world_is_described_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that was stopped goes on where it was; a changed world is searched again."""
    results, page = tmp_path / "explored.json", tmp_path / "page.md"
    monkeypatch.setattr(explore_table, "RESULTS", results)
    monkeypatch.setattr(explore_table, "PAGE", page)
    page.write_text(BEGIN + END, encoding="utf-8")
    worlds, done = [SMALL["handed_over"], SMALL["keyless_requeue"]], list[str]()

    def explore_one(world: SmallWorld) -> Explored:
        done.append(world.name)
        return Explorer(world).run()

    explore_worlds(worlds[:1], explore_one, write=True, anew=False)
    explore_worlds(worlds, explore_one, write=True, anew=False)
    assert done == ["handed_over", "keyless_requeue"]
    results.write_text(results.read_text("utf-8").replace(digest_of(worlds[0]), "other"), "utf-8")
    explore_worlds(worlds, explore_one, write=True, anew=False)
    explore_worlds(worlds[1:], explore_one, write=True, anew=True)
    assert done[2:] == ["handed_over", "keyless_requeue"]
    assert "| `handed_over` |" in page.read_text("utf-8")
