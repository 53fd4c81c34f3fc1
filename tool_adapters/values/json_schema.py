"""JSON schemas of arguments as they are stored, for models that write them.

Decides how shared and recursive types are named in a schema. What one type's schema is, its rule
says; it describes exactly what the rule reads. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .place import Place, Rule, Schema, named


class Definitions:
    """The named types of one schema, each described once."""

    def __init__(self) -> None:
        self.schemas: Schema = {}
        self._names: dict[Any, str] = {}

    def reference(self, kind: Any, describe: Callable[[], Schema]) -> Schema:
        """Return a reference to a type, which is described at its first mention."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = self._free_name(named(kind))
            self.schemas[name] = {}
            self.schemas[name] = describe()
        return {"$ref": f"#/$defs/{name}"}

    def adopted(self, kind: Any, describe: Callable[[str], Schema]) -> Schema:
        """Return a reference to a type that another generator describes, with its own parts.

        `describe` gets the template for references to those parts.
        """

        def taken() -> Schema:
            front = f"{self._names[kind]}."
            schema = describe(f"#/$defs/{front}{{model}}")
            parts = schema.pop("$defs", {})
            self.schemas.update({f"{front}{part}": one for part, one in parts.items()})
            return schema

        return self.reference(kind, taken)

    def in_place(self, describe: Callable[[str], Schema]) -> Schema:
        """Return the schema itself of a type that another generator describes; see `adopted`."""
        front = f"part{len(self.schemas)}."
        schema = describe(f"#/$defs/{front}{{model}}")
        parts = schema.pop("$defs", {})
        self.schemas.update({f"{front}{part}": one for part, one in parts.items()})
        return schema

    def _free_name(self, wanted: str) -> str:
        taken = set(self._names.values())
        numbered = (f"{wanted}{number}" for number in range(2, len(taken) + 3))
        return wanted if wanted not in taken else next(n for n in numbered if n not in taken)


def closed_object(
    rules: Mapping[str, Rule],
    required: Callable[[str], bool],
    definitions: Definitions,
    defaults: Mapping[str, Any] | None = None,
) -> Schema:
    """Return the schema of an object with exactly these keys; defaults are in stored form."""
    properties = {name: rule.schema(definitions) for name, rule in rules.items()}
    for name, default in (defaults or {}).items():
        properties[name] = {**properties[name], "default": default}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in rules if required(name)],
        "additionalProperties": False,
    }


def whole_schema(title: str, describe: Callable[[Definitions], Schema]) -> Schema:
    """Return a schema with its definitions and a title; what is described stands at the top."""
    definitions = Definitions()
    schema = describe(definitions)
    if (reference := schema.get("$ref")) is not None:
        name = reference.rpartition("/")[2]
        schema = definitions.schemas[name]
        if reference not in repr(definitions.schemas):
            del definitions.schemas[name]
    parts = {"$defs": definitions.schemas} if definitions.schemas else {}
    return {**schema, "title": title, **parts}


def stored_default(rule: Rule, value: Any) -> Any:
    """Return a default in its stored form."""
    return rule.encode(value, Place("default"))
