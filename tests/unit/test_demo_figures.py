"""What the demo counts: every way to lose or double a step shows, and fails the command."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ackbox.app.demo import cli, run
from ackbox.app.demo.figures import Counts, Ending, Figures, count_ackbox, count_naive
from ackbox.app.demo.plan import Step, plan_steps
from ackbox.app.demo.progress import PlainLines, Snapshot
from ackbox.app.demo.provider import by_step
from ackbox.app.demo.report import remarks, table, way_on
from ackbox.app.demo.run import Told
from ackbox.outbox.told import Committed, Failed, InFlight, UnknownOutcome
from ackbox.outbox.told import Told as ToldOutcome

STEPS = plan_steps("r1", 3)
TICKET, MAIL, CHARGE = STEPS
KEYS = {"steps", "effects", "duplicates", "lost", "committed", "unknown", "stale_rejected",
        "kills", "naive"}  # fmt: skip
GOOD = Figures(
    steps=60, ackbox=Counts(60, 0, 0), committed=59, unknown=1, stale_rejected=3, kills=15,
    naive=Counts(70, 10, 0),
)  # fmt: skip


DONE = partial(Committed, result=None)


def ending(
    kind: Callable[..., ToldOutcome] = DONE, *, finished: bool = True, bound: bool = True
) -> Ending:
    """Return how a step may stand."""
    return Ending(kind(intent_id="x", generation=0), finished, bound)


def endings(**other: Ending) -> dict[str, Ending]:
    """Return three committed steps, some replaced: `ticket`, `mail` or `charge`."""
    names = dict(zip(("ticket", "mail", "charge"), STEPS, strict=True))
    found = {step.name: ending() for step in STEPS}
    return {**found, **{names[name].name: one for name, one in other.items()}}


def effects(**numbers: int) -> dict[str, int]:
    """Return one effect per step, some replaced."""
    names: dict[str, Step] = {"ticket": TICKET, "mail": MAIL, "charge": CHARGE}
    return {step.intent_id: numbers.get(name, 1) for name, step in names.items()}


def test_a_good_run_lost_and_doubled_nothing() -> None:
    """One effect each, all bound."""
    assert count_ackbox(STEPS, effects(), endings()) == Counts(3, 0, 0)


def test_a_second_effect_is_a_duplicate_whatever_is_told() -> None:
    """The tools' side counts, not the outbox."""
    counted = count_ackbox(STEPS, effects(mail=3), endings())
    assert (counted.effects, counted.duplicates) == (5, 2)
    assert counted.doubled_steps == (MAIL.name,)


UNKNOWN = ending(UnknownOutcome, bound=False)
LOSSES: list[Callable[[], Counts]] = [
    lambda: count_ackbox(STEPS, effects(mail=0), endings()),
    lambda: count_ackbox(STEPS, effects(), endings(mail=ending(bound=False))),
    lambda: count_ackbox(STEPS, effects(), endings(mail=Ending(None, False, False))),
    lambda: count_ackbox(
        STEPS, effects(mail=0), endings(mail=ending(InFlight, finished=False, bound=False))
    ),
    lambda: count_ackbox(
        STEPS, effects(), endings(mail=ending(UnknownOutcome, finished=False, bound=False))
    ),
    lambda: count_ackbox(STEPS, effects(), endings(mail=UNKNOWN)),
    lambda: count_naive(STEPS, effects(mail=0)),
]


@pytest.mark.parametrize("count", LOSSES)
def test_every_way_to_lose_a_step_counts(count: Callable[[], Counts]) -> None:
    """Committed without effect, not bound, not stored, stuck, unknown without a person, parked."""
    counted = count()
    assert (counted.lost, counted.lost_steps) == (1, (MAIL.name,))


@pytest.mark.parametrize("number", [0, 1])
def test_a_parked_keyless_step_is_neither_lost_nor_doubled(number: int) -> None:
    """It stands in front of a person, whether or not its effect happened."""
    counted = count_ackbox(STEPS, effects(charge=number), endings(charge=UNKNOWN))
    assert (counted.lost, counted.duplicates) == (0, 0)


def test_a_proven_failure_is_not_lost() -> None:
    """The planner was told that nothing happened."""
    failed = ending(Failed)
    assert count_ackbox(STEPS, effects(mail=0), endings(mail=failed)).lost == 0


def test_a_committed_step_has_ended_once_it_is_bound() -> None:
    """The run waits for the consumer too."""
    assert ending().ended
    assert not ending(bound=False).ended
    assert UNKNOWN.ended


def test_effects_of_one_step_are_summed_over_its_keys() -> None:
    """Later generations, and the fresh keys of bare RQ, belong to one step."""
    assert by_step({"a": 1, "a~g1": 1, "b": 1}, "~") == {"a": 2, "b": 1}
    assert by_step({"a.j-1.3": 1, "a.j-1.2": 1}, ".") == {"a": 2}


def test_json_has_exactly_the_promised_keys() -> None:
    """Scripts rely on them."""
    assert set(GOOD.as_dict()) == KEYS
    assert GOOD.as_dict()["naive"] == {"effects": 70, "duplicates": 10}


@pytest.mark.parametrize(("field", "is_good"), [("effects", True), ("duplicates", False),
                                                ("lost", False)])  # fmt: skip
@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_fails_where_anything_is_lost_or_doubled(
    monkeypatch: pytest.MonkeyPatch, field: str, is_good: bool, as_json: bool
) -> None:
    """Exit code 1; the figures are printed all the same."""
    numbers = {"effects": 60, "duplicates": 0, "lost": 0, field: 1}
    figures = replace(GOOD, ackbox=Counts(**numbers))  # type: ignore[arg-type]

    def run(*_: Any) -> Told:
        return Told(figures, "ackbox show r1:open-ticket-1", Path("logs"))

    monkeypatch.setattr(cli, "run_demo", run)
    result = CliRunner().invoke(cli.demo_command, ["--json"] if as_json else [])
    assert result.exit_code == (0 if is_good else 1)
    if as_json:
        assert json.loads(result.stdout) == figures.as_dict()
    else:
        assert "ackbox show r1:open-ticket-1" in result.stdout


def test_kills_without_room_are_a_usage_error() -> None:
    """Nothing is started, and the message says what fits."""
    result = CliRunner().invoke(cli.demo_command, ["--steps", "12", "--kills", "99"])
    assert result.exit_code == 2
    assert "12 steps have room for" in result.stderr


def test_ctrl_c_says_how_things_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback, and not a success."""

    def run(*_: Any) -> Told:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_demo", run)
    result = CliRunner().invoke(cli.demo_command, [])
    assert (result.exit_code, "Stopped." in result.stderr) == (1, True)


def test_the_table_sets_both_sides_side_by_side() -> None:
    """Each line fits a terminal, and the keyless tool is named where something is parked."""
    lines = list(table(GOOD))
    assert max(map(len, lines)) <= 100
    doubled = next(line for line in lines if "duplicate" in line)
    assert doubled.split()[-2:] == ["0", "10"]
    assert any("tool without key or probe" in line for line in lines)
    assert not any("tool without" in line for line in table(replace(GOOD, unknown=0)))


def test_the_last_line_leads_on() -> None:
    """It is a command that can be copied."""
    (last,) = way_on("ackbox show r1:open-ticket-1")
    assert last.endswith("ackbox show r1:open-ticket-1")


def test_remarks_name_the_steps_and_a_naive_side_that_was_lucky() -> None:
    """Whoever sees a bad run knows where to look."""
    bad = replace(GOOD, ackbox=Counts(61, 1, 1, ("lost-1",), ("twice-2",)), naive=Counts(60, 0, 0))
    told = "\n".join(remarks(bad))
    assert "lost-1" in told
    assert "twice-2" in told
    assert "doubled nothing" in told
    assert list(remarks(GOOD)) == []


def test_plain_progress_is_told_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    """The first line at once, the last one once, nothing on stdout."""
    lines = PlainLines("ackbox")
    for ended in (0, 1, 2, 3, 3):
        lines.show(Snapshot(ended, 3, kills=1, unknown=0))
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.split()[1] for line in said.err.splitlines()] == ["0/3", "3/3"]


def test_the_hint_names_a_command_that_the_shell_finds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By name where PATH has this very command, else by its path as seen from here."""
    script = tmp_path / "venv" / "bin" / "ackbox"
    script.parent.mkdir(parents=True)
    script.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", str(script.with_name("python")))
    monkeypatch.setenv("PATH", str(script.parent))
    assert run._program() == "ackbox"
    monkeypatch.setenv("PATH", "")
    assert run._program() == "venv/bin/ackbox"
    monkeypatch.chdir("/")
    assert run._program() == str(script).removeprefix("/")
    script.unlink()
    assert run._program() == "ackbox"
