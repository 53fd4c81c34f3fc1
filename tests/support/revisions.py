"""Planted revisions: this version's own chain with later ones behind it, as a next release has."""

import shutil
from importlib import resources
from pathlib import Path

from ackbox.outbox.shell.revisions import PACKAGE, Chain, head, read_chain


def later(number: int) -> str:
    """Return the name of a revision that comes so many after the shipped head."""
    return f"{int(head()) + number:04d}"


def longer_chain(folder: Path, *kinds: str) -> Chain:
    """Return the shipped chain and one revision per kind behind it, each with a table of its own.

    A contracting one also drops a column that this version writes, and needs its predecessor.
    """
    folder.mkdir(exist_ok=True)
    shipped = Path(str(resources.files(PACKAGE) / "migrations/versions"))
    versions = folder / f"versions_{len(list(folder.iterdir()))}"
    shutil.copytree(shipped, versions, ignore=shutil.ignore_patterns("__pycache__"))
    for number, kind in enumerate(kinds, 1):
        _plant(versions, number, kind)
    return read_chain(versions)


def _plant(versions: Path, number: int, kind: str) -> None:
    name, before = later(number), later(number - 1)
    script = f"CREATE TABLE {{schema}}.later_{name} (number integer);\n"
    lines = [f'"""A later {kind} one."""', f'revision = "{name}"', f'down_revision = "{before}"']
    lines += ["branch_labels = None", "depends_on = None", f'kind = "{kind}"']
    if kind == "contract":
        script += "ALTER TABLE {schema}.worker DROP COLUMN lanes;\n"
        lines.append(f'works_from = "{before}"')
    lines += ["", "", "def upgrade(run_sql):", f'    run_sql("{name}.sql")']
    (versions / f"v{name}.py").write_text("\n".join(lines) + "\n")
    (versions / f"{name}.sql").write_text(script)
