"""Which revisions of the schema this version of ackbox ships, in which order, and who fits them.

A revision expands (every older process works on) or contracts (processes that know no newer
revision than the one before `works_from` do not). Read from the text of the migration files: every
command asks for the head, and none but `migrate` should wait for Alembic. May import the standard
library only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

PACKAGE = "ackbox.outbox"
FIRST = "0001"
"""What a process knows whose heartbeat row says nothing: it is older than the column."""
Kind = Literal["expand", "contract"]
_NAMES = frozenset({"revision", "down_revision", "kind", "works_from"})


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of the schema. Names are four digits, so that they compare as texts.

    `works_from` is the oldest revision whose ackbox can work with the result.
    """

    name: str
    kind: Kind
    title: str
    works_from: str


@dataclass(frozen=True)
class Chain:
    """Revisions, oldest first, and the folder that their SQL files stand in."""

    revisions: tuple[Revision, ...]
    folder: Traversable

    @property
    def head(self) -> str:
        """The newest revision."""
        return self.revisions[-1].name

    @property
    def needed(self) -> str:
        """The oldest revision that code of this head can run on: no expanding one is missing."""
        return [one.name for one in self.revisions if one.kind == "expand"][-1]

    def find(self, name: str | None) -> Revision | None:
        """Return a revision of this chain, None for any other."""
        return next((one for one in self.revisions if one.name == name), None)

    def after(self, found: str | None) -> tuple[Revision, ...]:
        """Return what is to be run on a schema at this revision, all for None."""
        return tuple(one for one in self.revisions if found is None or one.name > found)


@cache
def shipped() -> Chain:
    """Return the chain of this installation."""
    return read_chain(resources.files(PACKAGE) / "migrations/versions")


def head() -> str:
    """Return the revision that this version of ackbox brings a schema to."""
    return shipped().head


@cache
def version() -> str:
    """Return the version of the installed distribution."""
    return metadata.version("ackbox")


def read_chain(folder: Traversable) -> Chain:
    """Return the revisions of a folder's migration files, as Alembic walks them."""
    sources = (
        file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".py") and file.name != "__init__.py"
    )
    return Chain(tuple(_ordered(map(_read, sources))), folder)


def _ordered(given: Iterable[dict[str, Any]]) -> Iterable[Revision]:
    following = {one["down_revision"]: one for one in given}
    newest = None
    works_from = FIRST
    while newest in following:
        one = following[newest]
        newest = one["revision"]
        works_from = one["works_from"] if one["kind"] == "contract" else works_from
        yield Revision(newest, one["kind"], one["title"], works_from)


def _read(source: str) -> dict[str, Any]:
    """Return a migration's constants, and the first line of its docstring as its title."""
    module = ast.parse(source)
    given = {
        target.id: ast.literal_eval(line.value)
        for line in module.body
        if isinstance(line, ast.Assign)
        for target in line.targets
        if isinstance(target, ast.Name) and target.id in _NAMES
    }
    return {**given, "title": (ast.get_docstring(module) or "").partition("\n")[0]}
