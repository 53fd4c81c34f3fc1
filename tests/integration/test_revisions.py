"""The revisions that are read from the migration files are the ones that Alembic walks."""

import re
import subprocess
import sys
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from ackbox.outbox.shell.revisions import PACKAGE, read_chain, shipped


def walked_by_alembic() -> tuple[tuple[str, str], ...]:
    """Ask Alembic itself, which imports every migration."""
    configuration = Config()
    configuration.set_main_option("script_location", f"{PACKAGE}:migrations")
    configuration.set_main_option("path_separator", "os")
    newest_first = ScriptDirectory.from_config(configuration).walk_revisions()
    return tuple((one.revision, f"{one.revision}: {one.doc}") for one in newest_first)[::-1]


def test_as_alembic_walks_them() -> None:
    """Names, lines and order; the last of them is Alembic's one head."""
    read = tuple((one.name, f"{one.name}: {one.title}") for one in shipped().revisions)
    assert read == walked_by_alembic()


def planted(folder: Path, name: str, before: str | None, kind: str) -> None:
    """Write a migration file under a name that says nothing about its place."""
    source = f'"""The {name} one.\n\nMore."""\nrevision = "{name}"\ndown_revision = {before!r}\n'
    (folder / f"{hash(name)}.py").write_text(f"{source}{kind}\n")


def test_a_longer_chain_is_put_in_order(tmp_path: Path) -> None:
    """The order follows `down_revision`; a contracting one ends whoever is older than it says."""
    planted(tmp_path, "0003", "0002", 'kind = "contract"\nworks_from = "0002"')
    planted(tmp_path, "0001", None, 'kind = "expand"')
    planted(tmp_path, "0004", "0003", 'kind = "expand"')
    planted(tmp_path, "0002", "0001", 'kind = "expand"')
    chain = read_chain(tmp_path)
    assert [(one.name, one.kind, one.works_from) for one in chain.revisions] == [
        ("0001", "expand", "0001"), ("0002", "expand", "0001"), ("0003", "contract", "0002"),
        ("0004", "expand", "0002"),
    ]  # fmt: skip
    assert chain.revisions[0].title == "The 0001 one."
    assert [one.name for one in chain.after("0002")] == ["0003", "0004"]
    assert (chain.head, chain.needed) == ("0004", "0004")


def test_every_revision_says_what_it_does_to_older_processes() -> None:
    """A contracting one keeps the release before it working; names compare as texts."""
    before = ""
    for one in shipped().revisions:
        assert re.fullmatch(r"\d{4}", one.name)
        assert one.kind in ("expand", "contract")
        assert one.works_from <= (before or one.name), f"{one.name} ends the release before it"
        before = one.name


def test_asking_for_the_head_imports_no_alembic() -> None:
    """Commands that only look at the schema start without it."""
    script = (
        "import sys; from ackbox.outbox.shell.migrate import head; assert head();"
        " sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
