"""Loads the named SQL statements, each rendered once for one schema.

A file `outbox/sql/<name>.sql` holds one statement under a header of comments (purpose, edges, what
zero rows mean). Placeholders: `{schema}` the quoted schema; `{where:EDGE}` and `{set:EDGE}` the
condition and the SET list of an edge of `transitions`; `{guard:NAME}` one guard's condition.
Bind parameters are SQLAlchemy's `:name`. No other SQL stands in Python.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from importlib.resources import files
from typing import Any

from sqlalchemy import TextClause, text

from ..defaults import Limits
from ..guards import GUARDS
from ..transitions import BIND, EDGE, Edge, set_sql, where_sql
from .connection import quoted

_PLACEHOLDER = re.compile(r"\{(where|set|guard):([a-z_.]+)\}")


def _edge(name: str) -> Edge:
    return BIND if name == BIND.name else EDGE[name]


def _render(source: str, schema: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind == "guard":
            return GUARDS[name].sql
        return where_sql(_edge(name)) if kind == "where" else set_sql(_edge(name))

    # Escaped, since text() reads a colon and a word as a bind parameter.
    name = quoted(schema).replace(":", "\\:")
    return _PLACEHOLDER.sub(replaced, source).replace("{schema}", name)


class Statements:
    """The statements of one schema. `limits` fills the parameters that are named like a limit."""

    def __init__(self, schema: str, limits: Limits) -> None:
        self.schema = schema
        self._limits = asdict(limits)
        self._loaded: dict[str, tuple[TextClause, dict[str, Any]]] = {}

    @cached_property
    def _folder(self) -> Any:
        return files(__package__.rpartition(".")[0]) / "sql"

    def named(self, name: str) -> tuple[TextClause, dict[str, Any]]:
        """Return the statement of a file, and the limits that it takes. KeyError if unknown."""
        return self._load(name, f"{name}.sql", {})

    def looking(self, name: str) -> tuple[TextClause, dict[str, Any]]:
        """Return the statement of a file that locks rows, without its lock."""
        return self._load(f"look {name}", f"{name}.sql", {"FOR UPDATE OF s": ""})

    def edge(self, name: str) -> tuple[TextClause, dict[str, Any]]:
        """Return the statement that performs one edge on a batch of moves."""
        wording = {"{where}": f"{{where:{name}}}", "{set}": f"{{set:{name}}}"}
        return self._load(f"edge {name}", "edge.sql", wording)

    def _load(
        self, key: str, file: str, wording: Mapping[str, str]
    ) -> tuple[TextClause, dict[str, Any]]:
        if key not in self._loaded:
            source = str((self._folder / file).read_text(encoding="utf-8"))
            for placeholder, words in wording.items():
                source = source.replace(placeholder, words)
            clause = text(_render(_without_comments(source), self.schema))
            limits = {k: v for k, v in self._limits.items() if k in clause._bindparams}
            self._loaded[key] = (clause, limits)
        return self._loaded[key]


def _without_comments(source: str) -> str:
    """Drop the header: a colon in a comment would read as a bind parameter."""
    return "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("--"))
