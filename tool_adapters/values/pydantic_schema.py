"""Pydantic's JSON schema of a type, corrected to what is stored here.

Decides nothing else. Imports pydantic; whoever describes a type of pydantic's imports this module
at that moment.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema as core

from .by_value import encode_by_value
from .place import Misfit, Place
from .texts import TEXT_SCHEMAS


class _StoredForm(GenerateJsonSchema):
    """Pydantic's generator, where our stored form differs from its own."""

    def encode_default(self, dft: Any) -> Any:
        """Return a default in its stored form, or in pydantic's own where it has none."""
        try:
            return encode_by_value(dft, Place("default"))
        except Misfit:
            return super().encode_default(dft)

    def decimal_schema(self, schema: core.DecimalSchema) -> JsonSchemaValue:
        """Return text: a JSON number may lose digits."""
        return dict(TEXT_SCHEMAS["Decimal"])

    def bytes_schema(self, schema: core.BytesSchema) -> JsonSchemaValue:
        """Return base64 text."""
        return dict(TEXT_SCHEMAS["bytes"])

    def timedelta_schema(self, schema: core.TimedeltaSchema) -> JsonSchemaValue:
        """Return the text of a duration."""
        return dict(TEXT_SCHEMAS["timedelta"])

    def model_schema(self, schema: core.ModelSchema) -> JsonSchemaValue:
        """Return a model's fields and no others."""
        return _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: core.DataclassSchema) -> JsonSchemaValue:
        """Return a dataclass's fields and no others."""
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core.TypedDictSchema) -> JsonSchemaValue:
        """Return a typed dict's keys and no others."""
        return _closed(super().typed_dict_schema(schema))


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def pydantic_schema(adapter: TypeAdapter[Any], ref_template: str) -> dict[str, Any]:
    """Return the schema of a type's stored form, its fields by their own names."""
    return adapter.json_schema(
        by_alias=False, schema_generator=_StoredForm, ref_template=ref_template
    )
