"""What the code can say is explained: a code, word, name or number without a page fails."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from ackbox.app.cli.exits import ExitCode
from ackbox.app.cli.group import COMMANDS
from ackbox.app.settings import Settings, names
from ackbox.outbox import told
from ackbox.outbox.defaults import Limits
from ackbox.outbox.guards import GUARDS
from ackbox.outbox.transitions import EDGES

from . import code_facts

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
_UNCHECKED_EVENTS = {"put", "put.held", "claim"}
"""Edges' own names, which the table of edges explains."""
_INTERNAL = {"ACKBOX_PARENT_FD"}
"""What the pool hands its children; nobody else sets it."""


def page(name: str) -> str:
    """Return a reference page."""
    return (REFERENCE / name).read_text(encoding="utf-8")


def headings(text: str) -> set[str]:
    """Return the words that have a paragraph of their own."""
    return set(re.findall(r"^### ([a-z_]+)\n\n\S", text, re.MULTILINE))


def first_cells(text: str) -> set[str]:
    """Return the quoted words in the first column of every table."""
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {word for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


def difference(said: Iterable[str], explained: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return what the code says and no page explains, and the other way round."""
    return sorted(set(said) - set(explained)), sorted(set(explained) - set(said))


NOTHING: tuple[list[str], list[str]] = ([], [])


def test_every_refusal_code_has_a_paragraph() -> None:
    """Property: guards' codes and those of every Refusal and Refused, and no others, are there."""
    codes = {guard.code for guard in GUARDS.values()}
    codes |= code_facts.refusal_codes(code_facts.sources())
    assert difference(codes, headings(page("refusals.md"))) == NOTHING


def test_a_new_refusal_code_is_missed() -> None:
    """Property: the comparison can fail, by a literal, by a constant and by a bare heading."""
    planted = ast.parse('WHY = "by_name"\nRefusal("planted")\nRefused(WHY, "look")')
    codes = code_facts.refusal_codes([planted])
    assert codes == {"planted", "by_name"}
    assert difference(codes, headings("### planted\n\nSaid.\n\n### by_name\n")) == (["by_name"], [])
    assert difference([], headings("### gone\n\nText.\n")) == ([], ["gone"])


def test_every_error_code_is_explained() -> None:
    """Property: each code of an exception that is no refusal stands in the table of errors."""
    codes = code_facts.error_codes(code_facts.sources())
    assert difference(codes, first_cells(page("refusals.md"))) == NOTHING


def test_every_code_of_an_outcome_is_explained() -> None:
    """Property: whatever code we conclude ourselves stands in a table of outcomes."""
    codes = code_facts.outcome_codes(code_facts.sources())
    assert not sorted(codes - first_cells(page("outcomes.md")))
    assert code_facts.outcome_codes([ast.parse('Unknown("why", "planted")')]) == {"planted"}


def test_every_told_word_is_explained() -> None:
    """Property: each class that a planner may be told, with its word, stands in one row."""
    kinds = [kind for kind in vars(told).values() if isinstance(kind, type)]
    spoken = [k for k in kinds if issubclass(k, told.Told) and k is not told.Told]
    text = page("outcomes.md")
    missing = [k.__name__ for k in spoken if f"| `{k.word}` | `{k.__name__}` |" not in text]
    assert len(spoken) >= 10
    assert not missing


def test_every_event_is_explained() -> None:
    """Property: each name that an event may have is an edge's or stands in the table of events."""
    statements = [
        path.read_text(encoding="utf-8") for path in (ROOT / "outbox" / "sql").glob("*.sql")
    ]
    found = code_facts.event_names(code_facts.sources(), statements) - _UNCHECKED_EVENTS
    explained = first_cells(page("events.md"))
    assert len(found) >= 10
    assert not sorted(found - explained)
    assert not sorted(explained - found - {"args_conflict", "not_visible"})


def test_a_new_event_is_missed() -> None:
    """Property: a name is found in a statement, behind a CASE too, and in a note."""
    statement = (
        "INSERT INTO {schema}.event (at, seq, name) SELECT {schema}.clock_now(),"
        " greatest(1, s.seq), CASE s.state WHEN 'held' THEN 'planted' ELSE 'other' END FROM s"
    )
    note = ast.parse('Note(seq, "noted", actor)')
    assert code_facts.event_names([note], [statement]) == {"planted", "other", "noted"}


def test_every_edge_stands_in_the_table() -> None:
    """Property: each edge has a row; the generator's own check compares the rest."""
    assert not {edge.name for edge in EDGES} - first_cells(page("protocol-table.md"))


def test_every_command_has_a_section() -> None:
    """Property: each command of the table of commands is on the page of the command line."""
    sections = re.findall(r"^### ackbox ([a-z-]+)$", page("cli.md"), re.MULTILINE)
    assert difference(COMMANDS, sections) == NOTHING


def test_every_setting_is_explained_with_its_default() -> None:
    """Property: each setting has a row, and it shows the default."""
    table = page("settings.md").partition("## Other variables")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.MULTILINE))
    assert difference(names(), rows) == NOTHING
    wrong = {name: rows[name] for name in rows if rows[name].strip("`") not in _shown(name)}
    assert not wrong


def _shown(name: str) -> tuple[str, ...]:
    """Return how the table may write a setting's default."""
    default = Settings.model_fields[names()[name]].default
    if default in (None, (), {}):
        return ("unset", "none")
    return (",".join(default) if isinstance(default, tuple) else str(default),)


def test_every_other_variable_is_explained() -> None:
    """Property: what else the code reads from the environment stands on the page of settings."""
    read = code_facts.variables() - {f"ACKBOX_{name.upper()}" for name in names()}
    assert difference(read - _INTERNAL, first_cells(page("settings.md")) - set(names())) == NOTHING


def test_every_limit_is_explained() -> None:
    """Property: each limit has a row."""
    assert difference(Limits.__dataclass_fields__, first_cells(page("limits.md"))) == NOTHING


def test_every_exit_code_is_explained() -> None:
    """Property: number and name of each exit code stand in one row."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page("exit-codes.md"), re.MULTILINE)
    assert [(int(number), name) for number, name in rows] == [(int(c), c.name) for c in ExitCode]


def test_every_check_of_doctor_is_explained() -> None:
    """Property: each finding's stable name stands on the page about doctor."""
    text = (ROOT / "docs" / "howto" / "doctor.md").read_text(encoding="utf-8")
    found = code_facts.finding_checks((ROOT / "app" / "doctor").glob("*.py"))
    assert len(found) >= 20
    assert not sorted(found - first_cells(text))
