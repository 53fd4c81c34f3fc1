"""Which revisions of the schema this version of ackbox ships, in which order.

Read from the text of the migration files: every command asks for the head, and none but `migrate`
should wait for Alembic. May import the standard library only.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import resources

PACKAGE = "ackbox.outbox"
_NAMES = frozenset({"revision", "down_revision"})


@cache
def revisions() -> tuple[tuple[str, str], ...]:
    """Return (revision, its line for people), oldest first, as Alembic walks them."""
    following = {before: (name, title) for name, before, title in map(_read, _sources())}
    ordered: list[tuple[str, str]] = []
    newest = None
    while newest in following:
        newest, title = following[newest]
        ordered.append((newest, f"{newest}: {title}"))
    return tuple(ordered)


def _sources() -> list[str]:
    folder = resources.files(PACKAGE) / "migrations/versions"
    return [
        file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".py") and file.name != "__init__.py"
    ]


def _read(source: str) -> tuple[str, str | None, str]:
    """Return a migration's name, the one before it, and the first line of its docstring."""
    module = ast.parse(source)
    given = {
        target.id: ast.literal_eval(line.value)
        for line in module.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name) and target.id in _NAMES
    }
    title = (ast.get_docstring(module) or "").partition("\n")[0]
    return given["revision"], given["down_revision"], title
