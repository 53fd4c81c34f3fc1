"""Types that pydantic knows: models, constraints in `Annotated`, and whatever else it can read.

Decides that a model is stored field by field under the rules of this package, by its fields' names,
with exactly the fields that were set: pydantic's own JSON would hide secrets, drop a subclass's
fields and order sets at random. Pure; pydantic is imported by whoever has a signature with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, get_args, get_origin

from .json_schema import Definitions, stored_default
from .place import Misfit, Place, Rule, RuleFor, Schema, named, no_rule, same_form, wrong_type
from .records import decoded_fields, missing, unknown
from .scalars import JsonRule

_EMPTY = (list, dict, set, tuple, frozenset)
"""Factories that make the same each time."""


def is_model(kind: Any) -> bool:
    """Return whether a type is a pydantic model."""
    return (
        isinstance(kind, type)
        and hasattr(kind, "__pydantic_core_schema__")
        and callable(getattr(kind, "model_validate", None))
    )


@dataclass(frozen=True)
class ModelRule:
    """A pydantic model, stored as an object with the fields that were set."""

    kind: Any
    rule_for: RuleFor = field(repr=False)

    @cached_property
    def _fields(self) -> Mapping[str, Any]:
        if not self.kind.__pydantic_complete__:
            self.kind.model_rebuild()
        fields: Mapping[str, Any] = self.kind.model_fields
        return fields

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {name: self.rule_for(_annotation(one)) for name, one in self._fields.items()}

    @property
    def _is_root(self) -> bool:
        return bool(getattr(self.kind, "__pydantic_root_model__", False))

    def _all_rules(self, names: Mapping[str, Any]) -> Mapping[str, Rule]:
        """Return rules for the names, those that only a model with `extra="allow"` takes too."""
        if self.kind.model_config.get("extra") != "allow":
            return self._rules
        others = {name: JsonRule() for name in names if name not in self._rules}
        return {**self._rules, **others}

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the object, of a root model its root. Raises Misfit."""
        if type(value) is not self.kind:
            raise wrong_type(place, value, named(self.kind))
        if self._is_root:
            return self._rules["root"].encode(value.root, place, only_given)
        values = {name: getattr(value, name) for name in self._rules}
        stored = {
            name: self._rules[name].encode(item, self._shown(name, place), only_given)
            for name, item in values.items()
            if name in value.model_fields_set or self._must_be_stored(name, item, place, only_given)
        }
        return {**stored, **self._extra(value.model_extra or {}, place)}

    def _shown(self, name: str, place: Place) -> Place:
        """Return the field's place. Raises Misfit where the model never shows the field."""
        if self._fields[name].exclude:
            raise Misfit(place.field(name), "is excluded from what its model shows")
        return place.field(name)

    def _must_be_stored(self, name: str, value: Any, place: Place, only_given: bool) -> bool:
        """Return whether an unset field would be another one without being stored.

        A field of one literal tells the models of a union apart, so it always is. The caller gave
        what it changed in place; what a factory made new each time was filled in.
        """
        known = self._fields[name]
        made = known.default_factory
        if not only_given and (made is not None or get_origin(known.annotation) is Literal):
            return True
        if made is not None and made not in _EMPTY:
            return False
        default = known.default if made is None else made()
        return not same_form(self._rules[name], value, default, place.field(name))

    @staticmethod
    def _extra(values: Mapping[str, Any], place: Place) -> dict[str, Any]:
        return {name: JsonRule().encode(one, place.field(name)) for name, one in values.items()}

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the model, through its validators. Raises Misfit."""
        if self._is_root:
            return self._model(self._rules["root"].decode(stored, place), place)
        names = stored if isinstance(stored, dict) else {}
        values = decoded_fields(self._all_rules(names), stored, place, named(self.kind))
        for name, known in self._fields.items():
            if name not in values and known.is_required():
                raise missing(place, name)
        return self._model(values, place)

    def _model(self, values: Any, place: Place) -> Any:
        return validated(
            lambda: self.kind.model_validate(values, by_alias=False, by_name=True), place
        )

    def check_names(self, names: Iterable[str], place: Place) -> None:
        """Raise Misfit for a name that the model would drop without a word."""
        if self.kind.model_config.get("extra") == "allow":
            return
        aliases = {one.validation_alias or one.alias for one in self._fields.values()}
        for name in names:
            if name not in self._fields and name not in aliases:
                raise unknown(place, name, named(self.kind))

    def schema(self, definitions: Definitions) -> Schema:
        """Return pydantic's schema of the model, which knows its constraints and descriptions."""
        return definitions.adopted(self.kind, self._described)

    def _described(self, ref_template: str) -> Schema:
        schema = _schema(type_adapter(self.kind), ref_template)
        for name, one in schema.get("properties", {}).items():
            if name in self._rules and "default" in one:
                with suppress(Misfit):  # Pydantic's form is left where ours is refused.
                    one["default"] = stored_default(self._rules[name], self._fields[name].default)
        return schema


def _annotation(known: Any) -> Any:
    """Return a field's annotation; our own markers, which pydantic keeps apart, included."""
    for marker in known.metadata:
        if getattr(marker, "stored_as_text", False):
            return Annotated[known.annotation, marker]
    return known.annotation


@dataclass(frozen=True)
class ConstrainedRule:
    """`Annotated[T, ...]` with constraints: stored as T, checked by pydantic."""

    inner: Rule
    annotation: Any

    @cached_property
    def _adapter(self) -> Any:
        return type_adapter(self.annotation)

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return the form of T. Raises Misfit."""
        return self.inner.encode(value, place, only_given)

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value that keeps the constraints. Raises Misfit."""
        value = self.inner.decode(stored, place)
        return validated(lambda: self._adapter.validate_python(value), place)

    def schema(self, definitions: Definitions) -> Schema:
        """Return pydantic's schema, which knows the constraints."""
        return definitions.in_place(lambda refs: _schema(self._adapter, refs))


@dataclass(frozen=True)
class PydanticRule:
    """Any other type that pydantic reads and writes as JSON."""

    annotation: Any
    adapter: Any = field(repr=False)

    def encode(self, value: Any, place: Place, only_given: bool = False) -> Any:
        """Return pydantic's JSON form. Raises Misfit."""
        from pydantic_core import PydanticSerializationError

        try:
            return self.adapter.dump_python(value, mode="json", warnings="error", round_trip=True)
        except (PydanticSerializationError, ValueError, TypeError) as error:
            raise wrong_type(place, value, named(self.annotation)) from error

    def decode(self, stored: Any, place: Place) -> Any:
        """Return the value. Raises Misfit."""
        return validated(lambda: self.adapter.validate_json(json.dumps(stored)), place)

    def schema(self, definitions: Definitions) -> Schema:
        """Return pydantic's schema."""
        return definitions.in_place(lambda refs: _schema(self.adapter, refs))


_MAY_HOLD_VALUES = (
    "value_error", "assertion_error", "union_tag_invalid", "get_attribute_error",
    "iteration_error", "mapping_type",
)  # fmt: skip
"""Complaints of pydantic whose text quotes the input, or whatever a user's code has raised."""


def _schema(adapter: Any, ref_template: str) -> Schema:
    from .pydantic_schema import pydantic_schema

    return pydantic_schema(adapter, ref_template)


def type_adapter(annotation: Any) -> Any:
    """Return pydantic's adapter of a type. Raises NoRule where it knows none."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise no_rule(annotation, "pydantic knows none either") from error


def validated(make: Any, place: Place) -> Any:
    """Return what a validation gives. Raises Misfit at the place of its first complaint.

    The text of a user's own validator is left out, and so is pydantic's own error, which a
    traceback would show: both may hold the value.
    """
    from pydantic import ValidationError
    from pydantic_core.core_schema import ErrorType

    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        for step in first["loc"]:
            place = place.item(step) if isinstance(step, int) else place.field(step)
        told = first["type"] in get_args(ErrorType) and first["type"] not in _MAY_HOLD_VALUES
        problem = first["msg"] if told else "its own validator refuses it"
        raise Misfit(place, problem) from None
