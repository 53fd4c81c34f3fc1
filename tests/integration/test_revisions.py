"""The revisions that are read from the migration files are the ones that Alembic walks."""

import subprocess
import sys

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from ackbox.outbox.shell import revisions


def walked_by_alembic() -> tuple[tuple[str, str], ...]:
    """Ask Alembic itself, which imports every migration."""
    configuration = Config()
    configuration.set_main_option("script_location", f"{revisions.PACKAGE}:migrations")
    configuration.set_main_option("path_separator", "os")
    newest_first = ScriptDirectory.from_config(configuration).walk_revisions()
    return tuple((one.revision, f"{one.revision}: {one.doc}") for one in newest_first)[::-1]


def test_as_alembic_walks_them() -> None:
    """Names, lines and order; the last of them is Alembic's one head."""
    assert revisions.revisions() == walked_by_alembic()


def test_a_longer_chain_is_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order follows `down_revision`, whatever the files are called."""
    sources = [
        f'"""The {name} one.\n\nMore."""\nrevision = "{name}"\ndown_revision = {before!r}\n'
        for name, before in (("c", "b"), ("a", None), ("b", "a"))
    ]
    monkeypatch.setattr(revisions, "_sources", lambda: sources)
    expected = (("a", "a: The a one."), ("b", "b: The b one."), ("c", "c: The c one."))
    assert revisions.revisions.__wrapped__() == expected


def test_asking_for_the_head_imports_no_alembic() -> None:
    """Commands that only look at the schema start without it."""
    script = (
        "import sys; from ackbox.outbox.shell.migrate import head; assert head();"
        " sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
